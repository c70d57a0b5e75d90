"""A session with a real ZooKeeper: every call has a deadline, every callback its own thread.

kazoo is the client; this module takes away its surprises:

* it waits at most a quarter of a second between attempts to connect (kazoo's own limit is an hour);
* a server that accepts and says nothing does not keep it from the others for long (``handshake``);
* no call blocks without limit: after ``call_timeout_s`` it is a ConnectionLoss, *perhaps done*;
* nothing is asked in one session's name and sent in the next one's: a call made after LOST is refused;
* callbacks of states and watches run one after the other in a worker thread, so that they may call ``perform``;
* a value over 100 KB is refused, where ZooKeeper would drop the connection.

Reads may be repeated after a ConnectionLoss. Whether a write was done must be looked up before it is repeated.

``states.py`` says what may be assumed when CONNECTED, SUSPENDED and LOST. Paper: §3.2.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.hosts import collect_hosts
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.events import Journal
from zk_registry.access import Tls, access_lists
from zk_registry.events import CallbackFailed, SessionChanged
from zk_registry.handshake import PromptHandler
from zk_registry.kazoo_calls import Deadline, KazooCalls
from zk_registry.operations import ConnectionLoss, Create, NodeExists, Operation, SessionExpired
from zk_registry.states import SessionState, StateCallback

_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}
# kazoo logs each failed attempt; what matters of that is told as an event.
_KAZOO_LOGGER = logging.getLogger("kafka2011.kazoo")
_KAZOO_LOGGER.setLevel(logging.CRITICAL)
_MAX_PAUSE_S = 0.25
"""Between two rounds of attempts to connect: what is added, at worst, to the time ZooKeeper was away."""


class ZooKeeperUnreachable(Kafka2011Error):
    """No server of the connect string answered in time."""

    retriable = True


class ZooKeeperSession:
    """One client of one ZooKeeper, through as many sessions as it takes. Thread: any.

    ``connect`` is ``host:port,host:port[/chroot]``. With a ``credential`` (``user:password``) everything created
    is writable with that credential only, and readable by all.
    """

    def __init__(
        self,
        connect: str,
        *,
        timeout_s: float = 6.0,
        call_timeout_s: float | None = None,
        connect_timeout_s: float | None = None,
        journal: Journal | None = None,
        clock: Clock = SYSTEM_CLOCK,
        credential: str | None = None,
        tls: Tls | None = None,
        create_chroot: bool = False,
    ) -> None:
        self.connect, self._timeout_s = connect, timeout_s
        self._call_timeout_s = max(timeout_s, 6.0) if call_timeout_s is None else call_timeout_s
        self._connect_timeout_s = max(timeout_s, 10.0) if connect_timeout_s is None else connect_timeout_s
        self._create_chroot = create_chroot
        self._credential, self._tls = credential, tls
        self._journal, self._clock = journal or Journal(), clock
        self._changed = threading.Condition()
        self._state = SessionState.LOST
        self._session_id = 0
        self._incarnation = 0
        self._started = self._closed = False
        self._suspended_since: float | None = None
        self._callbacks: list[StateCallback] = []
        self._tokens: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="zookeeper-session", daemon=True)
        n_servers = _hosts(connect).partition("/")[0].count(",") + 1
        self._handler = PromptHandler(timeout_s, n_servers, None if tls is None else tls.context())
        self._client = self._make_client()
        self._calls = KazooCalls(self._client, self._tokens.put, access_lists(credential))

    # -- what it is now -------------------------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def session_id(self) -> int:
        """The id of the present or, when LOST, the last session; 0 before the first."""
        return self._session_id

    @property
    def password(self) -> bytes:
        """What, together with the id, lets another client take this session over."""
        identity = self._client.client_id
        return identity[1] if identity else b""

    @property
    def incarnation(self) -> int:
        return self._incarnation

    @property
    def timeout_s(self) -> float:
        return self._timeout_s

    @property
    def suspended_since(self) -> float | None:
        """Since when (monotonic) the server has not answered; None while it does."""
        return self._suspended_since

    def on_state(self, callback: StateCallback) -> Callable[[], None]:
        """Call ``callback(state)`` in the worker thread after each change; return a function that ends it."""
        with self._changed:
            self._callbacks.append(callback)
        return lambda: self._forget(callback)

    # -- beginning and end ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect; raise ZooKeeperUnreachable naming the hosts if nobody answers within ``connect_timeout_s``."""
        if self._started:
            return
        if self._create_chroot:
            self._make_chroot()
        self._started = True
        self._worker.start()
        self._client.start_async()
        with self._changed:
            # Our own word for it: kazoo reports itself connected before it has told its listener.
            connected = self._changed.wait_for(lambda: self._incarnation > 0 or self._closed, self._connect_timeout_s)
        if not connected:
            self.close()
            if self._handler.refused is not None:
                raise ZooKeeperUnreachable(
                    f"no TLS with ZooKeeper at {self.connect}: {self._handler.refused}; nothing was said to it. "
                    "Check the address, and the authority (zk.tls.ca) and host names of its certificate"
                )
            raise ZooKeeperUnreachable(
                f"no ZooKeeper answers at {self.connect} (tried for {self._connect_timeout_s:g} s); "
                "check the address, or start one with: kafka2011 zk start"
            )

    def close(self) -> None:
        """End the session and its ephemerals. Takes no longer than it must; may be called again."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            was_connected = self._state is SessionState.CONNECTED
            self._changed.notify_all()
        if self._started:
            # kazoo's stop waits until an attempt to connect runs out; without a server there is nothing to wait for.
            stopping = threading.Thread(target=self._stop_client, name="zookeeper-session-close", daemon=True)
            stopping.start()
            stopping.join(5.0 if was_connected else 0.2)
        self._state = SessionState.LOST
        self._tokens.put(None)
        if self._started and threading.current_thread() is not self._worker:
            self._worker.join(1.0)

    def __enter__(self) -> ZooKeeperSession:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- work -----------------------------------------------------------------------------------------------------

    def perform(self, operation: Operation, watcher: Callable[[str], None] | None = None) -> Any:
        """Do one operation within the deadline, or raise a RegistryError.

        While SUSPENDED it waits, within the same deadline, for the connection to come back.
        """
        deadline = self._deadline()
        path = getattr(operation, "path", "/")
        if not self.wait_connected(deadline.left()):
            if self._state is SessionState.SUSPENDED and not self._closed:
                raise ConnectionLoss(path, f"ZooKeeper at {self.connect} does not answer; nothing was sent, try later")
            raise SessionExpired(path, "the session is closed" if self._closed else "the session is over")
        return self._calls.perform(operation, self._watch(watcher), deadline)

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until CONNECTED; False after ``timeout_s``, and at once when the session is LOST or closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is not SessionState.SUSPENDED or self._closed, timeout_s)
            return self._state is SessionState.CONNECTED and not self._closed

    # -- inside ---------------------------------------------------------------------------------------------------

    def _make_client(self) -> KazooClient:
        client = KazooClient(
            self.connect,
            timeout=self._timeout_s,
            handler=self._handler,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=_MAX_PAUSE_S, max_jitter=0.2),
            command_retry=KazooRetry(max_tries=1, max_delay=1.0),
            auth_data=[("digest", self._credential)] if self._credential else None,
            logger=_KAZOO_LOGGER,
        )
        client.add_listener(self._listen)
        return client

    def _make_chroot(self) -> None:
        """Create the node the connect string ends in, in a short session of its own that starts at the root."""
        hosts, slash, chroot = self.connect.partition("/")
        if not chroot.strip("/"):
            return
        with ZooKeeperSession(
            hosts,
            timeout_s=self._timeout_s,
            connect_timeout_s=self._connect_timeout_s,
            credential=self._credential,
            tls=self._tls,
        ) as root:
            try:
                root.perform(Create(slash + chroot.rstrip("/"), make_parents=True))
            except NodeExists:
                pass  # the usual case

    def _deadline(self) -> Deadline:
        return Deadline(self._clock, self._call_timeout_s)

    def _watch(self, watcher: Callable[[str], None] | None) -> Callable[[str], None] | None:
        if watcher is None:
            return None
        return lambda path: self._call(watcher, path)

    def _listen(self, kazoo_state: str) -> None:
        """In kazoo's connection thread: note the state, leave a token, and out."""
        state = _STATES[kazoo_state]
        if state is SessionState.CONNECTED:
            self._handler.connected()
        with self._changed:
            if self._closed:
                return
            self._state = state
            self._suspended_since = self._clock.monotonic() if state is SessionState.SUSPENDED else None
            if state is SessionState.CONNECTED:
                session_id = self._client.client_id[0]
                if session_id != self._session_id:
                    self._session_id = session_id
                    self._incarnation += 1
            changed = SessionChanged(state=state.value, session_id=self._session_id, incarnation=self._incarnation)
            self._changed.notify_all()
        self._tokens.put(lambda: self._tell(state, changed))

    def _tell(self, state: SessionState, changed: SessionChanged) -> None:
        self._journal.emit(changed)
        with self._changed:
            callbacks = tuple(self._callbacks)
        for callback in callbacks:
            self._call(callback, state)

    def _call(self, callback: Callable[[Any], None], argument: object) -> None:
        try:
            callback(argument)
        except Exception as error:
            # One listener's fault must not silence the others: it becomes an event, with the place.
            self._journal.emit(CallbackFailed(callback=repr(callback), error=repr(error)))

    def _work(self) -> None:
        while (token := self._tokens.get()) is not None:
            token()

    def _forget(self, callback: StateCallback) -> None:
        with self._changed:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def _stop_client(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            # The session is being left behind; the server ends it by timeout.
            self._journal.emit(CallbackFailed(callback="close", error=repr(error)))


def _hosts(connect: str) -> str:
    """The connect string, if it is one."""
    try:
        collect_hosts(connect)
    except ValueError as error:
        raise ConfigError(f"{connect!r} is not a ZooKeeper connect string: write HOST:PORT,…[/CHROOT]") from error
    return connect
