"""The warehouse against its model: any order of loads, rewinds, backfills, compactions, vacuums, requeues, crashes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.property.etl.machine import CRASHES, STEPS, World, settled

RUNS = int(os.environ.get("KAFKA2011_WAREHOUSE_RUNS", "0"))
"""By hand: so many random sequences, and every order of any four steps (``make etl-machine``)."""

crashes = st.sampled_from((None, None, *CRASHES))
kinds = st.text("abx", min_size=1, max_size=4)


class WarehouseMachine(RuleBasedStateMachine):
    """Everything a person can do to a table."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(partition=st.integers(0, 1), kinds=kinds, packed=st.booleans())
    def send(self, partition: int, kinds: str, packed: bool) -> None:
        self.world.send(partition, kinds, packed)

    @rule(partition=st.integers(0, 1), kinds=kinds, limit=st.sampled_from((None, None, 100)), crash=crashes)
    def load(self, partition: int, kinds: str, limit: int | None, crash: str | None) -> None:
        self.world.send(partition, kinds)
        self.world.load(limit, crash)

    @rule(choice=st.integers(0, 30), crash=crashes)
    def rewind(self, choice: int, crash: str | None) -> None:
        self.world.rewind(choice, crash)

    @rule(crash=crashes)
    def backfill(self, crash: str | None) -> None:
        self.world.backfill(crash)

    @rule(crash=crashes)
    def requeue(self, crash: str | None) -> None:
        self.world.requeue(crash)

    @rule(crash=crashes)
    def compact(self, crash: str | None) -> None:
        self.world.compact(crash)

    @rule()
    def vacuum(self) -> None:
        self.world.vacuum()

    @rule(partition=st.integers(0, 1))
    def retain(self, partition: int) -> None:
        self.world.retain(partition)

    @rule()
    def restore(self) -> None:
        self.world.restore()

    @rule()
    def learn(self) -> None:
        self.world.learn()

    def teardown(self) -> None:
        self.world.close()


def test_rows_equal_the_log_whatever_is_done_to_the_table() -> None:
    """After every step each message of the log is there once, as a row, a dead row or in a gap (issue 21, point 1)."""
    chosen = settings(max_examples=40, stateful_step_count=10)
    if RUNS:
        chosen = settings(max_examples=RUNS, stateful_step_count=12, derandomize=False, database=None)
    run_state_machine_as_test(WarehouseMachine, settings=chosen)


@pytest.fixture(scope="module")
def past() -> Iterator[World]:
    """A world with a past, to be copied."""
    world = settled(World())
    yield world
    world.close()


ORDERS = list(product(STEPS, repeat=4))


def step(world: World, name: str) -> None:
    for act in STEPS[name]:
        act(world)


@pytest.mark.parametrize("order", ORDERS[:: len(ORDERS) // 12], ids="-".join)
def test_some_four_steps_in_any_order(past: World, order: tuple[str, ...]) -> None:
    """Load, rewind back and forth, backfill, compact, vacuum, requeue: no order of four loses or doubles a row."""
    world = World(like=past)
    try:
        for name in order:
            step(world, name)
    finally:
        world.close()


@pytest.mark.skipif(not RUNS, reason="2,401 orders: by hand, make etl-machine")
@pytest.mark.parametrize("order", list(product(STEPS, repeat=2)), ids="-".join)
def test_every_four_steps_in_any_order(past: World, order: tuple[str, ...]) -> None:
    """The same for every order of four; orders that begin alike share their beginning, and go on from copies of it."""
    world = World(like=past)
    try:
        for name in order:
            step(world, name)
        for third in STEPS:
            walk(world, (*order, third))
    finally:
        world.close()


def walk(before: World, order: tuple[str, ...]) -> None:
    """Take the last step of an order on a copy of the world before it, then every step after that, four in all."""
    world = World(like=before)
    try:
        step(world, order[-1])
        for following in STEPS if len(order) < 4 else ():
            walk(world, (*order, following))
    except AssertionError as error:
        error.add_note(f"after {' '.join(order)}")
        raise
    finally:
        world.close()
