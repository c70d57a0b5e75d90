"""The plot of a run as SVG: points on lines where x is a number, bars where it is a name. No library, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 34, 62
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which colour-blind readers can tell apart."""
_TEXT = 'font-family="sans-serif" font-size="12" fill="#333"'

Point = tuple[str, float | str, float]


def draw(plot: dict[str, Any], title: str = "") -> str:
    """The picture of a plot as a run keeps it."""
    points: list[Point] = [(str(series), x, float(y)) for series, x, y in plot["points"]]
    names = list(dict.fromkeys(series for series, _, _ in points))
    numeric = bool(points) and all(not isinstance(x, str) for _, x, _ in points)
    body = _lines(points, names, log=plot["log"]) if numeric else _bars(points, names)
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title or plot["y"])}">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *body,
            f'<text x="{LEFT}" y="14" {_TEXT}>{escape(plot["y"])}</text>',
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle" {_TEXT}>'
            f"{escape(plot['x'])}</text>",
            *_legend(names),
            "</svg>",
        ]
    )


def _lines(points: Sequence[Point], names: list[str], *, log: bool) -> list[str]:
    xs = [_place(x, log) for _, x, _ in points]
    low, high = min(xs), max(xs)
    top = _top([y for _, _, y in points])
    parts = _axis(top)
    for at in sorted({x for _, x, _ in points if not isinstance(x, str)})[:: max(1, len(set(xs)) // 8)]:
        across = _across(_place(at, log), low, high)
        parts.append(f'<text x="{across:.1f}" y="{HEIGHT - 44}" text-anchor="middle" {_TEXT}>{_short(at)}</text>')
    for name, colour in zip(names, COLOURS * len(names), strict=False):
        own = sorted((_across(_place(x, log), low, high), _down(y, top)) for series, x, y in points if series == name)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in own)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in own]
    return parts


def _bars(points: Sequence[Point], names: list[str]) -> list[str]:
    groups = list(dict.fromkeys(str(x) for _, x, _ in points))
    top = _top([y for _, _, y in points])
    parts = _axis(top)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    wide = min(60.0, 0.8 * room / max(1, len(names)))
    for n, group in enumerate(groups):
        middle = LEFT + room * (n + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 44}" text-anchor="middle" {_TEXT}>{escape(group)}</text>')
        for k, (name, colour) in enumerate(zip(names, COLOURS * len(names), strict=False)):
            for _, _, y in [point for point in points if (point[0], str(point[1])) == (name, group)]:
                x, above = middle + (k - len(names) / 2) * wide, _down(y, top)
                tall = HEIGHT - BOTTOM - above
                parts.append(
                    f'<rect x="{x:.1f}" y="{above:.1f}" width="{0.92 * wide:.1f}" height="{tall:.1f}" fill="{colour}"/>'
                )
                parts.append(
                    f'<text x="{x + wide / 2:.1f}" y="{above - 4:.1f}" text-anchor="middle" {_TEXT}>{_short(y)}</text>'
                )
    return parts


def _axis(top: float) -> list[str]:
    parts = []
    for n in range(5):
        value = top * n / 4
        y = _down(value, top)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" {_TEXT}>{_short(value)}</text>')
    return parts


def _legend(names: list[str]) -> list[str]:
    parts, x = [], float(LEFT)
    for name, colour in zip(names if len(names) > 1 else [], COLOURS * len(names), strict=False):
        parts.append(f'<rect x="{x:.0f}" y="{HEIGHT - 33}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14:.0f}" y="{HEIGHT - 24}" {_TEXT}>{escape(name)}</text>')
        x += 30 + 6.4 * len(name)
    return parts


def _place(x: float | str, log: bool) -> float:
    number = float(x)
    return math.log10(max(number, 1e-9)) if log else number


def _across(x: float, low: float, high: float) -> float:
    span = WIDTH - LEFT - RIGHT - 20
    return LEFT + 10 + (span * (x - low) / (high - low) if high > low else span / 2)


def _down(y: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / top


def _top(values: Sequence[float]) -> float:
    """A round number not below any value."""
    most = max([*values, 1e-9])
    unit = 10.0 ** math.floor(math.log10(most))
    return next(step * unit for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * unit >= most)


def _short(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
