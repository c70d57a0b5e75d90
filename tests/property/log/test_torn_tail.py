"""A write torn at any byte, in any way: recovery keeps every whole message and nothing else (docs/reliability.md)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kafka2011.clock import ManualClock
from kafka2011.log import LogSettings, LogStore
from kafka2011.log.events import TailTruncated
from kafka2011.wire import Codec, encode_set
from tests.property.log.machine import IN_MEMORY

GOOD = encode_set([b"first", b"second"])
SETS = {
    "plain": encode_set([b"third", b"fourth!"]),
    "old": encode_set([b"third", b"fourth!"], magic=0),
    "wrappers": encode_set([b"third"], codec=Codec.GZIP) + encode_set([b"fourth!"], codec=Codec.SNAPPY),
}


@pytest.mark.parametrize("filler", ["cut", "zeros", "garbage", "ones"])
@pytest.mark.parametrize("kind", SETS)
def test_every_byte_of_the_last_two_records(kind: str, filler: str) -> None:
    """Every cut point of the last two messages, followed by nothing, zeros or garbage, is cut back and counted."""
    whole = GOOD + SETS[kind]
    ends = _ends(whole)
    for cut in range(len(GOOD), len(whole)):
        rest = len(whole) - cut
        tail = {"cut": b"", "zeros": bytes(rest), "garbage": b"\x5a" * rest, "ones": b"\xff" * rest}[filler]
        spoiled = whole[:cut] + tail
        # What was written over may happen to be what was there: gzip ends in zeros.
        same = next((i for i, byte in enumerate(whole) if spoiled[i : i + 1] != bytes([byte])), len(whole))
        kept = max(end for end in ends if end <= same)
        lost = len(spoiled) - kept
        with TemporaryDirectory(dir=IN_MEMORY) as root:
            path = Path(root, "t-0", f"{0:020d}.kafka")
            path.parent.mkdir()
            path.write_bytes(spoiled)
            store = LogStore(Path(root), LogSettings(), clock=ManualClock())
            store.open()
            log = store.get("t", 0)
            assert log is not None
            assert log.end_offset == log.flushed_offset == path.stat().st_size == kept, f"cut at {cut}"
            told = [e.event for e in store.journal.since() if isinstance(e.event, TailTruncated)]
            assert [(e.start, e.size) for e in told] == ([(kept, lost)] if lost else [])
            store.close()


def _ends(data: bytes) -> list[int]:
    ends, pos = [], 0
    while pos < len(data):
        pos += 4 + int.from_bytes(data[pos : pos + 4], "big")
        ends.append(pos)
    return ends
