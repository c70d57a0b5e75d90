"""The field: a real broker with both ports, a bystander, an attack, and what came of it.

    survived    the process lives, no request met an unforeseen error, its log holds no traceback and no unhandled error
    p99         how long a bystander waited, on each port and as a newcomer, while the attack went on
    peak        the most memory the process had meanwhile, above what it had before
    recovered   from the end of the attack until a newcomer has written and read a message on both ports

A row whose attack restarts the broker itself is not judged by the bystander's waits; it checks its own promises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.siege.bystander import TOPIC, WHO, Address, Bystander, favour
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess, unhandled_errors
from kafka2011.wire import AckLevel, encode_set
from since2011.wire.error_codes import ErrorCode
from tests.integration.broker.client import RawClient
from tests.integration.since2011.wire_client import WireClient

MiB = 1 << 20
P99_S = 0.25
PEAK_BYTES = 256 * MiB
RECOVERED_S = 5.0
OPTIONS: Mapping[str, object] = {
    "modern.port": 0,
    "log.format": "2011",
    "produce.acks.enable": True,
    "num.partitions": 4,
}
_PATIENCE_S = 60.0


class Broken(Exception):
    """A promise of the row itself did not hold."""


@dataclass(frozen=True)
class Row:
    """One attack. ``attack(field)`` may raise Broken; whatever it opened is closed afterwards."""

    name: str
    source: str
    """Where it was seen first."""
    attack: Callable[[Field], None]
    options: Mapping[str, object] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    restarts: bool = False


@dataclass(frozen=True)
class Verdict:
    """What came of a row."""

    row: str
    survived: str
    """Empty if it did, else what happened."""
    p99_s: Mapping[str, float]
    peak_bytes: int
    recovered_s: float
    broken: str = ""

    @property
    def wrong(self) -> list[str]:
        """The bars that were missed."""
        found = [text for text in (self.survived, self.broken) if text]
        found += (f"{who} waited {1000 * s:.0f} ms" for who, s in self.p99_s.items() if s > P99_S)
        if self.peak_bytes > PEAK_BYTES:
            found.append(f"{self.peak_bytes / MiB:.0f} MiB more")
        if self.recovered_s > RECOVERED_S:
            found.append(f"recovered after {self.recovered_s:.1f} s")
        return found

    def line(self) -> str:
        """One line of the table."""
        waits = "  ".join(f"{1000 * self.p99_s[who]:6.0f}" if who in self.p99_s else f"{'–':>6}" for who in WHO)
        back = f"{self.peak_bytes / MiB:+6.0f}  {self.recovered_s:6.2f}"
        return f"{self.row:<44} {waits}  {back}   {'; '.join(self.wrong) or 'held'}"


HEAD = f"{'attack':<44} {'2011':>6}  {'modern':>6}  {'new':>6}  {'MiB':>6}  {'back s':>6}   verdict (p99 in ms)"


class Field:
    """A broker under attack. Use as a context manager."""

    def __init__(self, options: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.broker = BrokerProcess(options={**OPTIONS, **(options or {})}, environ=environ)
        self._open = ExitStack()

    def __enter__(self) -> Field:
        self.broker.start()
        favour(self.broker.pid)
        with BrokerConnection(self.broker.host, self.broker.port) as client:
            client.produce_acked(TOPIC, 0, encode_set([b"here"]), AckLevel.FLUSHED)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        self.broker.expected_errors = ("",)  # whatever it told is in the verdict
        self.broker.__exit__(kind, error, trace)

    @property
    def address(self) -> Address:
        """Where the bystander finds it."""
        return Address(self.broker.host, self.broker.port, self.broker.modern_port or 0)

    def raw(self, **how: Any) -> RawClient:
        """An attacker's connection to the 2011 port."""
        client = RawClient(self.broker, **how)
        self._open.callback(client.close)
        return client

    def modern(self) -> WireClient:
        """An attacker's connection to the modern port."""
        client = WireClient(self.broker.modern_port or 0)
        self._open.callback(client.close)
        return client

    def let_go(self) -> None:
        """Close what the attacker opened."""
        self._open.close()

    def is_served(self) -> bool:
        """Whether a newcomer can write and read on both ports."""
        try:
            with BrokerConnection(self.broker.host, self.broker.port, timeout_s=5.0) as client:
                offset, _ = client.produce_acked(TOPIC, 0, encode_set([b"again"]), AckLevel.FLUSHED)
                fetched = client.fetch(TOPIC, 0, offset)
            with WireClient(self.broker.modern_port or 0) as modern:
                modern.socket.settimeout(5.0)
                written = modern.produce(TOPIC, [b"again"], acks=-1)
                return bool(fetched) and written.error == ErrorCode.NONE
        except (Kafka2011Error, OSError, EOFError):
            return False

    @property
    def has_ended(self) -> bool:
        """Whether there is no process any more."""
        return self.broker.process is None or self.broker.process.poll() is not None

    def harm(self) -> str:
        """What the process shows of the attack that it should not; empty if nothing."""
        if self.has_ended:
            return "the process ended"
        errors = self.broker.state()["counters"]["handler_errors"]
        self.broker.stop()  # an error that only the garbage collector finds is told at the end
        found = unhandled_errors(self.broker.output)
        return f"{errors + len(found)} errors that nobody foresaw: {found[:1]}" if errors or found else ""


class Peak:
    """The most memory a process had since ``begin``, by the kernel's own mark."""

    def __init__(self, pid: int) -> None:
        self._process = Path(f"/proc/{pid}")
        (self._process / "clear_refs").write_text("5")
        self._before = self._read("VmRSS")

    def grown(self) -> int:
        """Bytes above what it had at the beginning; 0 if it is gone."""
        try:
            return self._read("VmHWM") - self._before
        except OSError:
            return 0

    def _read(self, name: str) -> int:
        lines = (self._process / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def run(row: Row) -> Verdict:
    """Attack a broker of its own, and judge."""
    with Field(row.options, row.environ) as field_, ExitStack() as stack:
        bystander = None if row.restarts else stack.enter_context(Bystander(field_.address))
        peak = Peak(field_.broker.pid)
        broken = ""
        try:
            row.attack(field_)
        except Broken as error:
            broken = str(error)
        except (Kafka2011Error, OSError, EOFError) as error:
            # The attacker was cut off: that is a defence like another. Whether the broker lives is asked below.
            broken = "" if not row.restarts else f"{type(error).__name__}: {error}"
        field_.let_go()
        ended = time.monotonic()
        while not field_.is_served() and time.monotonic() - ended < _PATIENCE_S:
            if field_.has_ended:
                break
            time.sleep(0.05)
        recovered_s = time.monotonic() - ended
        waits = {} if bystander is None else {who: waits.p99() for who, waits in bystander.waits().items()}
        grown = 0 if row.restarts else peak.grown()
        return Verdict(row.name, field_.harm(), waits, grown, recovered_s, broken)
