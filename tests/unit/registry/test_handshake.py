"""How long a silent server may keep a client from the others."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler

from zk_registry.handshake import PromptHandler

SESSION_S = 6.0


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times kazoo's own handler is told to wait, instead of waiting."""
    times: list[float] = []

    def connect(self: object, address: object, timeout: float, **options: object) -> socket.socket:
        times.append(timeout)
        return socket.socket()

    def select(self: object, reads: Any, writes: Any, errors: Any, timeout: float) -> tuple[list[Any], ...]:
        times.append(timeout)
        return [], [], []

    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", connect)
    monkeypatch.setattr(SequentialThreadingHandler, "select", select)
    return times


def attempt(handler: PromptHandler) -> None:
    """What kazoo does at each server."""
    with handler.create_connection(address=("h", 1), timeout=SESSION_S) as line:
        handler.select([], [line], [], SESSION_S / 3)
        handler.select([line], [], [], SESSION_S / 3)


def test_all_servers_are_asked_in_the_third_of_the_session_that_is_left(given: list[float]) -> None:
    """Two mute servers cost less than a third of the session: the third server is asked in time (§3.2)."""
    handler = PromptHandler(SESSION_S, 3)
    attempt(handler)
    attempt(handler)

    assert len(given) == 6
    assert 2 * max(given) < SESSION_S / 3


def test_a_slow_server_is_waited_for_now_and_then(given: list[float]) -> None:
    """Every third attempt gives a server as long as kazoo does: slow is not frozen (§3.2)."""
    handler = PromptHandler(SESSION_S, 3)
    for _ in range(6):
        attempt(handler)

    assert [time == pytest.approx(SESSION_S / 3) for time in given[::3]] == [False, False, True] * 2


def test_once_inside_kazoos_own_times_hold(given: list[float]) -> None:
    """The limit ends when a server has let us in (§3.2)."""
    handler = PromptHandler(SESSION_S, 3)
    attempt(handler)
    handler.connected()
    given.clear()
    handler.select([], [], [], 60.0)

    assert given == [60.0]
