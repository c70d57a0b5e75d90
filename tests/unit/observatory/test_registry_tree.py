"""What the page reads out of ZooKeeper's tree."""

from __future__ import annotations

from consumers.observatory.registry_tree import read_tree
from zk_registry.fake import FakeZooKeeper
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
        "/brokers/ids/3", "/brokers/topics/clicks/3", "/consumers/g/ids/g_h-1-ab", "/consumers/g/owners/clicks/3-0"
    }
    watched = {path for path, _, _, bell in tree.nodes if bell}
    assert watched == {"/consumers/g/ids", "/brokers/topics/clicks"}
