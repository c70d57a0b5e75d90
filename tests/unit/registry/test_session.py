"""A session through the death of its client, and beside a ZooKeeper that is of no use."""

from __future__ import annotations

import pytest

from consumers import Consumer
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from tests.unit.registry.scripted_server import ScriptedServer
from tests.waiting import until
from zk_registry import server_age
from zk_registry.operations import ConnectionLoss, Exists, Get, NoNode, SessionExpired
from zk_registry.server_age import ZooKeeperTooOld
from zk_registry.session import ZooKeeperSession
from zk_registry.states import SessionState


def names(journal: Journal) -> list[str]:
    return [entry.event.name for entry in journal.since(0)]


def test_a_client_whose_thread_dies_is_replaced_at_once() -> None:
    """An answer that nobody waits for ends kazoo's thread: that is told, what was owned counts as lost, and a new
    session begins (Issue 19 B9)."""
    journal = Journal()
    with ScriptedServer(garble=1) as server, ZooKeeperSession(server.connect, journal=journal) as session:
        states: list[SessionState] = []
        session.on_state(states.append)
        first = session.session_id

        with pytest.raises(ConnectionLoss):
            session.perform(Exists("/x"))
        until(lambda: session.incarnation == 2 and states[-1:] == [SessionState.CONNECTED], "a new session has begun")

        assert session.perform(Exists("/x")) is None
        assert session.session_id != first and session.trouble is None and session.failure is None
        assert states == [SessionState.LOST, SessionState.CONNECTED]
        told = [entry.event for entry in journal.since(0) if entry.event.name == "client_died"]
        assert "xids do not match" in str(told[0])


def test_a_client_that_dies_again_and_again_is_replaced_less_and_less_often() -> None:
    """Whatever the cause, it is not made worse by trying on without a pause, and never given up (Issue 19 B9)."""
    with ScriptedServer(garble=4) as server, ZooKeeperSession(server.connect) as session:

        def answered() -> bool:
            try:
                session.perform(Get("/x"))
            except NoNode:
                return True
            except (ConnectionLoss, SessionExpired):
                return False
            return False

        until(answered, "the server answers as it should")
        assert session.incarnation == 5


def test_a_zookeeper_from_before_transactions_is_refused_by_name() -> None:
    """ZooKeeper 3.3 drops transactions without a word: the session does not start, and says what to do; commands and
    consumers with it (Issue 19 A3)."""
    with ScriptedServer(is_old=True) as server:
        consumer = Consumer(server.connect, "g")
        for start in (ZooKeeperSession(server.connect).start, lambda: consumer.create_message_streams("t")):
            with pytest.raises(ZooKeeperTooOld, match=rf"{server.connect} is version 3\.3\.6.*3\.4 or newer.*zk start"):
                start()


def test_a_server_that_only_looks_old_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No word about read-only, but transactions are answered: it will do (Issue 19 A3)."""
    with ScriptedServer() as server:
        monkeypatch.setattr(server_age, "_YOUNG_ANSWER", 1000)
        server_age.check(server.connect)


def test_nothing_is_said_of_a_server_that_does_not_answer() -> None:
    """Whether it is there is the session's business (Issue 19 A3)."""
    with ScriptedServer(is_old=True) as server:
        gone = server.connect
    server_age.check(gone)


def test_a_zookeeper_replaced_by_an_old_one_is_named_and_waited_for() -> None:
    """Found out while it runs: no session as things are, and the reason is there for everybody who asks; once the
    server is new enough, all goes on (Issue 19 A3)."""
    journal = Journal()
    with ScriptedServer() as server, ZooKeeperSession(server.connect, journal=journal) as session:
        server.is_old, server.garble = True, 1
        with pytest.raises(ConnectionLoss):
            session.perform(Exists("/x"))
        until(lambda: session.failure is not None, "the age of the server is known")

        assert isinstance(session.failure, Kafka2011Error)
        assert "3.4 or newer" in (session.trouble or "")
        with pytest.raises(SessionExpired, match=r"3\.4 or newer"):
            session.perform(Exists("/x"))

        server.is_old = False
        until(lambda: session.state is SessionState.CONNECTED, "a session with the new server")
        assert session.failure is None and session.trouble is None
        assert names(journal).count("server_refused") == 1
