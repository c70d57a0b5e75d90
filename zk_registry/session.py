"""A session with a real ZooKeeper: every call has a deadline, every callback its own thread.

kazoo is the client; this module takes away its surprises:

* it waits at most a quarter of a second between attempts to connect (kazoo's own limit is an hour);
* a server that accepts and says nothing does not keep it from the others for long (``handshake``);
* no call blocks without limit: after ``call_timeout_s`` it is a ConnectionLoss, *perhaps done*;
* nothing is asked in one session's name and sent in the next one's: a call made after LOST is refused;
* callbacks of states and watches run one after the other in a worker thread, so that they may call ``perform``;
* a value over 100 KB is refused, where ZooKeeper would drop the connection;
* a client whose thread has died is replaced by a new one, with a new session, and the reason told (``trouble``);
* a ZooKeeper from before 3.4, which knows no transactions, is refused with a clear error (``server_age``).

Reads may be repeated after a ConnectionLoss. Whether a write was done must be looked up before it is repeated.

``states.py`` says what may be assumed when CONNECTED, SUSPENDED and LOST. Paper: §3.2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from kafka2011.client_security import speaks_tls
from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.events import Journal
from zk_registry import server_age
from zk_registry.access import Access, declared_access
from zk_registry.callbacks import Callbacks
from zk_registry.ensemble import servers_of
from zk_registry.events import CallbackFailed, ClientDied, ServerRefused, SessionChanged
from zk_registry.kazoo_calls import Deadline
from zk_registry.kazoo_client import Client
from zk_registry.operations import ConnectionLoss, Create, NodeExists, Operation, SessionExpired
from zk_registry.states import SessionState, StateCallback

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
"""Before a client that died is replaced: growing, if the next one dies as soon."""
_CALM_S = 10.0
"""A client that lived so long did not die of what the last one died of."""


class ZooKeeperUnreachable(Kafka2011Error):
    """No server of the connect string answered in time."""

    retriable = True


class ZooKeeperSession:
    """One client of one ZooKeeper, through as many sessions as it takes. Thread: any.

    ``connect`` is ``host:port,host:port[/chroot]``. ``access`` is TLS and a credential; unset: what the clients of this
    process declare. With a credential everything created is writable with it only, and readable by all.
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
        access: Access | None = None,
        create_chroot: bool = False,
    ) -> None:
        self.connect, self._timeout_s = connect, timeout_s
        self._call_timeout_s = max(timeout_s, 6.0) if call_timeout_s is None else call_timeout_s
        self._connect_timeout_s = max(timeout_s, 10.0) if connect_timeout_s is None else connect_timeout_s
        self._create_chroot = create_chroot
        self._access = declared_access() if access is None else access
        self._journal, self._clock = journal or Journal(), clock
        self._changed = threading.Condition()
        self._state = SessionState.LOST
        self._session_id = 0
        self._incarnation = 0
        self._started = self._closed = False
        self._suspended_since: float | None = None
        self._callbacks = Callbacks(self._journal)
        self._trouble: str | None = None
        self._failure: Kafka2011Error | None = None
        self._died_at, self._pause_s = float("-inf"), 0.0
        _check(connect)
        self._new_client = partial(
            Client,
            connect,
            timeout_s,
            credential=self._access.credential,
            tls=None if self._access.tls is None else self._access.tls.context(),
            later=self._callbacks.later,
            changed=self._listen,
            ended=self._died,
        )
        self._client: Client = self._new_client()

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
        return self._client.identity[1]

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

    @property
    def trouble(self) -> str | None:
        """Why there is no answer from ZooKeeper, in words; None while there is."""
        if self._state is SessionState.CONNECTED:
            return None
        return self._trouble or f"ZooKeeper at {self.connect} does not answer"

    @property
    def failure(self) -> Kafka2011Error | None:
        """Why no session will ever begin as things are: somebody must do something. It is tried on all the same."""
        return self._failure

    def on_state(self, callback: StateCallback) -> Callable[[], None]:
        """Call ``callback(state)`` in the worker thread after each change; return a function that ends it."""
        return self._callbacks.on_state(callback)

    # -- beginning and end ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect; raise ZooKeeperUnreachable naming the hosts if nobody answers within ``connect_timeout_s``.

        Raise ZooKeeperTooOld if who answers is of no use.
        """
        if self._started:
            return
        if self._create_chroot:
            self._make_chroot()
        self._started = True
        self._callbacks.start()
        self._client.start()
        with self._changed:
            # Our own word for it: kazoo reports itself connected before it has told its listener.
            connected = self._changed.wait_for(lambda: self._incarnation > 0 or self._closed, self._connect_timeout_s)
        if not connected:
            self.close()
            raise ZooKeeperUnreachable(self._why_unreachable())
        try:
            self._check_age()
        except server_age.ZooKeeperTooOld:
            self.close()
            raise

    def close(self) -> None:
        """End the session and its ephemerals. Takes no longer than it must; may be called again."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            was_connected = self._state is SessionState.CONNECTED
            self._changed.notify_all()
        if self._started:
            # Without a server there is nothing to wait for.
            self._stop(self._client).join(5.0 if was_connected else 0.2)
        self._state = SessionState.LOST
        self._callbacks.stop(1.0)

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
            over = self._trouble or "the session is over"
            raise SessionExpired(path, "the session is closed" if self._closed else over)
        return self._client.calls.perform(operation, self._watch(watcher), deadline)

    def wait_connected(self, timeout_s: float) -> bool:
        """Wait until CONNECTED; False after ``timeout_s``, and at once when the session is LOST or closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._state is not SessionState.SUSPENDED or self._closed, timeout_s)
            return self._state is SessionState.CONNECTED and not self._closed

    # -- inside ---------------------------------------------------------------------------------------------------

    def _why_unreachable(self) -> str:
        if self._client.refused is not None:
            return (
                f"no TLS with ZooKeeper at {self.connect}: {self._client.refused}; nothing was said to it. Check the "
                "address, and the authority (client.zk.tls.ca; of a broker zk.tls.ca) and host names of its certificate"
            )
        if self._access.tls is None and any(speaks_tls(*server) for server in servers_of(self.connect)):
            return (
                f"ZooKeeper at {self.connect} speaks TLS and was spoken to in the clear; declare whom to trust: "
                "kafka2011 --client client.zk.tls.ca=FILE …, for a broker zk.tls.ca=FILE"
            )
        return (
            f"no ZooKeeper answers at {self.connect} (tried for {self._connect_timeout_s:g} s); "
            "check the address, or start one with: kafka2011 zk start"
        )

    def _make_chroot(self) -> None:
        """Create the node the connect string ends in, in a short session of its own that starts at the root."""
        hosts, slash, chroot = self.connect.partition("/")
        if not chroot.strip("/"):
            return
        with ZooKeeperSession(
            hosts,
            timeout_s=self._timeout_s,
            connect_timeout_s=self._connect_timeout_s,
            access=self._access,
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
        return lambda path: self._callbacks.call(watcher, path)

    def _listen(self, client: Client, state: SessionState) -> None:
        """In kazoo's connection thread: note the state, leave a token, and out."""
        with self._changed:
            if self._closed or client is not self._client:
                return
            self._state = state
            self._suspended_since = self._clock.monotonic() if state is SessionState.SUSPENDED else None
            if state is SessionState.CONNECTED:
                self._trouble = None
                session_id = client.identity[0]
                if session_id != self._session_id:
                    self._session_id = session_id
                    self._incarnation += 1
            changed = SessionChanged(state=state.value, session_id=self._session_id, incarnation=self._incarnation)
            self._changed.notify_all()
        self._callbacks.later(lambda: self._tell(state, changed))

    def _died(self, client: Client, why: str) -> None:
        """In the thread of kazoo that ends: note it, and out; the next client is the worker's business."""
        with self._changed:
            if self._closed or client is not self._client:
                return
            if self._state is not SessionState.LOST:
                self._listen(client, SessionState.LOST)
            self._trouble = f"the ZooKeeper client of this process has died ({why}); a new one is being started"
        self._callbacks.later(lambda: self._replace(client, why))

    def _replace(self, dead: Client, why: str) -> None:
        """Start another client in the place of one that died, not sooner than it makes sense."""
        if dead is not self._client:
            return  # two of its threads died
        self._journal.emit(ClientDied(reason=why))
        now = self._clock.monotonic()
        quickly, self._died_at = now - self._died_at < _CALM_S, now
        self._pause_s = min(_LONGEST_PAUSE_S, self._pause_s * 2 or _FIRST_PAUSE_S) if quickly else 0.0
        self._stop(dead)
        while not self._ends_within(self._pause_s):
            try:
                self._check_age()
            except server_age.ZooKeeperTooOld as error:
                if self._failure is None:
                    self._journal.emit(ServerRefused(reason=str(error)))
                self._trouble, self._failure, self._pause_s = str(error), error, _LONGEST_PAUSE_S
                continue
            with self._changed:
                if not self._closed:
                    self._client, self._failure = self._new_client(), None
                    self._client.start()
            return

    def _ends_within(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, seconds)

    def _check_age(self) -> None:
        if self._access.tls is None:  # TLS came after transactions
            server_age.check(self.connect)

    def _tell(self, state: SessionState, changed: SessionChanged) -> None:
        self._journal.emit(changed)
        self._callbacks.tell(state)

    def _stop(self, client: Client) -> threading.Thread:
        """Stop a client, in a thread: kazoo waits until an attempt to connect runs out."""

        def stop() -> None:
            try:
                client.stop()
            except Exception as error:
                # The session is being left behind; the server ends it by timeout.
                self._journal.emit(CallbackFailed(callback="close", error=repr(error)))

        stopping = threading.Thread(target=stop, name="zookeeper-session-close", daemon=True)
        stopping.start()
        return stopping


def _check(connect: str) -> None:
    """Refuse what is not a connect string."""
    try:
        servers_of(connect)
    except ValueError as error:
        raise ConfigError(f"{connect!r} is not a ZooKeeper connect string: write HOST:PORT,…[/CHROOT]") from error
