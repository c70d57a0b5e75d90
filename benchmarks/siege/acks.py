"""The matrix of acknowledgements: a fault, a port, an acknowledgement level, one and many partitions.

Two promises, for every cell: what was acknowledged is in the log afterwards, and what failed is named to the client
within its timeout. A fault is a failpoint that strikes whenever it is passed; the broker begins with the data of an
undisturbed one, is killed at the end, and its log is then read as a restart would read it.

    told        ACKED       the broker said it is appended (level 1) or on disk (level all)
                STORAGE     the disk failed: KAFKA_STORAGE_ERROR, or LogFailed, LogFull, FlushFailed on the 2011 port
                TIMED_OUT   appended, and not known to be on disk within the timeout
                CLOSED      the connection was closed
                SILENT      no answer, as asked for, and the connection still serves

Paper: §3.1 (flush). Issue 19: "no acknowledgement without durability, every failure named within its timeout".
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from kafka2011.client import BrokerConnection
from kafka2011.errors import ConnectionFailed, LogError, RequestTimedOut
from kafka2011.log.settings import LogSettings
from kafka2011.log.store import LogStore
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, MessageAndOffset, MultiProduceRequest, ProduceRequest, decode_set, encode_set
from since2011.client.connection import ModernConnection
from since2011.wire.batches import encode_batch
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

N_PARTITIONS = 3
TIMEOUT_MS = 300
"""What clients give a disk that hangs; it hangs for longer than anybody would wait."""
PATIENT_MS = 60_000
"""What they give any other disk: its faults must be named as soon as they happen."""
LEVELS = {"0": 0, "1": 1, "all": -1}


class Told(Enum):
    """What a client learns of one partition; see above."""

    ACKED = "acked"
    STORAGE = "storage error"
    TIMED_OUT = "timed out"
    CLOSED = "closed"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the disk, and what clients of each port must be told, by level."""

    name: str
    failpoints: str
    modern: Mapping[str, Told]
    era2011: Mapping[str, Told]
    timeout_ms: int = PATIENT_MS
    appends: bool = True
    """Whether anything is appended at all."""

    def told(self, port: str) -> Mapping[str, Told]:
        """What must be told on ``port``."""
        return self.modern if port == "modern" else self.era2011


def _told(none: Told, one: Told, all_: Told) -> dict[str, Told]:
    return {"0": none, "1": one, "all": all_}


_FINE = _told(Told.SILENT, Told.ACKED, Told.ACKED)
_FSYNC_FAILS = _told(Told.SILENT, Told.ACKED, Told.STORAGE)
_FSYNC_HANGS = _told(Told.SILENT, Told.ACKED, Told.TIMED_OUT)
_DIES = _told(Told.SILENT, Told.ACKED, Told.CLOSED)
_NO_APPEND = _told(Told.CLOSED, Told.STORAGE, Told.STORAGE)
_NO_APPEND_2011 = _told(Told.SILENT, Told.STORAGE, Told.STORAGE)
"""0.7's produce has no answer and its connection stays: the set is counted as dropped."""

