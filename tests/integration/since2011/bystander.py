"""Someone who only wants to be served while others misbehave, and who counts the milliseconds."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psutil

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct
from tests.integration.since2011.wire_client import WireClient

MiB = 1 << 20


class Bystander:
    """Ask a small question every few milliseconds, and look at the broker's memory. Thread: its own."""

    def __init__(self, broker: BrokerProcess) -> None:
        assert broker.modern_port is not None
        self._client = WireClient(broker.modern_port)
        self._process = psutil.Process(broker.pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.waits_s: list[float] = []
        self._before = self._peak = self._process.memory_info().rss

    @property
    def p99_ms(self) -> float:
        """What one question of a hundred waited at least for its answer."""
        return 1000 * sorted(self.waits_s)[int(len(self.waits_s) * 0.99)]

    @property
    def worst_ms(self) -> float:
        """The longest wait."""
        return 1000 * max(self.waits_s)

    @property
    def grown(self) -> int:
        """How many bytes more than at the beginning the broker had at its largest."""
        return self._peak - self._before

    def still_grown(self) -> int:
        """How many it has now."""
        return self._process.memory_info().rss - self._before

    def _work(self) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            self._client.ask(ApiKey.API_VERSIONS, 0, Struct())
            self.waits_s.append(time.monotonic() - began)
            self._peak = max(self._peak, self._process.memory_info().rss)
            self._over.wait(0.005)

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()
