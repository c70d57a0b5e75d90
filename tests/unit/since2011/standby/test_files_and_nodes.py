"""What a member keeps on disk and in ZooKeeper: epochs, its log's cuts, the election."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka2011.errors import LogCorrupt, NotServing
from kafka2011.log.log import Log
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore
from kafka2011.types import BrokerAddress, TopicPartition
from kafka2011.wire import encode_set
from since2011.standby.epochs import Epochs
from since2011.standby.in_sync import InSync
from since2011.standby.member_log import MemberLog
from since2011.standby.registry import StandbyRegistry
from since2011.standby.role import Role
from zk_registry.fake import FakeZooKeeper
from zk_registry.lease import Lease

WHERE = TopicPartition("t", 0)


def test_epochs_survive_and_those_beyond_the_log_do_not(tmp_path: Path) -> None:
    """The side file is forced before an epoch's first append: after a crash it may name an append that never came."""
    epochs = Epochs(tmp_path)
    epochs.of(WHERE).assign(5, 0)
    epochs.of(WHERE).assign(9, 100)
    again = Epochs(tmp_path)
    again.load({WHERE: 100})
    assert again.of(WHERE).entries == [(5, 0), (9, 100)]
    shorter = Epochs(tmp_path)
    shorter.load({WHERE: 99})
    assert shorter.of(WHERE).entries == [(5, 0)]
    (tmp_path / "epochs").write_text("something else")
    with pytest.raises(LogCorrupt, match="remove it"):
        Epochs(tmp_path).load({})


def _store(place: Path, role: Role) -> LogStore:
    store = LogStore(place, LogSettings(file_size=100))
    store.kind_of_log = lambda *args, **named: MemberLog(role, store.checkpoint, *args, **named)
    store.open()
    return store


def _copied(store: LogStore, n: int) -> MemberLog:
    log = cast(MemberLog, store.get_or_create("t", 0))
    start = log.segment_at(log.end_offset)[0]
    for number in range(n):
        entry = encode_set([b"message %03d" % number])
        start = log.end_offset if log.end_offset - start > 100 else start
        log.copy_in(memoryview(entry + entry[:7]), start)
    log.flush()
    return log


def test_a_cut_log_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Truncation writes the checkpoint first and cuts then: whatever is opened next is whole, and ends at the cut."""
    store = _store(tmp_path, Role(Lease(6.0)))
    log = _copied(store, 20)
    log.told(log.end_offset, 0)
    assert log.end_offset == 20 * 21
    log.cut(10 * 21)
    assert (log.end_offset, log.flushed_offset, log.visible_offset) == (210, 210, 210)
    store.close()
    again = _store(tmp_path, Role(Lease(6.0)))
    assert (cast(Log, again.get("t", 0)).end_offset, again.offline, again.missing) == (210, {}, {})
    again.close()


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_begun_anew_elsewhere_is_the_same_after_a_restart(tmp_path: Path, clean: bool) -> None:
    """A member that is too far behind, or lost its history, begins where its leader's log begins."""
    store = _store(tmp_path, Role(Lease(6.0)))
    log = _copied(store, 20)
    log.restart_at(1000)
    assert [path.name for path in sorted((tmp_path / "t-0").iterdir())] == ["00000000000000001000.kafka"]
    if clean:
        store.close()
    else:
        cast(Any, store._lock).release()
    again = _store(tmp_path, Role(Lease(6.0)))
    found = cast(Log, again.get("t", 0))
    assert (found.first_offset, found.end_offset, again.offline, again.missing) == (1000, 1000, {}, {})
    again.close()


def test_retention_follows_the_leader(tmp_path: Path) -> None:
    """A member deletes what its leader has deleted, and nothing by itself."""
    store = _store(tmp_path, Role(Lease(6.0)))
    log = _copied(store, 20)
    assert log.retain(by_age=True, at_most=100) == 0
    log.told(log.end_offset, 105)
    assert log.first_offset == 105
    log.told(log.end_offset, log.end_offset)
    assert log.first_offset == log.end_offset
    store.close()


def test_a_follower_serves_nobody(tmp_path: Path) -> None:
    """Reads, appends and offsets are refused by name unless this member leads and its lease holds (D22)."""
    store = _store(tmp_path, Role(Lease(6.0)))
    log = _copied(store, 3)
    for ask in (lambda: log.read(0, 10), lambda: log.append(b"", 0), lambda: log.offsets_before(-1, 1)):
        with pytest.raises(NotServing):
            ask()
    store.close()


def test_a_reader_further_than_the_watermark_waits(tmp_path: Path) -> None:
    """After a fail-over the watermark may be behind what readers have seen: they get nothing yet, no error."""
    lease = Lease(6.0)
    lease.heard(1, lease._clock.monotonic())
    role = Role(lease)
    store = _store(tmp_path, role)
    log = _copied(store, 3)
    role.take_over(cast(Any, SimpleNamespace(epoch=7, has_come_far_enough=lambda log: log.watermark >= 63)), 1)
    log.watermark = 21
    assert log.read(42, 100).size == 0
    assert log.read(0, 100).size == 21
    with pytest.raises(NotServing, match="try again"):
        log.offsets_before(-1, 1)
    log.watermark = 63
    assert log.offsets_before(-1, 1) == [63]
    store.close()


def test_an_election_checks_the_set_it_has_read() -> None:
    """Issue 27, build 1: one transaction; whoever read an older set, or comes second, is not elected."""
    zookeeper = FakeZooKeeper()
    one, other = (StandbyRegistry(zookeeper.session(), 0, name, f"disk-{name}") for name in "ab")
    one.enter("h:1")
    other.enter("h:2")
    assert one.alive() == {"a": "disk-a", "b": "disk-b"}
    assert one.in_sync() is None
    first = one.run(InSync({"a": "disk-a"}), BrokerAddress(0, "h", 1), 0)
    assert first is not None
    assert other.run(InSync({"b": "disk-b"}), BrokerAddress(0, "h", 2), 0) is None
    found = other.leader(lambda _: None)
    assert found == (BrokerAddress(0, "h", 1), first[0])

    read = other.in_sync()
    assert read == InSync({"a": "disk-a"}, first[1])
    stored = one.store(InSync({"a": "disk-a", "b": "disk-b"}, first[1]))
    assert stored == first[1] + 1
    assert other.store(InSync({"b": "disk-b"}, first[1])) is None


def test_an_election_with_an_older_set_fails() -> None:
    """The set has changed since it was read, and nobody leads now: the transaction does nothing."""
    zookeeper = FakeZooKeeper()
    session = zookeeper.session()
    one, other = StandbyRegistry(session, 0, "a", "disk-a"), StandbyRegistry(zookeeper.session(), 0, "b", "disk-b")
    won = one.run(InSync({"a": "disk-a"}), BrokerAddress(0, "h", 1), 0)
    assert won is not None
    one.store(InSync({"a": "disk-a", "b": "disk-b"}, won[1]))
    read = other.in_sync()
    assert read is not None
    one.store(InSync({"a": "disk-a"}, read.version))
    session.close()
    assert other.leader(lambda _: None) is None
    assert other.run(read, BrokerAddress(0, "h", 2), 0) is None
    assert other.leader(lambda _: None) is None
