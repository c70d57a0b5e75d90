"""Ownership lanes as SVG: one lane per partition, one colour per member, time to the right.

White is time nobody read; where two colours overlap, two members read the same partition.
"""

from __future__ import annotations

from html import escape

from consumers.sim.scenario import Scenario
from consumers.sim.verdict import Lane, Verdict

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#bbbbbb")
_LANE, _LEFT, _WIDTH = 22, 60, 900


def draw(scenario: Scenario, verdict: Verdict) -> str:
    """The picture of one run."""
    partitions = sorted({lane.partition for lane in verdict.lanes}, key=lambda p: tuple(map(int, p.split("-"))))
    members = sorted({lane.member for lane in verdict.lanes}, key=lambda m: int(m[1:]))
    height = _LANE * len(partitions) + 90
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="16" font-size="13">{escape(str(verdict))}</text>',
    ]
    for i, partition in enumerate(partitions):
        y = 34 + i * _LANE
        parts.append(f'<text x="8" y="{y + 14}">{escape(partition)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_LANE - 4}" fill="#f4f4f4"/>')
        for lane in verdict.lanes:
            if lane.partition == partition:
                parts.append(_bar(lane, y, members.index(lane.member), scenario.duration_s))
    bottom = 34 + len(partitions) * _LANE
    for fault in scenario.faults:
        x = _LEFT + fault.at / scenario.duration_s * _WIDTH
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{bottom}" stroke="#888" stroke-dasharray="2,3"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 12}" font-size="9" fill="#555">{escape(fault.kind)}</text>')
    for i, member in enumerate(members):
        x, y = _LEFT + i * 80, bottom + 24
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLOURS[i % len(_COLOURS)]}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 10}">{escape(member)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(lane: Lane, y: int, member: int, duration_s: float) -> str:
    x = _LEFT + lane.start / duration_s * _WIDTH
    width = max(0.5, (lane.end - lane.start) / duration_s * _WIDTH)
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_LANE - 4}" fill="{_COLOURS[member % len(_COLOURS)]}" '
        f'fill-opacity="0.65"><title>{escape(lane.member)} {lane.start:.2f}-{lane.end:.2f} s</title></rect>'
    )
