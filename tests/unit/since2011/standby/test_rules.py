"""Who may lead, what all in sync hold, where histories part: the rules of a broker with standbys, without I/O."""

from __future__ import annotations

import pytest

from consumers.sim.standby.log import SimLog
from kafka2011.types import TopicPartition
from kafka2011.wire import encode_set
from since2011.replication.leader import ProposeIsr, SyncRules
from since2011.standby.copying import offsets_told, part_for, take
from since2011.standby.follow import NOT_PARTING, Position
from since2011.standby.in_sync import InSync, NotAnInSyncSet, decode, may_lead
from since2011.standby.leadership import Leadership, Visible

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
SET = InSync({"a": "disk-a", "b": "disk-b"}, version=4)


def test_only_members_in_sync_may_lead() -> None:
    """Issue 27, build 1: the set to store with the election holds who is in sync and there; nobody else may run."""
    alive = {"b": "disk-b", "c": "disk-c"}
    assert may_lead(SET, "b", "disk-b", alive) == InSync({"b": "disk-b"}, version=4)
    assert may_lead(SET, "b", "disk-b", alive | {"a": "disk-a"}) == SET
    assert may_lead(SET, "c", "disk-c", alive) is None
    assert may_lead(None, "c", "disk-c", alive) == InSync({"c": "disk-c"})


def test_a_disk_that_was_replaced_is_not_in_sync() -> None:
    """A member is listed with its disk: one that comes back empty may not lead, and counts for nobody's set."""
    assert may_lead(SET, "a", "another", {"a": "another"}) is None
    assert may_lead(SET, "b", "disk-b", {"a": "another", "b": "disk-b"}) == InSync({"b": "disk-b"}, version=4)


def test_one_that_misses_files_leaves_it_to_another() -> None:
    """A member that has lost files leads only if there is no other in sync."""
    alive = {"a": "disk-a", "b": "disk-b"}
    assert may_lead(SET, "a", "disk-a", alive, whole=False) is None
    assert may_lead(SET, "a", "disk-a", {"a": "disk-a"}, whole=False) == InSync({"a": "disk-a"}, version=4)


def test_the_node_is_read_as_it_was_written() -> None:
    """The in-sync set as JSON; anything else there is an error by name, and nobody leads."""
    assert decode(SET.encode(), 4) == SET
    for text in (b"", b"{}", b"[1]", b'{"in_sync": {}}', b'{"in_sync": {"z": "disk"}}'):
        with pytest.raises(NotAnInSyncSet):
            decode(text, 0)


def _led(isr: dict[int, str], min_insync: int = 1) -> Leadership:
    led = Leadership(0, 7, isr, 4, 3, SyncRules(lag_s=10, grace_s=0.5, min_insync=min_insync), 0.0)
    led.lead(ONE, 0, 0, 0.0)
    led.lead(TWO, 0, 0, 0.0)
    return led


def test_visible_is_what_every_member_in_sync_holds() -> None:
    """Issue 27, build 3: flushed here and held by all in sync; a member tells what it has by what it asks for."""
    led = _led({0: "x", 1: "y"})
    assert led.fetched(1, "y", {ONE: 0, TWO: 0}, 0.1) == []
    assert led.appended(ONE, 100, 0.2) == []
    assert led.fetched(1, "y", {ONE: 60, TWO: 0}, 0.3) == [Visible(ONE, 60)]
    assert led.fetched(1, "y", {ONE: 120, TWO: 0}, 0.4) == [Visible(ONE, 100)]


def test_a_member_joins_when_it_has_caught_up_everywhere() -> None:
    """One set for all partitions: a member joins when it has come far enough in each, and is then waited for."""
    led = _led({0: "x"})
    assert led.appended(ONE, 100, 0.1) == [Visible(ONE, 100)]
    assert led.fetched(1, "y", {ONE: 100}, 0.2) == []
    assert led.fetched(1, "y", {ONE: 50, TWO: 0}, 0.2) == []
    (proposed,) = led.fetched(1, "y", {ONE: 100, TWO: 0}, 0.3)
    assert isinstance(proposed, ProposeIsr)
    assert (proposed.isr, proposed.version) == ((0, 1), 4)
    assert led.appended(ONE, 200, 0.4) == []
    assert led.isr_written(5, 0.5) == []
    assert led.fetched(1, "y", {ONE: 200, TWO: 0}, 0.6) == [Visible(ONE, 200)]


