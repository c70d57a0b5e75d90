"""Ownership as a picture: one lane per partition, one colour per reader, four protocols over one time axis.

Paper: §3.2 (a partition has one consumer at a time); gaps are partitions nobody read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.sax.saxutils import escape

from consumers.sim.compare.side_by_side import Run
from consumers.sim.scenario import Fault

_WIDTH, _LEFT, _LANE, _GAP, _TOP = 960, 110, 9, 34, 46
_COLOURS = (
    "#4e79a7",
    "#f28e2b",
    "#59a14f",
    "#e15759",
    "#b07aa1",
    "#76b7b2",
    "#edc948",
    "#9c755f",
    "#ff9da7",
    "#5b5b5b",
)


def draw(name: str, runs: Sequence[Run]) -> str:
    """The runs of one scenario as SVG."""
    scenario = runs[0].scenario
    begin = max(0.0, min(fault.at for fault in scenario.faults) - 2)
    end = min(scenario.duration_s, max(fault.at + fault.length for fault in scenario.faults) + 8)
    scale = (_WIDTH - _LEFT - 20) / (end - begin)
    members = sorted({lane.member for run in runs for lane in run.lanes}, key=lambda m: (len(m), m))
    colour = {member: _COLOURS[i % len(_COLOURS)] for i, member in enumerate(members)}
    parts: list[str] = []
    y = _TOP
    for run in runs:
        y = _draw_run(parts, run, y, colour, lambda t: _LEFT + (min(max(t, begin), end) - begin) * scale)
    _draw_axis(parts, begin, end, scale, y)
    for fault in scenario.faults:
        _draw_fault(parts, fault, _LEFT + (fault.at - begin) * scale, y)
    _draw_legend(parts, colour, y + 34)
    height = y + 54
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    )
    title = f'<text x="10" y="18" font-size="14">{escape(name)}, seed {scenario.seed}: who reads which partition</text>'
    return "\n".join([head, title, *parts, "</svg>\n"])


def _draw_run(parts: list[str], run: Run, y: int, colour: dict[str, str], x_of: Callable[[float], float]) -> int:
    partitions = sorted({lane.partition for lane in run.lanes}, key=lambda p: [int(n) for n in p.split("-")])
    row = {partition: y + i * _LANE for i, partition in enumerate(partitions)}
    figures = run.figures
    parts.append(f'<text x="10" y="{y + 8}" font-weight="bold">{figures.protocol}</text>')
    for i, line in enumerate(
        (f"{figures.requests} requests", f"{figures.moved} moved", f"{figures.unowned_s:.2f} p·s unowned")
    ):
        parts.append(f'<text x="10" y="{y + 22 + 13 * i}" fill="#555">{line}</text>')
    for lane in run.lanes:
        left, right = x_of(lane.start), x_of(lane.end)
        if right > left:
            parts.append(
                f'<rect x="{left:.1f}" y="{row[lane.partition]}" width="{right - left:.1f}" height="{_LANE - 2}" '
                f'fill="{colour[lane.member]}" fill-opacity="0.85"><title>{escape(lane.member)} reads '
                f"{escape(lane.partition)}, {lane.start:.2f}–{lane.end:.2f} s</title></rect>"
            )
    return y + max(len(partitions) * _LANE, 52) + _GAP


def _draw_axis(parts: list[str], begin: float, end: float, scale: float, y: int) -> None:
    for second in range(int(begin) + 1, int(end) + 1):
        x = _LEFT + (second - begin) * scale
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{y - 18}" stroke="#ddd" stroke-width="0.5"/>'
        )
        if second % 2 == 0:
            parts.append(f'<text x="{x:.1f}" y="{y - 6}" fill="#777" text-anchor="middle">{second} s</text>')


def _draw_fault(parts: list[str], fault: Fault, x: float, y: int) -> None:
    parts.append(
        f'<line x1="{x:.1f}" y1="{_TOP - 12}" x2="{x:.1f}" y2="{y - 18}" stroke="black" stroke-dasharray="3 2"/>'
        f'<text x="{x + 2:.1f}" y="{_TOP - 14}" font-size="9">{escape(fault.kind)}</text>'
    )


def _draw_legend(parts: list[str], colour: dict[str, str], y: int) -> None:
    for i, (member, fill) in enumerate(colour.items()):
        x = _LEFT + i * 60
        parts.append(f'<rect x="{x}" y="{y - 8}" width="9" height="9" fill="{fill}"/>')
        parts.append(f'<text x="{x + 13}" y="{y}">{escape(member)}</text>')
