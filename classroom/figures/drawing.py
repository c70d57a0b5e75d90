"""A sheet to draw on: shapes and words with numbers, written out as one SVG file that needs nothing else."""

from __future__ import annotations

from html import escape

INK, SOFT, LINE, PAPER, WASH = "#15202b", "#51606f", "#b7c2cc", "#ffffff", "#f3f6f8"
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#b3261e"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, "#d55e00", "#b8a900", "#7f7f7f")
"""Okabe-Ito: safe for colour-blind eyes."""


class Sheet:
    """Shapes in the order they are drawn. Thread: one."""

    def __init__(self, width: float, height: float, title: str, says: str = "") -> None:
        self.width, self.height = width, height
        self._title, self._says = title, says
        self._parts: list[str] = []
        self.text(16, 26, title, size=18, bold=True)
        if says:
            self.text(16, 46, says, fill=SOFT)

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        stroke: str = LINE,
        round_: float = 0,
        title: str = "",
        opacity: float = 1,
    ) -> None:
        """A box, with words that show when the mouse is over it."""
        inner = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{round_:.0f}" '
            f'fill="{fill}" stroke="{stroke}" opacity="{opacity:g}">{inner}</rect>'
        )

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        stroke: str = SOFT,
        width: float = 1.5,
        dashed: bool = False,
        arrow: bool = False,
    ) -> None:
        """A line, with a head where it ends if it is an arrow."""
        extra = ' stroke-dasharray="4 4"' if dashed else ""
        extra += f' marker-end="url(#head-{stroke[1:]})"' if arrow else ""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
            f'stroke-width="{width:g}"{extra}/>'
        )

    def path(self, points: list[tuple[float, float]], *, stroke: str, width: float = 2, fill: str = "none") -> None:
        """A line through points."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" fill="{fill}" stroke="{stroke}" stroke-width="{width:g}"/>')

    def text(
        self,
        x: float,
        y: float,
        says: str,
        *,
        size: float = 12,
        fill: str = INK,
        bold: bool = False,
        anchor: str = "start",
        mono: bool = False,
    ) -> None:
        """Words."""
        weight = ' font-weight="600"' if bold else ""
        family = ' font-family="ui-monospace, monospace"' if mono else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}" text-anchor="{anchor}"{weight}{family}>'
            f"{escape(says)}</text>"
        )

    def svg(self) -> str:
        """The whole file."""
        heads = "".join(
            f'<marker id="head-{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0l8 4-8 4z" fill="{colour}"/></marker>'
            for colour in (INK, SOFT, BLUE, GREEN, RED, ORANGE)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" font-family="system-ui, sans-serif" role="img">\n'
            f"<title>{escape(self._title)}</title><desc>{escape(self._says)}</desc>\n<defs>{heads}</defs>\n"
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(self._parts) + "\n</svg>\n"
        )
