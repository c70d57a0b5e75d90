"""Each registry operation as kazoo calls, and kazoo's exceptions as ours."""

from __future__ import annotations

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


class Deadline:
    """A moment by which an answer must be there."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self._at = clock, clock.monotonic() + timeout_s

    def left(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self._at - self._clock.monotonic())


class KazooCalls:
    """Performs operations on a kazoo client. ``later`` takes what must not run in kazoo's own threads. Thread: any."""

    def __init__(self, client: KazooClient, later: Callable[[Callable[[], None]], None], access: AccessLists) -> None:
        self._client, self._later, self._access = client, later, access

    def perform(self, operation: ops.Operation, watcher: Callable[[str], None] | None, deadline: Deadline) -> Any:
        """Do ``operation`` by the deadline."""
        match operation:
            case ops.Children(path, watch):
                watching = self._watch(path, watch, watcher)
                return tuple(sorted(self._get(path, self._client.get_children_async, deadline, watch=watching)))
            case ops.Get(path, watch):
                watching = self._watch(path, watch, watcher)
                value, stat = self._get(path, self._client.get_async, deadline, watch=watching)
                return ops.Node(value or b"", stat.version, stat.ephemeralOwner)
            case ops.Exists(path, watch):
                watching = self._watch(path, watch, watcher)
                stat = self._get(path, self._client.exists_async, deadline, watch=watching)
                return None if stat is None else ops.Node(b"", stat.version, stat.ephemeralOwner)
            case ops.Create():
                return self._create(operation, deadline)
            case ops.Set(path, value, version):
                _bounded(path, value)
                return self._get(path, self._client.set_async, deadline, value, version=version).version
            case ops.Delete(path, version):
                self._get(path, self._client.delete_async, deadline, version=version)
                return None
            case ops.DeleteIfMine(path):
                return self._delete_if_mine(path, deadline)
            case ops.Sync(path):
                self._get(path, self._client.sync_async, deadline)
                return None
            case ops.Multi(operations):
                return self._multi(operations, deadline)

    def _create(self, operation: ops.Create, deadline: Deadline) -> None:
        path = operation.path
        _bounded(path, operation.value)
        try:
            self._create_one(path, operation.value, operation.ephemeral, deadline)
        except ops.NoNode:
            if not operation.make_parents:
                raise
            for parent in parents(path):
                try:
                    self._create_one(parent, None, False, deadline)
                except ops.NodeExists:
                    continue
            self._create_one(path, operation.value, operation.ephemeral, deadline)

    def _create_one(self, path: str, value: bytes | None, ephemeral: bool, deadline: Deadline) -> None:
        self._get(path, self._client.create_async, deadline, value, acl=self._access(path), ephemeral=ephemeral)

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

    def _multi(self, operations: Sequence[ops.Create | ops.Set | ops.Delete | ops.Check], deadline: Deadline) -> None:
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case ops.Create(path, value, ephemeral):
                    _bounded(path, value)
                    transaction.create(path, value, acl=self._access(path), ephemeral=ephemeral)
                case ops.Set(path, value, version):
                    _bounded(path, value)
                    transaction.set_data(path, value, version)
                case ops.Delete(path, version):
                    transaction.delete(path, version)
                case ops.Check(path, version):
                    transaction.check(path, version)
        first = operations[0].path if operations else "/"
        try:
            results = transaction.commit_async().get(timeout=deadline.left())
        except _RAISED as error:
            raise _ours(first, error) from error
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, _BYSTANDERS):
                raise _ours(operation.path, result)

    def _get(self, path: str, call: Callable[..., Any], deadline: Deadline, *values: object, **options: object) -> Any:
        try:
            return call(path, *values, **options).get(timeout=deadline.left())
        except _RAISED as error:
            raise _ours(path, error) from error

    def _watch(
        self, path: str, wanted: bool, watcher: Callable[[str], None] | None
    ) -> Callable[[object], None] | None:
        if not wanted or watcher is None:
            return None
        return lambda event: self._later(lambda: watcher(path))


def _bounded(path: str, value: bytes) -> None:
    if len(value) > MAX_VALUE:
        raise ops.ValueTooLarge(path, f"{len(value)} bytes, the limit is {MAX_VALUE}; subscribe to fewer topics")


def _ours(path: str, error: Exception) -> ops.RegistryError:
    for theirs, ours in _ERRORS:
        if isinstance(error, theirs):
            return ours(path, "no answer in time" if ours is ops.ConnectionLoss else "")
    return ops.RegistryError(path, repr(error))
