"""ZooKeeper without a majority: messages keep flowing, commits wait and come back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers import Consumer
from tests.integration.consumers.conftest import TOPIC, Arena
from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import RegistryError
from zk_registry.testing import fresh_chroot

SESSION_S = 6.0


@pytest.fixture
def arena(zk_ensemble: EmbeddedZooKeeper, tmp_path: Path) -> Iterator[Arena]:
    world = Arena(fresh_chroot(zk_ensemble.connect), tmp_path)
    try:
        yield world
    finally:
        world.close()


@pytest.mark.parametrize("frozen", [False, True], ids=["killed", "frozen"])
def test_messages_flow_while_zookeeper_has_no_majority(
    arena: Arena, zk_ensemble: EmbeddedZooKeeper, frozen: bool
) -> None:
    """Two of three servers away for longer than the session: data flows, commits wait and resume, whether the sessions
    outlive it or a frozen leader that wakes up ends them (§3.2)."""
    arena.broker(0)
    arena.send_everywhere()
    with Consumer(arena.connect, arena.group, session_timeout_s=SESSION_S, autocommit_interval_s=0.2) as consumer:
        stream = consumer.create_message_streams(TOPIC)[0]
        stream.timeout_s = 60.0
        seen = {next(stream).payload.decode() for _ in range(len(arena.sent))}
        consumer.commit()
        (leader,) = until(lambda: [n for n in range(3) if zk_ensemble.servers[n].mode() == "leader"], "one leads")
        down = [leader, (leader + 1) % 3]
        for server in down:
            zk_ensemble.pause(server) if frozen else zk_ensemble.kill(server)
        try:
            # Longer than the session, and than a consumer cut off alone would go on delivering.
            end = time.monotonic() + SESSION_S + 3.0
            while time.monotonic() < end:
                arena.send_everywhere()
                while not arena.sent <= seen:
                    seen.add(next(stream).payload.decode())
                time.sleep(0.1)
        finally:
            for server in down:
                zk_ensemble.resume(server) if frozen else zk_ensemble.restart(server, wait=False)

        def caught_up() -> bool:
            try:
                stream.finish()
                rows = arena.registry.describe(arena.group) or []
            except RegistryError:
                return False  # the test's own session is on its way back too
            return len(rows) == 2 and all(row.lag == 0 for row in rows)

        until(caught_up, "commits are back")
