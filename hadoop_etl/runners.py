"""Who runs the tasks: this process, a worker process of this machine, or Spark.

All run the same function on the same splits. A task that fails is tried again a few times; every attempt writes files
of its own. One that fails for good is lost, with the reason, and the others go on: a runner gives up as a whole only if
it cannot run anything.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from hadoop_etl.errors import LoadError
from hadoop_etl.failures import sentence
from hadoop_etl.task import load_split
from hadoop_etl.work import LostSplit, Result, SplitResult, Work
from kafka2011.errors import Kafka2011Error

if TYPE_CHECKING:
    from pyspark import SparkContext

ATTEMPTS = 4

OnProgress = Callable[[int, int], None]
"""Called with the number of splits done and failed attempts so far."""


class Runner(Protocol):
    """Runs splits and returns what became of each, in any order. Thread: one."""

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        """Run all; raises LoadError if none can be run."""


class InlineRunner:
    """Threads of this process: no JVM, no cluster; the work is in C and releases the lock.

    What kills a task kills this process: for programs and tests. The command uses a worker process (``worker``).
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or min(4, os.cpu_count() or 1)

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        results: list[Result] = []
        failed = 0
        for _, result, failures in self.each(dict(enumerate(works))):
            failed += failures
            if result is not None:
                results.append(result)
            on_progress(len(results), failed)
        return results

    def each(
        self, works: Mapping[int, Work], on_begin: Callable[[int], None] = lambda number: None
    ) -> Iterator[tuple[int, Result | None, int]]:
        """Number and result of each as it is done, and how many attempts have failed since; no result: tried again."""

        def attempt(number: int, tries: int) -> SplitResult:
            on_begin(number)
            return load_split(works[number], str(tries))

        with ThreadPoolExecutor(self._threads, thread_name_prefix="etl") as pool:
            running: dict[Future[SplitResult], tuple[int, int]] = {
                pool.submit(attempt, number, 0): (number, 0) for number in works
            }
            try:
                while running:
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        number, tries = running.pop(future)
                        error = future.exception()
                        if error is None:
                            yield number, future.result(), 0
                        elif isinstance(error, (Kafka2011Error, OSError)) and tries + 1 < ATTEMPTS:
                            running[pool.submit(attempt, number, tries + 1)] = (number, tries + 1)
                            yield number, None, 1
                        else:
                            yield number, _lost(works[number], error, tries + 1), 1
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _lost(work: Work, error: BaseException, attempts: int) -> LostSplit:
    where = f"{work.topic} {work.part} at {work.split.start}"
    often = f" {attempts} times, last with" if attempts > 1 else ""
    reason = f"the task for {where} failed{often}: {sentence(error)}; nothing of this topic was published"
    return LostSplit(work, reason)


class SparkRunner:
    """One Spark job: an RDD of splits. Needs no pandas and no jar; the rows never enter the JVM."""

    def __init__(self, context: SparkContext, task: Callable[[Work], Result] | None = None) -> None:
        self._context, self._task = context, task or in_executor

    def run(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        """One job for all. If a worker dies of a task again and again, Spark gives the whole job up: then halves."""
        if not works:
            return []
        try:
            return self._job(works, on_progress)
        except _WorkerDied as death:
            if len(works) == 1:
                (work,) = works
                where = f"{work.topic} {work.part} at {work.split.start}"
                return [LostSplit(work, f"a worker died of the task for {where}: {death}", died=True)]
        middle = len(works) // 2
        return self.run(works[:middle], on_progress) + self.run(works[middle:], on_progress)

    def _job(self, works: Sequence[Work], on_progress: OnProgress) -> list[Result]:
        group = f"kafka2011-{works[0].load}"
        self._context.setJobGroup(group, f"kafka2011 etl {works[0].load}", interruptOnCancel=True)
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(group, stop, on_progress), daemon=True)
        watcher.start()
        try:
            with self._ending_with_jvm():
                found: list[Result] = self._context.parallelize(works, len(works)).map(self._task).collect()
        except KeyboardInterrupt:
            self._context.cancelJobGroup(group)
            raise
        except Exception as error:
            # Py4J raises its own kinds; whichever it is, the job failed and nothing was published.
            words = _last_words(error)
            if any(mark in str(error) for mark in _DEATHS):
                raise _WorkerDied(words) from error
            if not self._is_alive():
                words = f"its Java process ended ({words})"
            raise LoadError(f"Spark gave the load up: {words}; nothing was published") from error
        finally:
            stop.set()
            watcher.join()
        on_progress(len(found), 0)
        return found

    @contextmanager
    def _ending_with_jvm(self) -> Iterator[None]:
        """Let SIGTERM end the job at once, where somebody waits for that signal.

        Whoever asks Spark for something now waits for the job first. So its Java process is ended, and the answer
        that never comes is turned into what the signal means.
        """
        gateway, meant = getattr(self._context, "_gateway", None), signal.getsignal(signal.SIGTERM)
        java = getattr(gateway, "proc", None)
        if java is None or not callable(meant) or threading.current_thread() is not threading.main_thread():
            yield
            return
        ended = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            ended.set()
            java.kill()

        signal.signal(signal.SIGTERM, end)
        try:
            yield
        except Exception:
            if ended.is_set():
                meant(signal.SIGTERM, None)
            raise
        finally:
            signal.signal(signal.SIGTERM, meant)

    def _is_alive(self) -> bool:
        """Tell whether there is still a JVM to talk to."""
        try:
            self._context.statusTracker().getActiveStageIds()
        except Exception:
            # Whatever it says: nobody answers.
            return False
        return True

    def _watch(self, group: str, stop: threading.Event, on_progress: OnProgress) -> None:
        tracker = self._context.statusTracker()
        while not stop.wait(1.0):
            done = failed = 0
            try:
                for job in tracker.getJobIdsForGroup(group):
                    info = tracker.getJobInfo(job)
                    for stage in info.stageIds if info else ():
                        numbers = tracker.getStageInfo(stage)
                        if numbers is not None:
                            done += numbers.numCompletedTasks
                            failed += numbers.numFailedTasks
            except Exception:
                # The JVM is gone; the job itself is about to say so, and says it better.
                return
            on_progress(done, failed)


class _WorkerDied(Exception):
    """A Python worker, or the executor around it, was gone in the middle of a task."""


_DEATHS = ("Python worker exited unexpectedly", "ExecutorLostFailure", "Python worker failed to connect back")


def in_executor(work: Work) -> Result:
    """Load a split inside a Spark task; what fails there as often as Spark tries it is lost, and only that."""
    from pyspark import TaskContext

    context = TaskContext.get()
    # Unique over retries and speculative copies, and over a worker that forgets: time makes it so.
    attempt = f"{context.taskAttemptId() if context else 0}.{time.time_ns():x}"
    tries = (context.attemptNumber() if context else 0) + 1
    try:
        return load_split(work, attempt)
    except (Kafka2011Error, OSError) as error:
        if tries < ATTEMPTS:
            raise  # on another executor it may go better
        return _lost(work, error, tries)
    except Exception as error:
        # Whatever a library raises: the same bytes would raise it again.
        return _lost(work, error, tries)


def _last_words(error: BaseException) -> str:
    """The sentence of the task's own error, without the stack around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(("hadoop_etl.", "kafka2011.", "OSError", "pyarrow."))]
    return (own or lines or [type(error).__name__])[0][:500]
