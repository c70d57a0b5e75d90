"""The two metadata stores: what is written, what is read again, what damage leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from since2011.topics.file_store import FILE, DamagedMetadata, FileStore
from since2011.topics.image import BrokerImage
from since2011.topics.zookeeper_store import ZooKeeperStore
from tests.waiting import until
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.modern import paths
from zk_registry.modern.registry import CHUNK
from zk_registry.modern.texts import Assignment, Endpoint, PartitionState, encode_change, encode_config
from zk_registry.operations import Create, Delete, Get, NoNode, Pipeline, Set
from zk_registry.registration import BrokerIdTaken


@pytest.fixture
def world() -> FakeZooKeeper:
    return FakeZooKeeper(schedule=lambda session, notify: notify())


def started(world: FakeZooKeeper, broker_id: int = 1, session: FakeSession | None = None) -> ZooKeeperStore:
    store = ZooKeeperStore(session or world.session(), broker_id, patience_s=0)
    store.start()
    return store


def value(world: FakeZooKeeper, path: str) -> bytes:
    found: bytes = world.session().perform(Get(path)).value
    return found


def test_a_new_topic_stands_as_a_controller_would_write_it(world: FakeZooKeeper) -> None:
    """Topic, settings and states: first replica leads, epoch 0, all in sync (design §3.1, point 1)."""
    store = started(world)
    topic = store.create_topic("t", {0: (2, 3), 1: (3, 1)}, {"retention.ms": "5"})
    assert value(world, "/brokers/topics/t") == Assignment({0: (2, 3), 1: (3, 1)}, topic.topic_id).encode()
    assert value(world, "/brokers/topics/t/partitions/1/state") == PartitionState(3, 0, (3, 1)).encode()
    assert value(world, "/config/topics/t") == encode_config({"retention.ms": "5"})
    assert value(world, "/brokers/topics/t/partitions/1") == b""
    store.close()


def test_with_a_controller_only_the_topic_is_written(world: FakeZooKeeper) -> None:
    """Where a controller is elected, states and deletions are its work (docs/since-2011.md)."""
    store = started(world)
    other = world.session()
    other.perform(Create("/controller", b'{"version":2,"brokerid":7,"timestamp":"1"}', ephemeral=True))
    until(lambda: store.image.controller_id == 7, "the controller is seen")
    topic = store.create_topic("t", {0: (1,)}, {})
    assert topic.partitions[0].leader == -1
    state = PartitionState(1, 4, (1,), 9)
    other.perform(Create("/brokers/topics/t/partitions/0/state", state.encode(), make_parents=True))
    until(lambda: store.image.topics["t"].partitions[0].leader_epoch == 4, "the controller's decision is seen")
    store.delete_topic("t")
    assert other.perform(Get("/admin/delete_topics/t")).value == b""
    assert "t" not in store.image.topics, "it is gone for clients before its replicas are"
    other.perform(Delete("/admin/delete_topics/t"))
    until(lambda: "t" in store.image.topics, "the controller deletes no topics, and it is back")
    store.close()


def test_what_a_crashed_creator_left_is_finished(world: FakeZooKeeper) -> None:
    """A partition without a state gets one from its first replica; a half deleted topic goes (zk_registry.modern)."""
    store = started(world)
    store.create_topic("gone", {0: (1,)}, {})
    session = world.session()
    session.perform(Create("/brokers/topics/half", Assignment({0: (1, 2), 1: (2, 1)}).encode()))
    session.perform(Create("/admin/delete_topics/gone"))
    store.close()
    again = started(world)
    again.register(BrokerImage(1, (Endpoint("PLAINTEXT", "h", 1),)))
    assert "gone" not in again.image.topics
    first, second = again.image.topics["half"].partitions
    assert (first.leader, first.isr, second.leader) == (1, (1, 2), -1)
    again.close()


def test_large_topics_are_made_and_deleted(world: FakeZooKeeper) -> None:
    """A topic of more partitions than fit one transaction is whole all the same (zk_registry.modern)."""
    store = started(world)
    topic = store.create_topic("big", dict.fromkeys(range(CHUNK * 2 + 5), (1,)), {})
    assert all(partition.leader == 1 for partition in topic.partitions)
    store.delete_topic("big")
    assert not store.image.topics
    left = world.session().perform(Pipeline((Get("/admin/delete_topics/big"), Get("/config/topics/big"))))
    assert all(isinstance(answer, NoNode) for answer in left)
    store.close()


def test_only_what_has_changed_is_read_again(world: FakeZooKeeper) -> None:
    """One topic more beside a thousand costs the reading of that one (brief: no re-reading of every topic)."""
    session = world.session()
    store = started(world, session=session)
    for n in range(200):
        store.create_topic(f"t{n}", {0: (1,)}, {})
    read: list[str] = []
    perform = session.perform

    def counted(operation: object, watcher: object = None) -> object:
        read.extend(str(each) for each in getattr(operation, "operations", (operation,)))
        return perform(operation, watcher)  # type: ignore[arg-type]

    session.perform = counted  # type: ignore[method-assign, assignment]
    other = started(world, 2)
    other.create_topic("one-more", {0: (1,)}, {})
    until(lambda: "one-more" in store.image.topics, "the topic is seen")
    assert len(read) < 12, read
    store.close()
    other.close()


def test_changed_settings_are_seen_by_notice(world: FakeZooKeeper) -> None:
    """A real tool's change of settings arrives by its notice, not by the node alone (docs/since-2011.md)."""
    store = started(world)
    store.create_topic("t", {0: (1,)}, {})
    tool = world.session()
    tool.perform(Set("/config/topics/t", encode_config({"segment.bytes": "100"})))
    assert store.image.config("topics/t") == {}
    tool.perform(Create(paths.CHANGE, encode_change("topics/t"), sequential=True))
    until(lambda: store.image.config("topics/t") == {"segment.bytes": "100"}, "the change is seen")
    store.close()