def test_who_falls_behind_leaves_by_time_and_only_when_it_is_stored() -> None:
    """A member that lacks something for ``standby.lag.ms`` leaves; until that is stored it is waited for."""
    led = _led({0: "x", 1: "y"})
    led.fetched(1, "y", {ONE: 0, TWO: 0}, 0.0)
    led.appended(TWO, 10, 1.0)
    led.fetched(1, "y", {ONE: 0, TWO: 0}, 1.0)
    assert led.tick(9.0) == []
    (proposed,) = led.tick(12.0)
    assert isinstance(proposed, ProposeIsr)
    assert proposed.isr == (0,)
    assert led.appended(ONE, 10, 12.1) == []
    assert set(led.isr_written(5, 12.2)) == {Visible(ONE, 10), Visible(TWO, 10)}


def test_another_disk_leaves_the_set_first() -> None:
    """A member in sync that asks with another disk is taken out, and what it says does not count."""
    led = _led({0: "x", 1: "y"})
    (proposed,) = led.fetched(1, "new", {ONE: 0, TWO: 0}, 0.1)
    assert isinstance(proposed, ProposeIsr)
    assert proposed.isr == (0,)


def test_too_few_in_sync_makes_nothing_visible() -> None:
    """``standby.min.insync``: with fewer members nothing is acknowledged by all (KAFKA-15583)."""
    led = _led({0: "x"}, min_insync=2)
    assert not led.has_enough
    assert led.appended(ONE, 10, 0.1) == []


def _entry(text: bytes) -> bytes:
    return encode_set([text])


def test_a_copy_has_the_leaders_bytes_and_segments() -> None:
    """A member appends whole entries, in files that begin where the leader's do: members are equal under ``cmp``."""
    leader, copy = SimLog(), SimLog()
    leader.history.assign(7, 0)
    for n in range(40):
        leader.append(_entry(b"message %d" % n * (1 + n % 5)))
    while copy.end_offset < leader.end_offset:
        at = Position(ONE, copy.history.latest, copy.end_offset, copy.watermark, copy.first_offset)
        part = part_for(ONE, at, leader, leader.history, 97)
        assert part is not None
        take(part, memoryview(leader.bytes_at(part.offset, part.size)), copy, copy.history)
    assert (copy.data, copy.segments, copy.history.entries) == (leader.data, leader.segments, leader.history.entries)
    assert len(copy.segments) > 2


def test_where_histories_part_a_copy_is_cut() -> None:
    """What only an old leader had is cut off where the epochs part, and counts for nothing until then (KIP-101)."""
    leader, copy = SimLog(), SimLog()
    for log in (leader, copy):
        log.history.assign(5, 0)
        log.append(_entry(b"both"))
    both = leader.end_offset
    copy.append(_entry(b"only the old leader had it"))
    leader.history.assign(9, both)
    leader.append(_entry(b"the new leader's own words"))
    at = Position(ONE, 5, copy.end_offset, 0, 0)

    assert offsets_told({ONE: at}, {ONE: leader}, lambda _: leader.history) == {}
    part = part_for(ONE, at, leader, leader.history, 1000)
    assert part is not None
    assert part.parting == (5, both)
    take(part, memoryview(b""), copy, copy.history)
    assert copy.end_offset == both

    part = part_for(ONE, at._replace(offset=both), leader, leader.history, 1000)
    assert part is not None
    assert (part.parting, part.epoch) == (NOT_PARTING, 9)
    take(part, memoryview(leader.bytes_at(part.offset, part.size)), copy, copy.history)
    assert (copy.data, copy.history.entries) == (leader.data, leader.history.entries)


def test_a_copy_without_a_history_begins_anew() -> None:
    """Bytes that no epoch is known of prove nothing: they go, and everything is copied."""
    leader, copy = SimLog(), SimLog()
    leader.history.assign(5, 0)
    leader.append(_entry(b"the leader's"))
    copy.append(_entry(b"who knows where from"))
    part = part_for(ONE, Position(ONE, -1, copy.end_offset, 0, 0), leader, leader.history, 1000)
    assert part is not None
    take(part, memoryview(b""), copy, copy.history)
    assert copy.end_offset == 0
