"""Each registry operation as kazoo calls, and kazoo's exceptions as ours."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from kafka2011.clock import Clock
from zk_registry import operations as ops
from zk_registry.access import AccessLists
from zk_registry.paths import parents

MAX_VALUE = 100_000
"""Bytes. ZooKeeper's own limit is a million, and it answers more by closing the connection."""

_ERRORS: tuple[tuple[type[Exception], type[ops.RegistryError]], ...] = (
    (kazoo_errors.NoNodeError, ops.NoNode),
    (kazoo_errors.NodeExistsError, ops.NodeExists),
    (kazoo_errors.BadVersionError, ops.BadVersion),
    (kazoo_errors.NotEmptyError, ops.NotEmpty),
    (kazoo_errors.NoChildrenForEphemeralsError, ops.EphemeralParent),
    (kazoo_errors.NoAuthError, ops.NoAuth),
    (kazoo_errors.AuthFailedError, ops.NoAuth),
    (kazoo_errors.SessionExpiredError, ops.SessionExpired),
    (kazoo_errors.ConnectionClosedError, ops.SessionExpired),
    (kazoo_errors.ConnectionLoss, ops.ConnectionLoss),
    (kazoo_errors.OperationTimeoutError, ops.ConnectionLoss),
    (KazooTimeoutError, ops.ConnectionLoss),
    # What kazoo's thread dies of, as when the answer to another request came: whether ours was done nobody knows.
    (RuntimeError, ops.ConnectionLoss),
)
_RAISED = (kazoo_errors.KazooException, KazooTimeoutError, RuntimeError)
_BYSTANDERS = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
"""What kazoo reports for the operations of a transaction that were not the reason of its refusal."""


WINDOW = 200
"""Requests of a pipeline on their way at once. A server reads no further of a client's while 1,000 wait."""

Sent = ops.Children | ops.Get | ops.Exists | ops.Create | ops.Set | ops.Delete | ops.Multi
"""What is one request to the server."""


