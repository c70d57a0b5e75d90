"""What the page reads out of ZooKeeper's tree."""

from __future__ import annotations

from classroom.observatory.registry_tree import Tree, changes, read_tree, shared
from zk_registry.fake import FakeSession, FakeZooKeeper
from zk_registry.operations import Create


def test_the_four_registries_are_read() -> None:
    """Brokers, consumers, owners and offsets are found where 0.7 puts them (§3.2)."""
    session = FakeZooKeeper().session()
    session.start()
    for path, value, ephemeral in [
        ("/brokers/ids/3", b"h-1:h:9092", True),
        ("/brokers/topics/clicks/3", b"2", True),
        ("/consumers/g/ids/g_h-1-ab", b'{ "clicks": 1 }', True),
        ("/consumers/g/owners/clicks/3-0", b"g_h-1-ab-0", True),
        ("/consumers/g/offsets/clicks/3-0", b"120", False),
        ("/consumers/g/offsets/clicks/3-1", b"garbage", False),
    ]:
        session.perform(Create(path, value, ephemeral=ephemeral, make_parents=True))
    tree = read_tree(session)

    assert tree.brokers == {"3": ("h", 9092)}
    assert tree.groups["g"]["members"] == ["g_h-1-ab"]
    assert tree.groups["g"]["owners"] == {"clicks": {"3-0": "g_h-1-ab"}}
    assert tree.groups["g"]["offsets"] == {"clicks": {"3-0": 120}}
    ephemerals = {path for path, _, owner, _ in tree.nodes if owner}
    assert ephemerals == {
        "/brokers/ids/3",
        "/brokers/topics/clicks/3",
        "/consumers/g/ids/g_h-1-ab",
        "/consumers/g/owners/clicks/3-0",
    }
    watched = {path for path, _, _, bell in tree.nodes if bell}
    assert watched == {"/consumers/g/ids", "/brokers/ids", "/brokers/topics/clicks"}


def _group_of(session: FakeSession, name: str, partitions: int) -> None:
    for p in range(partitions):
        session.perform(Create(f"/consumers/{name}/offsets/clicks/0-{p}", b"7", make_parents=True))


def test_the_group_somebody_looks_at_is_read_whole() -> None:
    """Of a tree too large for one look, the wanted group is read whole and the others are marked (observatory)."""
    session = FakeZooKeeper().session()
    session.start()
    for name in ("ada", "bob", "eve"):
        _group_of(session, name, 10)
    tree = read_tree(session, {"eve"}, limit=15)

    assert len(tree.groups["eve"]["offsets"]["clicks"]) == 10
    assert {name for name, group in tree.groups.items() if group.get("partial")} == {"ada", "bob"}


def test_copies_of_modern_offsets_are_left_alone() -> None:
    """They may be many thousands, and the page has modern groups from their coordinators (observatory)."""
    session = FakeZooKeeper().session()
    session.start()
    for path in ("/kafka2011/groups/3/g/t/0", "/kafka2011/groups/coordinators/3", "/kafka2011/rows/t"):
        session.perform(Create(path, make_parents=True))
    assert [node[0] for node in read_tree(session).nodes] == ["/kafka2011", "/kafka2011/rows", "/kafka2011/rows/t"]


def test_changes_are_nodes_that_came_went_or_have_another_session() -> None:
    """A vanished, a new and a re-made ephemeral node are changes; a new value is not (§3.2)."""
    before = Tree([["/a", "1", None, False], ["/b", "x", "0x1", False], ["/c", "x", "0x1", False]])
    after = Tree([["/a", "2", None, False], ["/b", "x", "0x2", False], ["/d", "x", "0x2", False]])

    assert sorted(changes(before, after)) == [["/b", "new", "0x2"], ["/c", "gone", "0x1"], ["/d", "new", "0x2"]]


def test_what_is_as_it_was_is_kept_once() -> None:
    """Frames share the parts that did not change, so that an hour of them costs only the changes."""
    session = FakeZooKeeper().session()
    session.start()
    _group_of(session, "g", 3)
    first = read_tree(session)
    second = shared(first, read_tree(session))

    assert all(new is old for new, old in zip(second.nodes, first.nodes, strict=True))
    assert second.groups["g"]["offsets"] is first.groups["g"]["offsets"]
