"""The tests of lab 5 that students see. They run in the grader's process and call your program."""

from __future__ import annotations

from typing import Any

from classroom.labs.lab import Bench, Tests, check, expect
from classroom.labs.registry import Registry, tree
from zk_registry.fake import FakeZooKeeper
from zk_registry.operations import Create, Delete, Set

SEEN = Tests(seen=True)
GROUP = "/consumers/g"


class World:
    """A ZooKeeper with two brokers, the student's member ``me`` and a member of somebody else's."""

    def __init__(self, bench: Bench) -> None:
        self.lines: list[str] = []
        self.zookeeper = FakeZooKeeper()
        self.registry = Registry(self.zookeeper, self.lines)
        self._others = self.zookeeper.session()
        self.do(Create("/brokers/topics/t/0", b"2", ephemeral=True, make_parents=True))
        self.do(Create("/brokers/topics/t/1", b"1", ephemeral=True, make_parents=True))
        self._sandbox = bench.student(objects={"zk": self.registry})
        self._sandbox.__enter__()
        self.me: Any = self._sandbox.Member(self.registry, "g", "me", "t")

    def do(self, operation: Any) -> None:
        """Somebody else does something."""
        self.lines.append(f"somebody else: {operation}")
        self._others.perform(operation)

    def joins(self, name: str, topic: str = "t") -> None:
        """Somebody else joins the group."""
        self.do(Create(f"{GROUP}/ids/{name}", topic.encode(), ephemeral=True, make_parents=True))

    def claims(self, partition: str, name: str = "other") -> None:
        """Somebody else claims a partition."""
        self.do(Create(f"{GROUP}/owners/t/{partition}", name.encode(), ephemeral=True, make_parents=True))

    def node(self, path: str) -> tuple[bytes, int] | None:
        """A node's value and owner."""
        return tree(self.zookeeper).get(path)

    def is_changed(self) -> bool:
        """Hand over the watches that fired; what the member says then."""
        self.registry.hand_over(self.me)
        return bool(self.me.changed())


@SEEN.add(
    points=10, hint="zk.create(path, topic.encode(), True). NodeExists: whose is it? zk.exists tells the session."
)
def joining(bench: Bench) -> None:
    """join() makes an ephemeral node with the topic as its value; a node of another session is in the way."""
    world = World(bench)
    expect(world.me.join(), True, "join()")
    expect(world.node(f"{GROUP}/ids/me"), (b"t", world.registry.session()), "the id node: value and owner")
    expect(world.me.join(), True, "join() once more, in the same session")
    other = World(bench)
    other.joins("me")
    expect(other.me.join(), False, "join() while another session holds the id")


@SEEN.add(
    points=10, hint="children of /brokers/topics/t are brokers; the value of each is a number. Sort by (int, int)."
)
def the_partitions_of_a_topic(bench: Bench) -> None:
    """partitions() lists every partition of every broker, sorted by numbers."""
    world = World(bench)
    expect(world.me.partitions(), ["0-0", "0-1", "1-0"], "partitions()")
    world.do(Create("/brokers/topics/t/10", b"11", ephemeral=True))
    wanted = ["0-0", "0-1", "1-0", *(f"10-{i}" for i in range(11))]
    expect(world.me.partitions(), wanted, "partitions() with eleven more on broker 10")


@SEEN.add(points=8, hint="Read the value of each id node; those with another topic do not count.")
def who_is_in_the_group(bench: Bench) -> None:
    """consumers() lists the ids that read this topic, sorted."""
    world = World(bench)
    world.joins("zoe")
    world.joins("ben", topic="u")
    world.joins("adam")
    world.me.join()
    expect(world.me.consumers(), ["adam", "me", "zoe"], "consumers()")


@SEEN.add(
    points=12, hint="Just create the node: ZooKeeper lets only one session do it. Looking first would be too early."
)
def claiming(bench: Bench) -> None:
    """claim() makes the owner node; what somebody else has is not ours; offsets are kept."""
    world = World(bench)
    world.me.join()
    world.claims("0-1")
    expect(
        [world.me.claim("0-0"), world.me.claim("0-1")], [True, False], "claim of a free partition and of a taken one"
    )
    expect(world.node(f"{GROUP}/owners/t/0-0"), (b"me", world.registry.session()), "the owner node: value and owner")
    expect(world.me.claims(), ["0-0"], "claims()")
    expect(world.me.claim("0-0"), True, "claim of what is ours already")
    expect(world.me.stored("0-0"), None, "stored() before anything is stored")
    world.me.store("0-0", 120)
    world.me.store("0-0", 240)
    expect(world.me.stored("0-0"), 240, "stored() after store(120) and store(240)")
    world.me.release("0-0")
    expect(
        [world.node(f"{GROUP}/owners/t/0-0"), world.me.claims()], [None, []], "owner node and claims() after release"
    )
    expect(
        world.node(f"{GROUP}/offsets/t/0-0"), (b"240", 0), "the offset node: value, and owner 0, for it is persistent"
    )


@SEEN.add(
    points=8, hint="Pass watch=True to the calls that read. watched() sets a flag, changed() returns and clears it."
)
def a_change_is_noticed(bench: Bench) -> None:
    """After a member joins, a broker goes or a count changes, changed() is True, once."""
    world = World(bench)
    world.me.join()
    for what, operation in (
        ("a member joined", Create(f"{GROUP}/ids/zoe", b"t", ephemeral=True)),
        ("a broker went away", Delete("/brokers/topics/t/1")),
        ("a broker has more partitions", Set("/brokers/topics/t/0", b"5")),
    ):
        world.me.partitions()
        world.me.consumers()
        check(not world.is_changed(), "changed() is True though nothing happened")
        world.do(operation)
        check(world.is_changed(), f"{what}, and changed() is False")
        check(not world.is_changed(), "changed() is still True at the second call")
