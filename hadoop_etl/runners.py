"""Who runs the tasks: this process, for small loads without a JVM, or Spark.

Both run the same function on the same splits. A task that fails is tried again a few times; every attempt writes files
of its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol

from hadoop_etl.errors import LoadError
from hadoop_etl.task import Done, Work, load_split
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from pyspark import SparkContext

ATTEMPTS = 4

OnProgress = Callable[[int, int], None]
"""Called with the number of splits done and failed attempts so far."""


class Runner(Protocol):
    """Runs splits and returns what each did, in any order. Thread: one."""

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Done]:
        """Run all, or raise LoadError."""


class InlineRunner:
    """Threads of this process: no JVM, no cluster; the work is in C and releases the lock."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or min(4, os.cpu_count() or 1)

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Done]:
        done: list[Done] = []
        failed = 0
        with ThreadPoolExecutor(self._threads, thread_name_prefix="etl") as pool:
            running: dict[Future[Done], tuple[Work, int]] = {
                pool.submit(load_split, work, "0"): (work, 0) for work in works
            }
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    work, attempt = running.pop(future)
                    error = future.exception()
                    if error is None:
                        done.append(future.result())
                    elif isinstance(error, (Kafka2011Error, OSError)) and attempt + 1 < ATTEMPTS:
                        failed += 1
                        running[pool.submit(load_split, work, str(attempt + 1))] = (work, attempt + 1)
                    else:
                        pool.shutdown(wait=True, cancel_futures=True)
                        raise LoadError(
                            f"the task for {work.topic} {work.part} at {work.split.start} failed {attempt + 1} times, "
                            f"last with: {error}; nothing was published"
                        ) from error
                    on_progress(len(done), failed)
        return done


class SparkRunner:
    """One Spark job: an RDD of splits. Needs no pandas and no jar; the rows never enter the JVM."""

    def __init__(self, context: SparkContext, task: Callable[[Work], Done] | None = None) -> None:
        self._context, self._task = context, task or in_executor

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Done]:
        if not works:
            return []
        group = f"kafka2011-{works[0].load}"
        self._context.setJobGroup(group, f"kafka2011 etl {works[0].load}", interruptOnCancel=True)
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(group, stop, on_progress), daemon=True)
        watcher.start()
        try:
            found: list[Done] = self._context.parallelize(works, len(works)).map(self._task).collect()
        except KeyboardInterrupt:
            self._context.cancelJobGroup(group)
            raise
        except Exception as error:
            # Py4J raises its own kinds; whichever it is, the job failed and nothing was published.
            raise LoadError(f"Spark gave the load up: {_last_words(error)}; nothing was published") from error
        finally:
            stop.set()
            watcher.join()
        on_progress(len(found), 0)
        return found

    def _watch(self, group: str, stop: threading.Event, on_progress: OnProgress) -> None:
        tracker = self._context.statusTracker()
        while not stop.wait(1.0):
            done = failed = 0
            for job in tracker.getJobIdsForGroup(group):
                info = tracker.getJobInfo(job)
                for stage in info.stageIds if info else ():
                    numbers = tracker.getStageInfo(stage)
                    if numbers is not None:
                        done += numbers.numCompletedTasks
                        failed += numbers.numFailedTasks
            on_progress(done, failed)


def in_executor(work: Work) -> Done:
    """Load a split inside a Spark task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    # Unique over retries and speculative copies, and over a worker that forgets: time makes it so.
    attempt = f"{context.taskAttemptId() if context else 0}.{time.time_ns():x}"
    return load_split(work, attempt)


def _last_words(error: BaseException) -> str:
    """The sentence of the task's own error, without the stack around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(("hadoop_etl.", "kafka2011.", "OSError", "pyarrow."))]
    return (own or lines or [type(error).__name__])[0][:500]
