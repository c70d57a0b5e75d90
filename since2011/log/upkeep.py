"""What is done to modern logs from time to time, in threads of its own, never in the one that serves requests.

One thread flushes and writes checkpoints, so that these are not late because the other one, which deletes and cleans,
is at work. A job that fails is named and has its next turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from kafka2011.clock import Clock
from since2011.log.events import UpkeepFailed
from since2011.log.manager import LogManager


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """Seconds between two turns of a job; the names of real Kafka's settings are in the comments."""

    flush_s: float = 1.0  # log.flush.scheduler.interval.ms
    checkpoint_s: float = 60.0  # log.flush.offset.checkpoint.interval.ms
    high_watermark_s: float = 5.0  # replica.high.watermark.checkpoint.interval.ms
    retention_s: float = 300.0  # log.retention.check.interval.ms
    cleaner_backoff_s: float = 15.0  # log.cleaner.backoff.ms
    producers_s: float = 600.0  # producer.id.expiration.check.interval.ms
    deletion_s: float = 1.0
    initial_delay_s: float = 30.0  # log.initial.task.delay.ms
    cleaner_enabled: bool = True  # log.cleaner.enable


@dataclass(slots=True)
class Job:
    """Something to do, how often, and when next."""

    name: str
    run: Callable[[], object]
    every_s: float
    due: float


class Worker:
    """One thread and its jobs, in order of their turns. Thread: its own; ``start`` and ``stop`` any."""

    def __init__(self, name: str, jobs: list[Job], manager: LogManager) -> None:
        self.jobs = jobs
        self._clock: Clock = manager.clock
        self._journal = manager.journal
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the job that is being done."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._stopping.wait(max(0.0, self.next_due() - self._clock.monotonic())):
            self.run_due()

    def next_due(self) -> float:
        """When the next job has its turn."""
        return min(job.due for job in self.jobs)

    def run_due(self) -> None:
        """Do what is due."""
        for job in self.jobs:
            if job.due > self._clock.monotonic() or self._stopping.is_set():
                continue
            try:
                job.run()
            except Exception as error:  # the other jobs go on, and this one has its next turn
                self._journal.emit(UpkeepFailed(job=job.name, reason=f"{type(error).__name__}: {error}"))
            job.due = self._clock.monotonic() + job.every_s


class Upkeep:
    """The jobs of a broker's modern logs. Thread: any."""

    def __init__(self, manager: LogManager, settings: UpkeepSettings | None = None) -> None:
        settings = settings or UpkeepSettings()
        now = manager.clock.monotonic()
        later = now + settings.initial_delay_s

        def clean() -> None:
            while manager.clean() is not None and not self._stopping:
                pass

        self._stopping = False
        quick = [
            Job("flush", manager.flush_due, settings.flush_s, now + settings.flush_s),
            Job("high watermarks", manager.checkpoint_high_watermarks, settings.high_watermark_s, later),
            Job("checkpoints", manager.checkpoint, settings.checkpoint_s, later),
        ]
        slow = [
            Job("deleted partitions", manager.remove_deleted, settings.deletion_s, now),
            Job("producers", manager.expire_producers, settings.producers_s, now + settings.producers_s),
            Job("retention", manager.retain, settings.retention_s, later),
        ]
        if settings.cleaner_enabled:
            slow.append(Job("cleaner", clean, settings.cleaner_backoff_s, later))
        self.workers = [Worker("log-flush", quick, manager), Worker("log-upkeep", slow, manager)]

    def start(self) -> None:
        """Begin; the logs are open."""
        for worker in self.workers:
            worker.start()

    def stop(self) -> None:
        """End, before the logs are closed; a log that is being cleaned is finished first."""
        self._stopping = True
        for worker in self.workers:
            worker.stop()
