"""The demo sums up whatever the brokers hold. Issue 22 B10."""

from __future__ import annotations

from classroom.demo.deliveries import Tally
from classroom.demo.stored import Stored
from classroom.demo.summary import Loaded, compared
from kafka2011.wire import encode_set

PAYLOADS = [b"message %d" % n for n in range(6)]
SIZE = len(encode_set(PAYLOADS[:1]))
LOG = encode_set(PAYLOADS)


def read(log: bytes, most: int = 1 << 20) -> Stored:
    stored = Stored()
    stored.read("clicks", "1-2", 0, len(log), lambda offset: log[offset : offset + most])
    return stored


def damaged(position: int) -> bytes:
    log = bytearray(LOG)
    log[position] ^= 1
    return bytes(log)


def test_the_summary_names_the_damaged_message_and_goes_on() -> None:
    """Issue 22 B10: one flipped bit costs one message; the rest is counted, and the place is named (§3.3)."""
    stored = read(damaged(3 * SIZE - 1), most=4 * SIZE)
    (damage,) = stored.damaged
    given = Tally(6, frozenset(("clicks", "1-2", n * SIZE) for n in range(6)))
    summary = compared(6, 0, stored, {"newsfeed": given}, Loaded(5, "complete"))

    assert {offset for _, _, offset in stored.messages} == {n * SIZE for n in (0, 1, 3, 4, 5)}
    assert (damage.offset, damage.end) == (2 * SIZE, 3 * SIZE)
    assert summary.problems[0].startswith(f"clicks 1-2: the {SIZE} bytes at offset {2 * SIZE} cannot be read (fails")
    assert f"#browse?topic=clicks&partition=1-2&from={2 * SIZE}" in summary.problems[0]
    assert summary.problems[1:] == ["1 messages did not reach a broker, or cannot be read there"]
    assert "it does not add up:" in summary.lines()


def test_a_length_that_cannot_be_believed_ends_the_partition() -> None:
    """Issue 22 B10: behind a damaged length no message can be found; all bytes to the end are named as lost."""
    stored = read(damaged(2 * SIZE))
    (damage,) = stored.damaged

    assert len(stored.messages) == 2
    assert (damage.offset, damage.end) == (2 * SIZE, len(LOG))


def test_a_whole_log_has_no_damage() -> None:
    """Everything stored, delivered once and loaded adds up, however small the fetches."""
    stored = read(LOG, most=2 * SIZE)
    given = Tally(6, frozenset(stored.messages))

    assert stored.damaged == [] and compared(6, 0, stored, {"g": given}, Loaded(6, "complete")).problems == []


def test_examples_are_written_for_people() -> None:
    """Issue 22 B5: an example of a missing message is topic, partition and offset, not a Python tuple."""
    given = Tally(5, frozenset(("clicks", "1-2", n * SIZE) for n in range(5)))
    (problem,) = compared(6, 0, read(LOG), {"newsfeed": given}, Loaded(6, "complete")).problems

    assert problem == f"1 messages were not delivered to newsfeed, e.g. clicks 1-2 at offset {5 * SIZE}"