def test_a_lost_answer_is_looked_up(world: FakeZooKeeper) -> None:
    """A topic whose creation was not answered is there, and the creator knows it by its id (design D13)."""
    session = world.session()
    store = started(world, session=session)
    answer = session.perform
    session.perform = lambda operation, watcher=None: (  # type: ignore[method-assign, assignment]
        session.lose_reply(applied=True) if type(operation).__name__ == "Multi" else None,
        answer(operation, watcher),
    )[1]
    assert store.create_topic("t", {0: (1,)}, {}).partitions[0].leader == 1
    store.close()


def test_a_broker_registers_again_after_expiry(world: FakeZooKeeper) -> None:
    """A new session means a new registration with a higher epoch (docs/since-2011.md)."""
    session = world.session()
    store = started(world, session=session)
    store.register(BrokerImage(1, (Endpoint("PLAINTEXT", "h", 9),), "r1"))
    epoch = store.image.brokers[1].epoch
    assert store.image.brokers[1].rack == "r1"
    session.expire()
    session.resume()
    until(lambda: 1 in store.image.brokers and store.image.brokers[1].epoch > epoch, "it is registered again")
    store.close()
    assert world.session().perform(Get("/cluster/id")).value


def test_an_id_can_be_had_once(world: FakeZooKeeper) -> None:
    """A second broker with the same id waits for the first to die, and is refused if it does not (§3.2)."""
    first = started(world)
    first.register(BrokerImage(1, (Endpoint("PLAINTEXT", "h", 9),)))
    second = started(world)
    waited = world.clock.monotonic()
    with pytest.raises(BrokerIdTaken, match="give this broker another brokerid"):
        ZooKeeperStore.register(_with_clock(second, world), BrokerImage(1, (Endpoint("PLAINTEXT", "g", 9),)))
    assert world.clock.monotonic() - waited >= 4
    first.close()
    second.close()


def _with_clock(store: ZooKeeperStore, world: FakeZooKeeper) -> ZooKeeperStore:
    store._clock = world.clock
    return store


def test_nonsense_is_passed_over(world: FakeZooKeeper) -> None:
    """A node nobody can read hides only itself (issue 25, bad input)."""
    session = world.session()
    store = started(world)
    store.create_topic("t", {0: (1,)}, {})
    for name, text in (("x", b"no json"), ("y", b'{"partitions":{"1":[1]}}'), ("z", b'{"partitions":{"0":["a"]}}')):
        session.perform(Create(f"/brokers/topics/{name}", text))
    session.perform(Create("/brokers/ids/77", b"creator:host:1", ephemeral=True))
    session.perform(Set("/config/topics/t", b"[]"))
    session.perform(Create(paths.CHANGE, b"{", sequential=True))
    session.perform(Delete("/brokers/topics/t/partitions/0/state"))
    again = started(world, 2)
    assert list(again.image.topics) == ["t"]
    assert again.image.brokers == {}
    store.close()
    again.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version":2}', '{"version":1,"topics":{"t":{}}}', "\x00"])
def test_a_damaged_file_is_named_and_kept(tmp_path: Path, text: str) -> None:
    """A file that cannot be read stops the broker with its name and what to do, and is not written over."""
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DamagedMetadata, match=r"metadata\.json cannot be read"):
        FileStore(tmp_path).start()
    assert (tmp_path / FILE).read_text() == text


def test_a_lone_broker_is_its_own_cluster(tmp_path: Path) -> None:
    """Without ZooKeeper the file is the cluster: one broker, its id, its topics (design §3.1, point 1)."""
    store = FileStore(tmp_path / "new")
    store.start()
    store.register(BrokerImage(4, (Endpoint("PLAINTEXT", "h", 9),)))
    seen: list[int] = []
    store.on_change(lambda image: seen.append(len(image.topics)))
    store.create_topic("t", {0: (4,)}, {})
    assert store.image.controller_id == 4
    assert seen == [1]
    assert len(store.image.cluster_id) == 22
