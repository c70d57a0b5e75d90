"""The cleaner killed at any step of any round: a model of keys and their latest values."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka2011.clock import ManualClock
from kafka2011.failpoints import activate
from since2011.log.cleaner_choice import clean_range
from since2011.log.offset_map import ENTRY_BYTES
from since2011.log.settings import LogConfig
from since2011.log.swap import clean_log
from tests.property.since2011.machine import IN_MEMORY
from tests.unit.since2011.bench import Bench, no_codec
from tests.unit.since2011.vectors import T

STEPS = (
    "modern.append.before_write",
    "modern.flush.before_fsync",
    "modern.clean.after_write",
    "modern.segment.between_renames",
    "modern.clean.after_swap",
    "modern.clean.after_deleted",
    "modern.clean.after_rename",
)
CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=300, index_interval_bytes=80, segment_ms=10**12)
crash = st.tuples(st.sampled_from(STEPS), st.integers(1, 6), st.integers(1, 4))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"d"]), min_size=8, max_size=40), st.lists(crash, max_size=4))
def test_after_any_crash_the_latest_of_every_key_is_there(
    keys: list[bytes], crashes: list[tuple[str, int, int]]
) -> None:
    """Offsets never change, and of every key the latest value stays, whatever step the cleaner dies at (issue 25.4)."""
    root = Path(tempfile.mkdtemp(prefix="cleaner-", dir=IN_MEMORY))
    try:
        bench = Bench(root / "prices-0", CONFIG, ManualClock(T))
        written = {}
        for number, key in enumerate(keys):
            offset = bench.send((key, b"%d" % number)).first_offset
            written[offset] = (key, b"%d" % number)
        latest = {key: offset for offset, (key, _) in written.items()}
        for step, hit, most in crashes:
            found = clean_range(bench.log, None, bench.clock.wall_ms())
            with activate(step, f"raise:EIO@{hit}"), suppress(OSError):
                clean_log(
                    bench.log,
                    found.first_dirty,
                    found.first_uncleanable,
                    no_codec,
                    no_codec,
                    most_bytes=most * ENTRY_BYTES,
                )
            bench.crash()
            seen = {offset: (key, value) for offset, key, value in bench.pairs()}
            assert all(written[offset] == pair for offset, pair in seen.items())
            assert {key: offset for key, offset in latest.items() if offset not in seen} == {}
            assert bench.log.log_end_offset == len(keys)
        bench.log.close(clean=False)
    finally:
        shutil.rmtree(root)
