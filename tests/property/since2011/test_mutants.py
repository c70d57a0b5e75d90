"""The track record of the modern log's machine: it catches every one of these bugs, many of them once real.

For each bug the shortest run in which the machine noticed it is kept below (``RUNS``) and played again, so that
noticing is not left to the seed of a day. ``make fuzz`` looks for further runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest
from hypothesis.stateful import run_state_machine_as_test

from since2011.log import cleaner, reading, recovery, truncation
from since2011.log.indexes import OffsetIndex, TimeIndex
from since2011.log.log import ModernLog
from since2011.log.offset_map import OffsetMap
from since2011.log.producer_state import ProducerState
from since2011.wire.record_batch import BatchHeader
from tests.property.since2011.machine import ModernLogMachine, quick

Mutant = AbstractContextManager[object]
Step = tuple[str, dict[str, Any]]


def step(rule: str, **arguments: Any) -> Step:
    """One deed of the machine."""
    return rule, arguments


def play(run: list[Step]) -> None:
    """Let the machine do these deeds and look at everything that must be so after each of them."""
    machine = ModernLogMachine()
    try:
        machine.start()
        for rule, arguments in run:
            getattr(machine, rule)(**arguments)
            for invariant in machine.invariants:
                invariant.function(machine)
    finally:
        machine.teardown()


def torn_tail_stays() -> Mutant:
    """Recovery finds the torn tail and leaves it."""
    return patch.object(recovery._Loader, "_cut", lambda *args: None)


def crash_forgets_producers() -> Mutant:
    """After a crash nothing is known of producers (KAFKA-5431)."""
    return patch.object(recovery, "restore_producers", lambda log, upto: log.producers.restore((), upto))


def a_cut_keeps_the_producers() -> Mutant:
    """A follower that cuts its log keeps what producers wrote beyond the cut (KAFKA-7190)."""
    return patch.object(truncation, "restore_producers", lambda log, upto: None)


def open_transactions_hold_back_nobody() -> Mutant:
    """The last stable offset is the high watermark (kop 1283)."""
    return patch.object(ProducerState, "first_open_offset", PropertyMock(return_value=None))


def aborted_transactions_are_looked_for_in_one_segment() -> Mutant:
    """Only the index of the segment that is read is asked, not those of later ones."""

    def aborted(self: ModernLog, part: object) -> list[object]:
        entries = part.segment.txn_index.entries  # type: ignore[attr-defined]
        return [entry for entry in entries if entry.last_offset >= part.first_offset]  # type: ignore[attr-defined]

    return patch.object(ModernLog, "aborted", aborted)


def an_abort_is_not_indexed() -> Mutant:
    """The marker of an abort is written, its index entry is not."""
    real = ModernLog.producers_ended

    def ended(self: ModernLog, header: BatchHeader, batch: bytes) -> None:
        real(self, header, batch)

    return patch.object(ModernLog, "producers_ended", ended)


def the_latest_is_dropped() -> Mutant:
    """The cleaner keeps a record only if it is later than the latest of its key."""

    def is_latest(self: OffsetMap, key: bytes, offset: int) -> bool:
        return offset > self._offsets.get(key, -1)

    return patch.object(OffsetMap, "is_latest", is_latest)


def aborted_records_count_for_the_map() -> Mutant:
    """A record of an aborted transaction makes the committed one before it look old."""
    return patch.object(cleaner._AbortedData, "holds", lambda self, header: False)


def an_index_entry_names_the_first_offset() -> Mutant:
    """The index maps an offset to the position after its batch."""
    real = OffsetIndex.append
    return patch.object(OffsetIndex, "append", lambda self, offset, position: real(self, offset - 1, position))


def time_entries_are_forgotten_at_a_roll() -> Mutant:
    """The last time entry of a segment is not written."""
    return patch.object(TimeIndex, "maybe_append", lambda self, timestamp, offset: None)


def retries_are_stored_twice() -> Mutant:
    """A retry is not known as one."""
    return patch.object(ProducerState, "duplicate_of", lambda self, header: None)


def a_marker_ends_nothing() -> Mutant:
    """A commit leaves the transaction open (a hanging transaction, KAFKA-9144)."""
    real = ProducerState.ended

    def ended(self: ProducerState, header: BatchHeader, marker: object) -> object:
        known = self.producers.get(header.producer_id)
        first = -1 if known is None else known.current_txn_first_offset
        found = real(self, header, marker)  # type: ignore[arg-type]
        if first >= 0 and marker.committed:  # type: ignore[attr-defined]
            self.producers[header.producer_id].current_txn_first_offset = first
            self._open[first] = header.producer_id
        return found

    return patch.object(ProducerState, "ended", ended)


def a_read_goes_beyond_the_watermark() -> Mutant:
    """A read of committed records ends with the segment."""
    return patch.object(reading, "position_of", lambda segment, offset: segment.size)


def sequences_are_not_checked() -> Mutant:
    """Whatever sequence comes is taken, and a retry of a batch beyond the last is stored."""

    def duplicate_of(self: ProducerState, header: BatchHeader) -> None:
        return None

    return patch.multiple(ProducerState, duplicate_of=duplicate_of, check=lambda self, header, sequences=True: None)


def a_cut_leaves_the_index() -> Mutant:
    """A follower that cuts its log leaves index entries that point beyond it."""
    return patch.object(OffsetIndex, "truncate", lambda self, offset: None)


def deleted_records_come_back() -> Mutant:
    """A start forgets where the log begins."""
    real = recovery._Loader.settle
    return patch.object(recovery._Loader, "settle", lambda self, log_start: real(self, 0))


MUTANTS = [
    a_cut_leaves_the_index,
    deleted_records_come_back,
    torn_tail_stays,
    crash_forgets_producers,
    a_cut_keeps_the_producers,
    open_transactions_hold_back_nobody,
    aborted_transactions_are_looked_for_in_one_segment,
    an_abort_is_not_indexed,
    the_latest_is_dropped,
    aborted_records_count_for_the_map,
    an_index_entry_names_the_first_offset,
    time_entries_are_forgotten_at_a_roll,
    retries_are_stored_twice,
    a_marker_ends_nothing,
    a_read_goes_beyond_the_watermark,
    sequences_are_not_checked,
]


RUNS: dict[str, list[Step]] = {
    "a_cut_leaves_the_index": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("append_in_transaction", producer=1, key=b"a"),
        step("append_in_transaction", producer=1, key=b"a"),
        step("truncate", back=2),
        step("append", keys=[b"a", b"a"], null=False),
        step("append_in_transaction", producer=1, key=b"a"),
    ],
    "deleted_records_come_back": [
        step("append", keys=[b"a"], null=False),
        step("append_in_transaction", producer=1, key=b"a"),
        step("delete_records", forward=1),
        step("restart"),
    ],
    "torn_tail_stays": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("power_cut", lost=1),
        step("append_in_transaction", producer=1, key=b"a"),
    ],
    "crash_forgets_producers": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("restart"),
    ],
    "a_cut_keeps_the_producers": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("truncate", back=1),
        step("end", producer=2, commit=False),
        step("append_in_transaction", producer=1, key=b"a"),
    ],
    "open_transactions_hold_back_nobody": [
        step("append_in_transaction", producer=1, key=b"a"),
    ],
    "aborted_transactions_are_looked_for_in_one_segment": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("roll"),
        step("end", producer=1, commit=False),
    ],
    "an_abort_is_not_indexed": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("end", producer=1, commit=False),
    ],
    "the_latest_is_dropped": [
        step("append", keys=[b"a"], null=False),
        step("roll"),
        step("clean", most=1, wait=False),
    ],
    "aborted_records_count_for_the_map": [
        step("append", keys=[b"a"], null=False),
        step("append_in_transaction", producer=1, key=b"a"),
        step("roll"),
        step("end", producer=1, commit=False),
        step("clean", most=1, wait=False),
    ],
    "an_index_entry_names_the_first_offset": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("append_in_transaction", producer=1, key=b"a"),
        step("end", producer=1, commit=False),
    ],
    "time_entries_are_forgotten_at_a_roll": [
        step("append", keys=[b"a"], null=False),
        step("restart"),
    ],
    "retries_are_stored_twice": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("retry", producer=1),
    ],
    "a_marker_ends_nothing": [
        step("append_in_transaction", producer=2, key=b"a"),
        step("append_in_transaction", producer=1, key=b"a"),
        step("end", producer=2, commit=True),
    ],
    "a_read_goes_beyond_the_watermark": [
        step("append", keys=[b"a"], null=False),
        step("append_in_transaction", producer=1, key=b"a"),
    ],
    "sequences_are_not_checked": [
        step("append_in_transaction", producer=1, key=b"a"),
        step("retry", producer=1),
    ],
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_machine_catches(mutant: Callable[[], Mutant]) -> None:
    """A log with this bug does not pass the machine (issue 25)."""
    with mutant(), pytest.raises(Exception):  # noqa: B017 - whatever it is, it is noticed
        play(RUNS[mutant.__name__])


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_the_machine_passes_what_is_right(run: list[Step]) -> None:
    """The control: without a bug none of these runs is noticed."""
    play(run)


def test_the_machine_finds_nothing_by_itself() -> None:
    """Random runs over the log as it is end without a difference to the model (issue 25)."""
    run_state_machine_as_test(ModernLogMachine, settings=quick)
