"""A session with real ZooKeeper: states, deadlines, expiry, access lists, loss of the majority."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from kafka2011.errors import ConfigError
from kafka2011.events import Journal
from tests.waiting import until
from zk_registry.access import Access
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import (
    Children,
    ConnectionLoss,
    Create,
    Delete,
    Exists,
    Get,
    NoAuth,
    Node,
    NodeExists,
    RegistryError,
    SessionExpired,
    Set,
    ValueTooLarge,
)
from zk_registry.session import ZooKeeperSession, ZooKeeperUnreachable
from zk_registry.states import SessionState
from zk_registry.testing import expire, fresh_chroot


@pytest.fixture
def session(zk_connect: str) -> Iterator[ZooKeeperSession]:
    with ZooKeeperSession(zk_connect, timeout_s=20) as made:
        yield made


def test_an_expired_session_is_lost_and_a_new_one_begins(zk_connect: str, session: ZooKeeperSession) -> None:
    """Expiry is seen as LOST, then CONNECTED with a higher incarnation and none of the old ephemerals (§3.2)."""
    states: list[SessionState] = []
    session.on_state(states.append)
    session.perform(Create("/mine", ephemeral=True))
    told: list[str] = []
    session.perform(Get("/mine", watch=True), told.append)
    first = session.session_id

    expire(zk_connect, first, session.password)
    until(lambda: states[-2:] == [SessionState.LOST, SessionState.CONNECTED], "the second session has begun")

    assert session.incarnation == 2
    assert session.session_id != first and session.perform(Exists("/mine")) is None
    until(lambda: told == ["/mine"], "the watcher has been told that its watch is gone")


def test_callbacks_may_use_the_session(zk_connect: str, session: ZooKeeperSession) -> None:
    """Watchers and state listeners run in a thread from which ZooKeeper can be asked (§3.2)."""
    seen: list[object] = []
    session.on_state(lambda state: seen.append(session.perform(Children("/"))))
    session.perform(Exists("/x", watch=True), lambda path: seen.append(session.perform(Get(path)).value))

    session.perform(Create("/x", b"there"))
    until(lambda: b"there" in seen, "the watcher has read the node")
    expire(zk_connect, session.session_id, session.password)
    until(lambda: ("x",) in seen, "the listener has read the tree")


def test_a_callback_that_fails_stops_nobody(session: ZooKeeperSession) -> None:
    """One watcher's exception does not keep others from being called (§3.2)."""
    told = threading.Event()
    session.perform(Exists("/x", watch=True), lambda path: 1 / 0)
    session.perform(Exists("/y", watch=True), lambda path: told.set())

    session.perform(Create("/x"))
    session.perform(Create("/y"))

    assert told.wait(60)


def test_a_call_has_a_deadline_when_the_server_hangs() -> None:
    """A frozen server costs a ConnectionLoss, not a hang; thawed in time, the session goes on (§3.2)."""
    with EmbeddedZooKeeper() as zookeeper:
        # The timeout is so long that no pause of a busy machine ends the session.
        session = ZooKeeperSession(zookeeper.connect, timeout_s=40, call_timeout_s=0.5)
        session.start()
        until(lambda: creates(session, "/mine"), "the node is there")
        zookeeper.pause()
        with pytest.raises(ConnectionLoss) as loss:
            session.perform(Set("/mine", b"perhaps"))
        assert loss.value.retriable and not loss.value.definite
        zookeeper.resume()
        node = until(lambda: read(session, "/mine"), "the server answers again")
        assert session.incarnation == 1 and node.ephemeral_owner == session.session_id
        session.close()


def test_a_dead_server_suspends_and_nothing_is_queued() -> None:
    """Without a server the session is SUSPENDED, operations are refused unsent, and closing is quick (§3.2)."""
    with EmbeddedZooKeeper() as zookeeper:
        session = ZooKeeperSession(zookeeper.connect, timeout_s=12, call_timeout_s=0.2)
        session.start()
        zookeeper.kill()
        until(lambda: session.state is SessionState.SUSPENDED, "the loss is noticed")
        assert session.suspended_since is not None
        with pytest.raises(ConnectionLoss, match="nothing was sent"):
            session.perform(Create("/later"))
        zookeeper.restart()
        until(lambda: session.state is SessionState.CONNECTED, "the server is found again")
        with ZooKeeperSession(zookeeper.connect) as other:
            assert other.perform(Exists("/later")) is None
        assert session.suspended_since is None
        zookeeper.kill()
        session.close()
        session.close()
        with pytest.raises(SessionExpired, match="closed"):
            session.perform(Exists("/later"))


def test_the_majority_gone_and_back_keeps_session_and_ephemerals(zk_ensemble: EmbeddedZooKeeper) -> None:
    """Two of three servers away: SUSPENDED, not LOST; when they return, the same session writes again (§3.2)."""
    with ZooKeeperSession(zk_ensemble.connect, timeout_s=40, call_timeout_s=5) as session:
        session.perform(Create("/mine", b"before", ephemeral=True))
        for index in (0, 1):
            zk_ensemble.kill(index)
        until(lambda: session.state is SessionState.SUSPENDED, "the loss of the majority is noticed")
        for index in (0, 1):
            zk_ensemble.restart(index, wait=False)
        until(lambda: writes(session, "/mine", b"after"), "writes are possible again")
        assert session.incarnation == 1


