"""Figure 2 of the paper, with a box per message: the list in memory, and the files of a live log.

Paper: §3.1 Simple storage, Figure 2.
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from pathlib import Path
from random import Random

from classroom.figures.drawing import BLUE, GREEN, INK, ORANGE, SOFT, WASH, Sheet
from kafka2011.client import BrokerConnection
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set, read_set

TOPIC = "clicks"
_LEFT, _WIDTH, _HIGH = 330, 640, 34
FLUSHED, UNFLUSHED, PATIENCE_S = 50, 4, 20.0
_OPTIONS = {
    "log.file.size": 700,
    "log.flush.interval": 5,
    "log.default.flush.interval.ms": 600_000,
}


def draw(seed: int = 2011) -> str:
    """Publish to a broker of its own, one message after the other, and draw what its directory holds."""
    random = Random(seed)
    sets = [encode_set([f"message {n} ".encode() + b"." * random.randrange(1, 60)]) for n in range(FLUSHED + UNFLUSHED)]
    with tempfile.TemporaryDirectory(prefix="kafka2011-figure-") as directory:
        place = Path(directory)
        with BrokerProcess(place, _OPTIONS) as broker, BrokerConnection(broker.host, broker.port) as connection:
            for data in sets[:FLUSHED]:
                connection.produce(TOPIC, 0, data)
            _wait_for(broker, sum(map(len, sets[:FLUSHED])))
            for data in sets[FLUSHED:]:
                connection.produce(TOPIC, 0, data)
            connection.offsets(TOPIC, 0)  # an answer: what was sent before it is in the log
            flushed = _flushed(broker)
            files = [(int(path.stem), path.read_bytes()) for path in sorted(place.glob(f"{TOPIC}-0/*.kafka"))]
    return picture(files, flushed)


def _wait_for(broker: BrokerProcess, end: int) -> None:
    deadline = SYSTEM_CLOCK.monotonic() + PATIENCE_S
    while _flushed(broker) < end and SYSTEM_CLOCK.monotonic() < deadline:
        SYSTEM_CLOCK.sleep(0.05)


def _flushed(broker: BrokerProcess) -> int:
    with urllib.request.urlopen(f"http://{broker.host}:{broker.admin_port}/state", timeout=10) as answer:
        topics = json.load(answer)["topics"]
    return int(topics[TOPIC]["partitions"]["0"]["flushed_offset"]) if TOPIC in topics else 0


def picture(files: list[tuple[int, bytes]], flushed: int) -> str:
    """The files of a partition by first offset; what lies at ``flushed`` or beyond it cannot be read yet."""
    longest = max(len(data) for _, data in files)
    sheet = Sheet(
        _LEFT + _WIDTH + 30,
        130 + len(files) * (_HIGH + 26),
        "Figure 2: a log and its segment files, a box per message",
        "In memory there is only the sorted list of first offsets; a message is found by searching it, then by adding "
        "lengths.",
    )
    sheet.text(16, 84, "the list in memory", bold=True)
    sheet.text(_LEFT, 84, "files on disk; the number in a box is the offset of its message", bold=True)
    for number, (start, data) in enumerate(files):
        y = 100 + number * (_HIGH + 26)
        active = number == len(files) - 1
        sheet.rect(16, y, 120, _HIGH, fill=WASH)
        sheet.text(76, y + 22, f"{start:,}", anchor="middle", mono=True, size=14)
        sheet.line(140, y + _HIGH / 2, _LEFT - 8, y + _HIGH / 2, stroke=SOFT, arrow=True)
        name = f"{start:020}.kafka" + (", appended to" if active else "")
        sheet.text(_LEFT, y + _HIGH + 14, name, fill=SOFT, size=11)
        for offset, size in _messages(start, data):
            x = _LEFT + _WIDTH * (offset - start) / longest
            width = _WIDTH * size / longest
            readable = offset < flushed
            colour = (GREEN if active else BLUE) if readable else ORANGE
            words = f"offset {offset:,}, {size} bytes; the next is at {offset + size:,}"
            sheet.rect(x, y, width, _HIGH, fill=colour, stroke="#ffffff", title=words, opacity=0.75)
            if width > 26:
                sheet.text(x + width / 2, y + 21, f"{offset}", anchor="middle", size=10, fill=INK)
    y = 100 + len(files) * (_HIGH + 26)
    _legend(sheet, y, flushed)
    return sheet.svg()


def _messages(start: int, data: bytes) -> list[tuple[int, int]]:
    """Offset and size of each entry."""
    found, offset = [], start
    for message in read_set(data, start):
        found.append((offset, message.next_offset - offset))
        offset = message.next_offset
    return found


def _legend(sheet: Sheet, y: float, flushed: int) -> None:
    x = 16.0
    for colour, says in (
        (BLUE, "a full file"),
        (GREEN, "the file that is written"),
        (ORANGE, f"written, not flushed: nobody can read from {flushed:,} on"),
    ):
        sheet.rect(x, y - 2, 14, 14, fill=colour, opacity=0.75)
        sheet.text(x + 20, y + 10, says)
        x += 40 + len(says) * 6.6