UNDISTURBED = Fault("undisturbed", "", _FINE, _FINE)
FAULTS = (
    Fault("failed fsync", "log.flush.before_fsync=raise:EIO", _FSYNC_FAILS, _FSYNC_FAILS),
    Fault("hanging fsync", "log.flush.before_fsync=sleep:600", _FSYNC_HANGS, _FSYNC_HANGS, timeout_ms=TIMEOUT_MS),
    Fault("failed append", "log.append.before_write=raise:EIO", _NO_APPEND, _NO_APPEND_2011, appends=False),
    Fault("no room", "log.append.before_write=raise:ENOSPC", _NO_APPEND, _NO_APPEND_2011, appends=False),
    Fault("killed before fsync", "log.flush.before_fsync=kill", _DIES, _DIES),
    Fault("killed after fsync", "log.flush.after_fsync=kill", _DIES, _DIES),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One request: where it goes, how it is to be acknowledged, how many partitions it has."""

    port: str
    level: str
    n_partitions: int

    @property
    def topic(self) -> str:
        """A topic of its own."""
        return f"{self.port}-{self.level}-{self.n_partitions}"

    def payload(self, fault: Fault, partition: int) -> bytes:
        """A message nobody else sends."""
        return f"{fault.name}: {self.topic}, partition {partition}".encode()


CELLS = tuple(
    Cell(port, level, n_partitions)
    # Levels 0 and 1 first: at level all the broker may die.
    for level in LEVELS
    for port in ("modern", "2011")
    for n_partitions in (1, N_PARTITIONS)
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One partition of one cell: what its client was told, and whether its message was there afterwards."""

    fault: Fault
    cell: Cell
    partition: int
    told: Told
    stored: bool

    @property
    def wrong(self) -> str | None:
        """What is wrong about it, if anything."""
        due = self.fault.told(self.cell.port)[self.cell.level]
        if self.told is Told.ACKED and not self.stored:
            return "acknowledged and lost"
        if self.told is not due:
            return f"the client was told {self.told.value!r}; {due.value!r} is due"
        if self.stored and not self.fault.appends:
            return "refused and appended"
        return None

    def __str__(self) -> str:
        where = f"{self.fault.name}, port {self.cell.port}, acks={self.cell.level}, {self.cell.n_partitions} partitions"
        return f"{where}: partition {self.partition}: {self.wrong or 'as promised'}"


def prepare(directory: Path) -> list[Verdict]:
    """Fill ``directory`` with every topic of the matrix, undisturbed: the matrix's own control."""
    return _run(UNDISTURBED, directory)


def strike(fault: Fault, prepared: Path, directory: Path) -> list[Verdict]:
    """Run every cell under ``fault``, on a copy of what ``prepare`` made; also see that nothing of that is lost."""
    shutil.copytree(prepared, directory)
    verdicts = _run(fault, directory)
    found = _stored(directory)
    for cell in CELLS:
        if cell.level != "0":
            for partition in range(cell.n_partitions):
                kept = cell.payload(UNDISTURBED, partition) in found
                verdicts.append(Verdict(UNDISTURBED, cell, partition, Told.ACKED, kept))
    return verdicts


def _run(fault: Fault, directory: Path) -> list[Verdict]:
    options = {
        "modern.port": 0,
        "log.format": "2011",
        "num.partitions": N_PARTITIONS,
        "produce.acks.enable": True,
        "produce.acks.timeout.ms": fault.timeout_ms,
        # Nothing is flushed but for an acknowledgement: what level 1 promises must not depend on it.
        "log.flush.interval": 1_000_000,
        "log.default.flush.interval.ms": 600_000,
    }
    environ = {"KAFKA2011_FAILPOINTS": fault.failpoints} if fault.failpoints else {}
    told: list[tuple[Cell, int, Told]] = []
    with BrokerProcess(directory, options, environ=environ) as broker:
        for cell in CELLS:
            ask = _ask_modern if cell.port == "modern" else _ask_2011
            told += ((cell, partition, answer) for partition, answer in enumerate(ask(broker, fault, cell)))
        broker.kill()
    found = _stored(directory)
    return [
        Verdict(fault, cell, partition, answer, cell.payload(fault, partition) in found)
        for cell, partition, answer in told
    ]


def _stored(directory: Path) -> set[bytes]:
    """Every message a restart finds."""
    store = LogStore(directory, LogSettings(num_partitions=N_PARTITIONS))
    store.open()
    try:
        return {message.payload for log in store.logs() for message in _messages(log.directory)}
    finally:
        store.close()


def _messages(directory: Path) -> Iterator[MessageAndOffset]:
    for segment in sorted(directory.glob("*.kafka")):
        yield from decode_set(segment.read_bytes())


# --- the two ports ---


def _ask_modern(broker: BrokerProcess, fault: Fault, cell: Cell) -> list[Told]:
    rows = [
        Struct(index=partition, records=encode_batch(0, 0, [(0, cell.payload(fault, partition))]))
        for partition in range(cell.n_partitions)
    ]
    body = Struct(
        transactional_id=None,
        acks=LEVELS[cell.level],
        timeout_ms=fault.timeout_ms,
        topics=[Struct(name=cell.topic, partitions=rows)],
    )
    try:
        connection = ModernConnection(broker.host, broker.modern_port or 0, client_id="matrix", timeout_s=60.0)
        try:
            if cell.level == "0":
                connection.send(ApiKey.PRODUCE, 7, body)
                connection.ask(ApiKey.API_VERSIONS, 0, Struct())
                return [Told.SILENT] * cell.n_partitions
            answers = connection.ask(ApiKey.PRODUCE, 7, body).topics[0].partitions
        finally:
            connection.close()
    except ConnectionFailed:
        return [Told.CLOSED] * cell.n_partitions
    return [_CODES[answer.error] for answer in answers]


_CODES = {
    ErrorCode.NONE: Told.ACKED,
    ErrorCode.KAFKA_STORAGE_ERROR: Told.STORAGE,
    ErrorCode.REQUEST_TIMED_OUT: Told.TIMED_OUT,
}


def _ask_2011(broker: BrokerProcess, fault: Fault, cell: Cell) -> list[Told]:
    sets = [
        ProduceRequest(cell.topic, partition, encode_set([cell.payload(fault, partition)]))
        for partition in range(cell.n_partitions)
    ]
    with BrokerConnection(broker.host, broker.port, timeout_s=60.0, connect_timeout_s=0.1) as connection:
        if cell.level != "0":
            level = AckLevel.APPENDED if cell.level == "1" else AckLevel.FLUSHED
            return [_acked_2011(connection, one, level) for one in sets]
        with suppress(ConnectionFailed):
            connection.write(MultiProduceRequest(tuple(sets)).encode() if len(sets) > 1 else sets[0].encode())
            connection.offsets("nobody-knows", 0)
            return [Told.SILENT] * len(sets)
    return [Told.CLOSED] * len(sets)


def _acked_2011(connection: BrokerConnection, one: ProduceRequest, level: AckLevel) -> Told:
    try:
        connection.produce_acked(one.topic, one.partition, one.data, level)
    except RequestTimedOut:
        return Told.TIMED_OUT
    except ConnectionFailed:
        return Told.CLOSED
    except LogError:
        return Told.STORAGE
    return Told.ACKED