def test_the_leader_killed_is_a_short_pause(zk_ensemble: EmbeddedZooKeeper) -> None:
    """With the leader gone the other two go on, with every session and ephemeral (§3.2)."""
    leader = until(lambda: [n for n in range(3) if zk_ensemble.servers[n].mode() == "leader"], "there is a leader")[0]
    with ZooKeeperSession(zk_ensemble.connect, timeout_s=40, call_timeout_s=5) as session:
        session.perform(Create("/led", ephemeral=True))
        zk_ensemble.kill(leader)
        until(lambda: writes(session, "/led", b"after"), "the others have a leader")
        assert session.incarnation == 1 and zk_ensemble.leader() != leader
    zk_ensemble.restart(leader)


def test_a_chroot_is_a_tree_of_its_own(zookeeper: EmbeddedZooKeeper) -> None:
    """The chroot of a connect string is made on demand, level by level, and hides everything else.

    See docs/zookeeper.md.
    """
    connect = fresh_chroot(zookeeper.connect)
    for _ in range(2):
        with ZooKeeperSession(connect + "/deep/er", create_chroot=True) as inside, ZooKeeperSession(connect) as outside:
            inside.perform(Create("/x/y", b"v", ephemeral=True, make_parents=True))
            assert outside.perform(Get("/deep/er/x/y")).value == b"v"
            assert inside.perform(Children("/")) == ("x",)


def test_with_a_credential_others_may_read_only(zk_connect: str) -> None:
    """Nodes of a credential are readable by all and writable by none but it; /consumers stays open (row Z2)."""
    with ZooKeeperSession(zk_connect, access=Access("broker:secret")) as broker, ZooKeeperSession(zk_connect) as anyone:
        broker.perform(Create("/brokers/ids/0", b"h:h:1", ephemeral=True, make_parents=True))
        broker.perform(Create("/consumers/g/offsets/t/0-0", b"5", make_parents=True))

        assert anyone.perform(Get("/brokers/ids/0")).value == b"h:h:1"
        for forbidden in (
            Set("/brokers/ids/0", b"evil:evil:1"),
            Delete("/brokers/ids/0"),
            Create("/brokers/ids/1"),
            Set("/consumers/g/offsets/t/0-0", b"0"),
            Delete("/consumers/g"),
        ):
            with pytest.raises(NoAuth):
                anyone.perform(forbidden)
        anyone.perform(Create("/consumers/theirs"))
        with ZooKeeperSession(zk_connect, access=Access("broker:secret")) as same:
            same.perform(Set("/consumers/g/offsets/t/0-0", b"6"))


def test_a_value_zookeeper_would_choke_on_is_refused(session: ZooKeeperSession) -> None:
    """Over 100 KB is an error that says so; ZooKeeper would drop the connection (§3.2)."""
    with pytest.raises(ValueTooLarge, match="100000"):
        session.perform(Create("/big", b"x" * 100_001))
    session.perform(Create("/fits", b"x" * 100_000))
    assert session.incarnation == 1


def test_nobody_there_is_said_with_the_address() -> None:
    """No ZooKeeper at the address is one clear error that names it (§3.2)."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # bound and not listening: nobody can answer here
        connect = f"127.0.0.1:{holder.getsockname()[1]}"
        with pytest.raises(ZooKeeperUnreachable, match=connect):
            ZooKeeperSession(connect, connect_timeout_s=0.5).start()


@pytest.mark.parametrize("connect", ["", "host:port", "host:99999999", "/only/a/chroot"])
def test_what_is_no_connect_string_is_said_to_be_none(connect: str) -> None:
    """A connect string that cannot be read is named at once (docs/configuration.md)."""
    with pytest.raises(ConfigError, match="HOST:PORT"):
        ZooKeeperSession(connect)


def test_what_happens_is_in_the_journal(zk_connect: str) -> None:
    """States are events (§3.2)."""
    journal = Journal()
    with ZooKeeperSession(zk_connect, journal=journal):
        until(lambda: [e.event.name for e in journal.since()] == ["session_changed"], "the event is there")


def creates(session: ZooKeeperSession, path: str) -> bool:
    try:
        session.perform(Create(path, ephemeral=True))
    except NodeExists:
        return True
    except ConnectionLoss:
        return False
    return True


def read(session: ZooKeeperSession, path: str) -> Node | None:
    try:
        node: Node = session.perform(Get(path))
    except ConnectionLoss:
        return None
    return node


def writes(session: ZooKeeperSession, path: str, value: bytes) -> bool:
    try:
        session.perform(Set(path, value))
    except RegistryError as error:
        assert isinstance(error, ConnectionLoss)
        return False
    return True