class Deadline:
    """A moment by which an answer must be there."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self._timeout_s, self._at = clock, timeout_s, clock.monotonic() + timeout_s

    def renew(self) -> None:
        """As long again from now: of many answers one has come, so the server lives."""
        self._at = self._clock.monotonic() + self._timeout_s

    def left(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self._at - self._clock.monotonic())


Answer = Callable[[Deadline], Any]
"""An answer on its way: called with a deadline, it is awaited, or raises a RegistryError."""


class KazooCalls:
    """Performs operations on a kazoo client. ``later`` takes what must not run in kazoo's own threads. Thread: any."""

    def __init__(self, client: KazooClient, later: Callable[[Callable[[], None]], None], access: AccessLists) -> None:
        self._client, self._later, self._access = client, later, access

    def perform(self, operation: ops.Operation, watcher: Callable[[str], None] | None, deadline: Deadline) -> Any:
        """Do ``operation`` by the deadline."""
        match operation:
            case ops.Create():
                return self._create(operation, deadline)
            case ops.DeleteIfMine(path):
                return self._delete_if_mine(path, deadline)
            case ops.Sync(path):
                self._get(path, self._client.sync_async, deadline)
                return None
            case ops.Pipeline(operations):
                return self._pipeline(operations, watcher, deadline)
            case _:
                return self._send(operation, watcher)(deadline)

    def _pipeline(
        self, operations: Sequence[Sent], watcher: Callable[[str], None] | None, deadline: Deadline
    ) -> tuple[Any, ...]:
        """Send a window's worth, then await the oldest for each that is sent: the answers come in order."""
        answers: list[Any] = []
        waiting: deque[Answer] = deque()
        for operation in operations:
            if len(waiting) >= WINDOW:
                answers.append(_answer_or_error(waiting.popleft(), deadline))
            waiting.append(self._send(operation, watcher))
        answers += [_answer_or_error(answer, deadline) for answer in waiting]
        return tuple(answers)

    def _send(self, operation: Sent, watcher: Callable[[str], None] | None) -> Answer:
        """Put one request on its way; the answer can be awaited by a deadline."""
        client = self._client
        match operation:
            case ops.Children(path, watch):
                names = self._call(path, client.get_children_async, watch=self._watch(path, watch, watcher))
                return lambda deadline: tuple(sorted(names(deadline)))
            case ops.Get(path, watch):
                found = self._call(path, client.get_async, watch=self._watch(path, watch, watcher))
                return lambda deadline: _node(*found(deadline))
            case ops.Exists(path, watch):
                stat = self._call(path, client.exists_async, watch=self._watch(path, watch, watcher))
                return lambda deadline: _node_or_none(stat(deadline))
            case ops.Create(path, value, ephemeral, _, sequential):
                _bounded(path, value)
                kind = {"ephemeral": ephemeral, "sequence": sequential}
                return self._call(path, client.create_async, value, acl=self._access(path), **kind)
            case ops.Set(path, value, version):
                _bounded(path, value)
                written = self._call(path, client.set_async, value, version=version)
                return lambda deadline: written(deadline).version
            case ops.Delete(path, version):
                deleted = self._call(path, client.delete_async, version=version)
                return lambda deadline: _nothing(deleted(deadline))
            case ops.Multi(operations):
                return self._multi(operations)

    def _create(self, operation: ops.Create, deadline: Deadline) -> Any:
        try:
            return self._send(operation, None)(deadline)
        except ops.NoNode:
            if not operation.make_parents:
                raise
            for parent in parents(operation.path):
                try:
                    self._send(ops.Create(parent, None), None)(deadline)
                except ops.NodeExists:
                    continue
            return self._send(operation, None)(deadline)

    def _delete_if_mine(self, path: str, deadline: Deadline) -> bool:
        identity = self._client.client_id
        try:
            _, stat = self._get(path, self._client.get_async, deadline)
            # A node of the present session cannot be replaced by a stranger's as long as that session lasts, so what
            # is deleted is what was looked at.
            if stat.ephemeralOwner == 0 or identity is None or stat.ephemeralOwner != identity[0]:
                return False
            self._get(path, self._client.delete_async, deadline, version=stat.version)
        except ops.NoNode:
            return False
        return True

    def _multi(self, operations: Sequence[ops.Create | ops.Set | ops.Delete | ops.Check]) -> Answer:
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case ops.Create(path, value, ephemeral, _, sequential):
                    _bounded(path, value)
                    kind = {"ephemeral": ephemeral, "sequence": sequential}
                    transaction.create(path, value or b"", acl=self._access(path), **kind)
                    if value is None:
                        # kazoo's own method insists on bytes, where its request, like the server, does not.
                        transaction.operations[-1] = transaction.operations[-1]._replace(data=None)
                case ops.Set(path, value, version):
                    _bounded(path, value)
                    transaction.set_data(path, value, version)
                case ops.Delete(path, version):
                    transaction.delete(path, version)
                case ops.Check(path, version):
                    transaction.check(path, version)
        first = operations[0].path if operations else "/"
        committed = transaction.commit_async()

        def answer(deadline: Deadline) -> None:
            try:
                results = committed.get(timeout=deadline.left())
            except _RAISED as error:
                raise _ours(first, error) from error
            for operation, result in zip(operations, results, strict=True):
                if isinstance(result, Exception) and not isinstance(result, _BYSTANDERS):
                    raise _ours(operation.path, result)

        return answer

    def _get(self, path: str, call: Callable[..., Any], deadline: Deadline, *values: object, **options: object) -> Any:
        return self._call(path, call, *values, **options)(deadline)

    def _call(self, path: str, call: Callable[..., Any], *values: object, **options: object) -> Answer:
        sent = call(path, *values, **options)

        def answer(deadline: Deadline) -> Any:
            try:
                return sent.get(timeout=deadline.left())
            except _RAISED as error:
                raise _ours(path, error) from error

        return answer

    def _watch(
        self, path: str, wanted: bool, watcher: Callable[[str], None] | None
    ) -> Callable[[object], None] | None:
        if not wanted or watcher is None:
            return None
        return lambda event: self._later(lambda: watcher(path))


def _answer_or_error(answer: Answer, deadline: Deadline) -> Any:
    try:
        answered = answer(deadline)
    except ops.ConnectionLoss as error:
        return error
    except ops.RegistryError as error:
        answered = error
    deadline.renew()
    return answered


def _nothing(_: object) -> None:
    """A deletion's answer says nothing."""


def _node(value: bytes | None, stat: Any) -> ops.Node:
    return ops.Node(value or b"", stat.version, stat.ephemeralOwner, stat.czxid)


def _node_or_none(stat: Any) -> ops.Node | None:
    return None if stat is None else _node(b"", stat)


def _bounded(path: str, value: bytes | None) -> None:
    if value is not None and len(value) > MAX_VALUE:
        raise ops.ValueTooLarge(path, f"{len(value)} bytes, the limit is {MAX_VALUE}; use fewer topics or partitions")


def _ours(path: str, error: Exception) -> ops.RegistryError:
    for theirs, ours in _ERRORS:
        if isinstance(error, theirs):
            return ours(path, "no answer in time" if ours is ops.ConnectionLoss else "")
    return ops.RegistryError(path, repr(error))
