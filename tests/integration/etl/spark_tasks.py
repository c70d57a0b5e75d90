"""Tasks that misbehave on purpose, inside Spark's own Python workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from hadoop_etl.runners import in_executor
from hadoop_etl.task import load_split
from hadoop_etl.work import Result, Work
from kafka2011.client import BrokerConnection
from kafka2011.errors import ConnectionFailed

Task = Callable[[Work], Result]


def _first_time(marks: str, work: Work, times: int = 1) -> bool:
    """True for the first ``times`` attempts at the first split of a range."""
    if work.split.start:
        return False
    for number in range(times):
        try:
            (Path(marks) / f"{work.part}-{number}").touch(exist_ok=False)
            return True
        except FileExistsError:
            continue
    return False


def killing_its_worker(marks: str) -> Task:
    """The first attempt writes its files, then its worker process dies."""

    def task(work: Work) -> Result:
        done = in_executor(work)
        if _first_time(marks, work):
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return task


def failing_twice(marks: str) -> Task:
    """Two attempts write their files and fail."""

    def task(work: Work) -> Result:
        done = in_executor(work)
        if _first_time(marks, work, times=2):
            raise OSError("failed on purpose")
        return done

    return task


def twice_at_once(marks: str) -> Task:
    """Every split is read by two attempts at the same time, as speculation would; the second one's result counts."""

    def task(work: Work) -> Result:
        with ThreadPoolExecutor(2) as pool:
            attempts = [pool.submit(load_split, work, f"copy{number}") for number in (1, 2)]
            return [attempt.result() for attempt in attempts][1]

    return task


def stopping_in_mid_read(marks: str) -> Task:
    """After its first chunk each task waits until it is told to read on; it says when its broker is gone."""

    def task(work: Work) -> Result:
        import hadoop_etl.task as module

        place, name = Path(marks), f"{work.part}-{work.split.start}"

        class Watched(BrokerConnection):
            def fetch(self, *arguments: Any) -> bytes:
                try:
                    data = super().fetch(*arguments)
                except ConnectionFailed:
                    (place / f"gone-{name}").touch()
                    raise
                (place / f"reading-{name}").touch()
                deadline = time.monotonic() + 120
                while not (place / "go").exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                return data

        module.BrokerConnection = Watched
        try:
            return in_executor(replace(work, chunk_size=2000))
        finally:
            module.BrokerConnection = BrokerConnection

    return task


def hopeless(work: Work) -> Result:
    """Fails whatever happens."""
    raise OSError("no hope")
