"""The lock of a warehouse: two nights never overlap.

On this machine's file system it is the kernel's: it is free the moment its holder dies. Elsewhere it is a lease:

    _etl/lease/_delta_log/N.json   who came N-th; like every entry of such a log it is created only if it is absent,
                                   so of two who come at once one is refused
    _etl/lease/<owner>.json        until when the lease runs; only its owner writes it, again and again, and removes it

    free -> held: nobody's lease runs, and our entry is the next one
    held -> free: the lease was removed, or ran out, or its process died on this very machine

It only saves work. What keeps rows exact is the tables' own commit, which refuses the slower of two loads.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from hadoop_etl.errors import LoadLocked, WarehouseError
from hadoop_etl.storage import exists, local_path, reaching, read_text, remove, write_text
from hadoop_etl.warehouse import META, Warehouse
from kafka2011.child import is_alive, start_time
from kafka2011.clock import SYSTEM_CLOCK, Clock

LEASE_MS = 60_000
"""How long a lease runs without its owner. Clocks of machines that share a warehouse should agree better than this."""

_FORGETFUL = {"delta.logRetentionDuration": "interval 1 days", "delta.checkpointInterval": "20"}
"""Who came before the last one matters to nobody: the log of the lease stays short."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that holds, or held, the lock."""

    name: str
    what: str
    pid: int
    started: int | None
    host: str
    machine: str
    """This boot of the machine and its process ids' name space: elsewhere the pid means nothing."""

    @classmethod
    def me(cls, what: str) -> Owner:
        """This process."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex, what, pid, start_time(pid), socket.gethostname(), _machine())

    @property
    def is_dead(self) -> bool:
        """Tell whether it is known to have ended; False also means that nobody here can know."""
        return self.machine == _machine() and not is_alive(self.pid, self.started)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} ({self.what})"


@contextmanager
def locked(warehouse: Warehouse, what: str, clock: Clock = SYSTEM_CLOCK) -> Iterator[None]:
    """Hold the warehouse's lock, or raise LoadLocked saying who does."""
    root = local_path(warehouse.root)
    with _leased(warehouse, what, clock) if root is None else _flocked(root, what):
        yield


def lock_holder(warehouse: Warehouse, clock: Clock = SYSTEM_CLOCK) -> str | None:
    """Who holds the lock, or None."""
    root = local_path(warehouse.root)
    if root is None:
        holder = _Lease(warehouse, clock).holder()
        return None if holder is None else str(holder)
    path = root / "_etl" / "lock"
    if not path.exists():
        return None
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(file.read())
    return None


@contextmanager
def _flocked(root: Path, what: str) -> Iterator[None]:
    path = root / "_etl" / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise LoadLocked(
                f"{root} is in use by {_read(file.read())}; wait until it ends, or look with 'etl status'"
            ) from None
        file.seek(0)
        file.truncate()
        json.dump(asdict(Owner.me(what)), file)
        file.flush()
        yield


def _read(text: str) -> str:
    try:
        return str(Owner(**json.loads(text)))
    except (ValueError, TypeError):
        return "another process"


@contextmanager
def _leased(warehouse: Warehouse, what: str, clock: Clock) -> Iterator[None]:
    lease = _Lease(warehouse, clock)
    me = lease.take(what)
    over = threading.Event()

    def renew() -> None:
        while not over.wait(LEASE_MS / 4000):
            try:
                lease.renew(me)
            except WarehouseError:
                # The store is away for a moment. If it stays away the lease runs out, and no commit can be made either.
                continue

    keeper = threading.Thread(target=renew, name="etl-lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
        lease.free(me)


class _Lease:
    """The lease of a remote warehouse. Thread: any, one at a time."""

    def __init__(self, warehouse: Warehouse, clock: Clock) -> None:
        self._root, self._uri, self._clock = warehouse.root, f"{warehouse.root}/_etl/lease", clock

    def holder(self) -> Owner | None:
        """Whose lease runs now."""
        if not exists(f"{self._uri}/_delta_log"):
            return None
        return self._running(self._newest(DeltaTable(self._uri).version()))

    def take(self, what: str) -> Owner:
        """Make the lease ours, or raise LoadLocked."""
        me = Owner.me(what)
        table = self._table()
        version = table.version()
        before = self._newest(version)
        if self._running(before) is not None:
            raise self._refusal(before)
        self.renew(me)
        try:
            table.create_write_transaction(
                [],
                "append",
                table.schema(),
                [],
                commit_properties=CommitProperties(
                    custom_metadata={META: json.dumps(asdict(me))},
                    app_transactions=[Transaction("lease", version + 1)],
                    max_commit_retries=0,
                ),
            )
        except CommitFailedError:
            self.free(me)
            raise self._refusal(self._newest(DeltaTable(self._uri).version())) from None
        if before is not None:
            self.free(before)
        return me

    def renew(self, owner: Owner) -> None:
        """Let the lease run from now."""
        write_text(self._file(owner), json.dumps({"until_ms": self._clock.wall_ms() + LEASE_MS}))

    def free(self, owner: Owner) -> None:
        """End the lease."""
        remove(self._file(owner))

    def _table(self) -> DeltaTable:
        if not exists(f"{self._uri}/_delta_log"):
            try:
                DeltaTable.create(
                    self._uri, schema=pa.schema([("owner", pa.string())]), mode="ignore", configuration=_FORGETFUL
                )
            except DeltaError:
                # Somebody else made it at this moment; if not, opening it says what is wrong.
                pass
        with reaching(self._uri):
            return DeltaTable(self._uri)

    def _newest(self, version: int) -> Owner | None:
        for line in read_text(f"{self._uri}/_delta_log/{version:020}.json").splitlines():
            noted = json.loads(line).get("commitInfo", {})
            if META in noted:
                return Owner(**json.loads(noted[META]))
        return None

    def _running(self, owner: Owner | None) -> Owner | None:
        if owner is None or owner.is_dead:
            return None
        return owner if self._until_ms(owner) > self._clock.wall_ms() else None

    def _until_ms(self, owner: Owner) -> int:
        try:
            return int(json.loads(read_text(self._file(owner)))["until_ms"])
        except FileNotFoundError:
            return 0

    def _file(self, owner: Owner) -> str:
        return f"{self._uri}/{owner.name}.json"

    def _refusal(self, owner: Owner | None) -> LoadLocked:
        until = datetime.fromtimestamp((self._until_ms(owner) if owner else 0) / 1000, UTC).strftime("%H:%M:%S")
        return LoadLocked(
            f"{self._root} is in use by {owner or 'another process'}; wait until it ends, or look with 'etl status'. "
            f"If it died, its lease runs out by itself at {until} UTC"
        )


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
