"""Ownership lanes as SVG: one lane per partition, one colour per member, time to the right.

White is time nobody read; where two colours overlap, two members read the same partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from consumers.sim.scenario import Scenario
from consumers.sim.verdict import Lane, Verdict

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#997700", "#bbbbbb")
_LANE, _LEFT, _WIDTH, _TOP = 22, 60, 900, 46
_LABEL, _LETTER = 11, 5.5
"""Height of a row of labels, and the width of a letter in it."""
_MEMBERS = 11
"""Members in a row of the legend."""


def draw(scenario: Scenario, verdict: Verdict) -> str:
    """The picture of one run."""
    partitions = sorted({lane.partition for lane in verdict.lanes}, key=lambda p: tuple(map(int, p.split("-"))))
    members = sorted({lane.member for lane in verdict.lanes}, key=lambda m: int(m[1:]))
    bottom = _TOP + len(partitions) * _LANE
    labels = [(_LEFT + fault.at / scenario.duration_s * _WIDTH, fault.kind) for fault in scenario.faults]
    rows = label_rows(labels)
    legend = bottom + 12 + (max(rows, default=0) + 1) * _LABEL
    title, _, counts = str(verdict).partition("; ")
    height = legend + (len(members) // _MEMBERS + 1) * 18 + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 20}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="16" font-size="13">{escape(title)}</text>',
        f'<text x="8" y="32" fill="#555">{escape(counts)}</text>',
    ]
    for i, partition in enumerate(partitions):
        y = _TOP + i * _LANE
        parts.append(f'<text x="8" y="{y + 14}">{escape(partition)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_LANE - 4}" fill="#f4f4f4"/>')
        for lane in verdict.lanes:
            if lane.partition == partition:
                parts.append(_bar(lane, y, members.index(lane.member), scenario.duration_s))
    for (x, kind), row in zip(labels, rows, strict=True):
        y = bottom + 12 + row * _LABEL
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{y}" stroke="#888" stroke-dasharray="2,3"/>'
        )
        parts.append(f'<text x="{x + 2:.1f}" y="{y}" font-size="9" fill="#555">{escape(kind)}</text>')
    for i, member in enumerate(members):
        x, y = _LEFT + i % _MEMBERS * 80, legend + i // _MEMBERS * 18
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{_COLOURS[i % len(_COLOURS)]}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 10}">{escape(member)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def label_rows(labels: Sequence[tuple[float, str]]) -> list[int]:
    """For each label at its x the first row in which it does not touch the one before."""
    ends: list[float] = []
    rows = []
    for x, text in labels:
        row = next((row for row, end in enumerate(ends) if end < x), len(ends))
        ends[row : row + 1] = [x + (len(text) + 1) * _LETTER]
        rows.append(row)
    return rows


def _bar(lane: Lane, y: int, member: int, duration_s: float) -> str:
    x = _LEFT + lane.start / duration_s * _WIDTH
    width = max(0.5, (lane.end - lane.start) / duration_s * _WIDTH)
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_LANE - 4}" fill="{_COLOURS[member % len(_COLOURS)]}" '
        f'fill-opacity="0.65"><title>{escape(lane.member)} {lane.start:.2f}-{lane.end:.2f} s</title></rect>'
    )
