"""The four copies against two: what the paper counts, and what was counted while a broker sent a log.

Paper: §3.1 Efficient transfer: read from the file into the page cache, copy to the application, copy to a kernel
buffer, copy to the socket. sendfile leaves out the two in the middle.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from classroom.claims import c10_sendfile
from classroom.claims.harness.bench import Bench, Scale
from classroom.claims.harness.room import Room
from classroom.figures.drawing import BLUE, GREEN, INK, LINE, RED, SOFT, WASH, Sheet

_PLACES = ("disk", "page cache", "the broker's memory", "socket buffer", "network card")


def draw() -> str:
    """Run the experiment of claim C10 in small, and draw what it counted."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-figure-") as directory, Room(Path(directory)) as room:
        figures = c10_sendfile.experiment(Bench(room, "copies", scale=Scale.QUICK))
    return picture(figures["calls"], {name: min(costs) for name, costs in figures["cpu_ms_per_mb"].items()})


def picture(calls: dict[str, Any], cpu: dict[str, float]) -> str:
    """Two rows of places, with an arrow for each copy."""
    sheet = Sheet(
        1000,
        430,
        "Four copies against two",
        "Solid: a copy. With sendfile the bytes of a message never enter the broker's own memory.",
    )
    _row(sheet, 90, "read, then send", "copy", [(0, 1), (1, 2), (2, 3), (3, 4)], calls.get("copy"), cpu["copy"], RED)
    _row(sheet, 260, "sendfile", "sendfile", [(0, 1), (1, 4)], calls.get("sendfile"), cpu["sendfile"], GREEN)
    return sheet.svg()


def _row(
    sheet: Sheet,
    y: float,
    name: str,
    call: str,
    copies: list[tuple[int, int]],
    counted: dict[str, float] | None,
    cpu: float,
    colour: str,
) -> None:
    sheet.text(16, y, f"{name}: {len(copies)} copies", bold=True, size=14)
    for place, says in enumerate(_PLACES):
        x = 16 + place * 196
        used = any(place in pair for pair in copies)
        sheet.rect(x, y + 16, 150, 56, fill=WASH if used else "none", stroke=BLUE if used else LINE, round_=6)
        sheet.text(x + 75, y + 49, says, anchor="middle", fill=INK if used else LINE)
    for number, (one, other) in enumerate(copies, 1):
        x1, x2 = 16 + one * 196 + 150, 16 + other * 196
        level = y + 44 if other - one == 1 else y + 88
        if other - one == 1:
            sheet.line(x1 + 3, level, x2 - 3, level, stroke=colour, width=2.5, arrow=True)
        else:
            sheet.path([(x1 - 75, y + 74), (x1 - 75, level), (x2 + 75, level)], stroke=colour, width=2.5)
            sheet.line(x2 + 75, level, x2 + 75, y + 76, stroke=colour, width=2.5, arrow=True)
        sheet.text((x1 + x2) / 2, level - 7, str(number), anchor="middle", bold=True, fill=colour)
    if counted is None:
        words = f"system calls could not be counted here; {cpu:.2f} ms of CPU for a megabyte"
    else:
        words = (
            f"counted: {counted['per_64k']:.1f} system calls for 64 KB, {counted['copied']:.2f} bytes copied into or "
            f"out of the process for each byte sent, {cpu:.2f} ms of CPU for a megabyte"
        )
    sheet.text(16, y + 118, words, fill=SOFT)
