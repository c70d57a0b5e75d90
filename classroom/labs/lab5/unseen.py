"""The tests of lab 5 that only the grader runs."""

from __future__ import annotations

from collections.abc import Callable

from classroom.labs.lab import Bench, Failed, Tests, check, expect
from classroom.labs.lab5.seen import GROUP, World
from classroom.labs.sandbox import StudentError
from zk_registry.operations import Create, Delete, Set

UNSEEN = Tests(seen=False)
_MOST_CALLS = 10
"""Positions at which something is let happen; the methods need about as many operations."""


def told(bench: Bench, world: World, name: str, test: Callable[[World], None]) -> None:
    """Run a part of a test; if it fails, its transcript is kept."""
    try:
        test(world)
    except (Failed, StudentError) as error:
        bench.replays[f"{name}.txt"] = "\n".join([*world.lines, f"FAILED: {error}"]) + "\n"
        raise Failed(f"{error}; the transcript is replays/{name}.txt") from None


@UNSEEN.add(points=8)
def only_mine_is_released(bench: Bench) -> None:
    """release() leaves the node of another session alone; claims and releases are cheap."""
    world = World(bench)
    world.me.join()
    world.claims("0-1")
    world.me.release("0-1")
    check(world.node(f"{GROUP}/owners/t/0-1") is not None, "release() deleted the owner node of somebody else")
    world.me.release("1-0")
    for method in ("claim", "release"):
        world.registry.fresh()
        getattr(world.me, method)("0-0")
        used = world.registry.n_operations
        check(used <= 2, f"{method}() of a partition takes {used} operations; two are enough")
    world.me.claim("0-0")
    world.do(Delete(f"{GROUP}/owners/t/0-0"))
    world.claims("0-0")
    world.me.release("0-0")
    check(world.node(f"{GROUP}/owners/t/0-0") is not None, "release() deleted the node of the partition's new owner")


@UNSEEN.add(points=8)
def nodes_vanish_while_you_read(bench: Bench) -> None:
    """A broker or a member that goes between two of your calls is left out, and nothing is raised."""
    for position in range(1, 5):
        world = World(bench)
        world.me.join()
        world.joins("adam")
        world.joins("zoe")
        world.registry.fresh()
        world.registry.before[position] = lambda world=world: world.do(Delete("/brokers/topics/t/1"))  # type: ignore[misc]
        told(bench, world, f"a-broker-goes-{position}", lambda world: _is_one_of(world, world.me.partitions()))
        world.registry.fresh()
        world.registry.before[position] = lambda world=world: world.do(Delete(f"{GROUP}/ids/zoe"))  # type: ignore[misc]
        told(bench, world, f"a-member-goes-{position}", lambda world: _members(world, world.me.consumers()))
    used = _cost(bench)
    check(used <= 12, f"consumers() takes {used} operations for ten members; 12 are enough")


def _is_one_of(world: World, got: object) -> None:
    check(got in (["0-0", "0-1"], ["0-0", "0-1", "1-0"]), f"partitions() gave {got} while broker 1 went away")


def _members(world: World, got: object) -> None:
    check(got in (["adam", "me"], ["adam", "me", "zoe"]), f"consumers() gave {got} while zoe went away")


def _cost(bench: Bench) -> int:
    world = World(bench)
    world.me.join()
    for i in range(9):
        world.joins(f"m{i}")
    world.registry.fresh()
    expect(len(world.me.consumers()), 10, "the number of consumers() with ten members")
    return world.registry.n_operations


@UNSEEN.add(points=14, limit_s=15.0)
def no_change_is_missed(bench: Bench) -> None:
    """Whenever something changes, between any two calls: it is in what was read, or changed() says so."""
    happenings = {
        "a-member-joins": Create(f"{GROUP}/ids/zoe", b"t", ephemeral=True),
        "a-broker-comes": Create("/brokers/topics/t/7", b"1", ephemeral=True),
        "a-broker-grows": Set("/brokers/topics/t/1", b"4"),
    }
    for name, operation in happenings.items():
        for position in range(1, _MOST_CALLS):
            world = World(bench)
            world.me.join()
            if bench.random.random() < 0.5:
                world.me.partitions(), world.me.consumers()
            world.registry.fresh()
            world.registry.before[position] = lambda world=world, operation=operation: world.do(operation)  # type: ignore[misc]
            told(bench, world, f"{name}-{position}", _nothing_missed)
            if not any(line.startswith("somebody else: ") and str(operation) in line for line in world.lines):
                break  # the two methods need fewer operations than that
    world = World(bench)
    world.do(Delete("/brokers/topics/t/0"))
    world.do(Delete("/brokers/topics/t/1"))
    world.do(Delete("/brokers/topics/t"))
    expect(world.me.partitions(), [], "partitions() of a topic that is not there")
    world.do(Create("/brokers/topics/t/3", b"1", ephemeral=True, make_parents=True))
    check(world.is_changed(), "a topic that was not there came, and changed() is False")


def _nothing_missed(world: World) -> None:
    seen = [world.me.partitions(), world.me.consumers()]
    world.registry.fresh()
    changed = world.is_changed()
    now = [world.me.partitions(), world.me.consumers()]
    check(changed or seen == now, f"you read {seen}, then it was {now}, and changed() was False")


@UNSEEN.add(points=12, limit_s=15.0)
def any_answer_may_get_lost(bench: Bench) -> None:
    """ConnectionLoss at any operation, done or not: the methods still do what they say."""
    for position in range(1, _MOST_CALLS):
        for done in (True, False):
            world = World(bench)
            world.registry.fresh()
            world.registry.lose[position] = done
            told(bench, world, f"lost-answer-{position}-{'done' if done else 'not-done'}", _all_the_same)


def _all_the_same(world: World) -> None:
    mine = world.registry.session()
    expect(world.me.join(), True, "join()")
    expect(world.me.claim("0-0"), True, "claim('0-0'), which nobody else wants")
    expect(world.me.claims(), ["0-0"], "claims()")
    expect(world.node(f"{GROUP}/owners/t/0-0"), (b"me", mine), "the owner node")
    world.me.store("0-0", 77)
    expect(world.me.stored("0-0"), 77, "stored()")
    world.me.release("0-0")
    expect(world.node(f"{GROUP}/owners/t/0-0"), None, "the owner node after release")


@UNSEEN.add(points=10)
def a_session_ends(bench: Bench) -> None:
    """After the session ended nothing is ours: a new registration, no claims, the successor's node untouched."""
    world = World(bench)
    world.me.join()
    world.me.claim("0-0")
    world.me.claim("0-1")
    world.me.store("0-0", 5)
    world.me.partitions(), world.me.consumers()
    world.registry.expire()
    world.claims("0-0", "heir")
    expect(world.me.expired(), True, "expired()")
    expect(world.node(f"{GROUP}/ids/me"), (b"t", world.registry.session()), "the id node, owned by the new session")
    expect(world.me.claims(), [], "claims() in the new session")
    check(
        world.me.changed(),
        "changed() after a new session: the old watches are gone, so everything has to be read again",
    )
    world.me.release("0-0")
    check(world.node(f"{GROUP}/owners/t/0-0") is not None, "release() deleted the node of whoever took over")
    expect([world.me.claim("0-0"), world.me.claim("0-1")], [False, True], "claims of what is taken and of what is free")
    expect(world.me.stored("0-0"), 5, "stored(): offsets outlive sessions")
