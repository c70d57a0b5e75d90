"""``make soak``: the demo under faults for as long as you like, and a verdict.

    make soak ARGS="--for 1h --seed 7"

Every few seconds, chosen by the seed, something is killed, paused, expired or stopped, and healed again; a quarter of
the time nothing is done, so that the cluster can recover. At the end every stored message must have been delivered to
both groups and stand in the warehouse exactly once. Duplicates are legal (§3.3) and counted; so are messages that a
killed broker never stored, because a 2011 producer gets no acknowledgement (§5): the audit names them (§4).
"""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click

from classroom.cluster.cluster import Size
from classroom.cluster.processes import Processes
from classroom.demo.cli import Duration
from classroom.demo.show import Choices, Demo
from classroom.demo.summary import Summary

QUIET = 0.25


class Nemesis:
    """Strikes and heals, one fault at a time. Thread: one."""

    def __init__(self, processes: Processes, seed: int) -> None:
        self._processes, self._random = processes, random.Random(seed)
        self.done: Counter[str] = Counter()
        self._faults: dict[str, tuple[str, Callable[[str], None]]] = {
            "kill consumer": ("consumer", self._kill),
            "pause consumer": ("consumer", self._pause),
            "expire session": ("consumer", lambda name: self._send(name, signal.SIGUSR1)),
            "kill member": ("member", self._kill),
            "pause member": ("member", self._pause),
            "kill broker": ("broker", self._kill),
            "stop broker": ("broker", lambda name: self._processes.stop([name])),
            "pause ZooKeeper": ("zookeeper", self._pause),
        }

    def strike(self) -> str:
        """Do something, wait, heal it; or do nothing. Returns what it was."""
        if self._random.random() < QUIET:
            time.sleep(self._random.uniform(3, 8))
            return "nothing"
        what = self._random.choice(sorted(self._faults))
        kind, act = self._faults[what]
        name = self._random.choice([process.name for process in self._processes.of_kind(kind)])
        act(name)
        time.sleep(self._random.uniform(2, 10))
        self._heal(name)
        time.sleep(self._random.uniform(1, 5))
        self.done[what] += 1
        return f"{what}: {name}"

    def _send(self, name: str, number: int) -> None:
        self._processes.send(name, number)

    def _kill(self, name: str) -> None:
        self._send(name, signal.SIGKILL)

    def _pause(self, name: str) -> None:
        self._send(name, signal.SIGSTOP)

    def _heal(self, name: str) -> None:
        self._send(name, signal.SIGCONT)
        deadline = time.monotonic() + 5
        while self._processes.all[name].running and self._processes.all[name].paused and time.monotonic() < deadline:
            time.sleep(0.05)
        self._processes.start(self._processes.all[name], timeout_s=120.0)


def verdict(summary: Summary) -> list[str]:
    """What is wrong, if anything; loss before the broker is not, and is only told."""
    wrong = [
        f"{group} was given {len(given.distinct):,} of {summary.stored:,} stored messages"
        for group, given in summary.groups.items()
        if len(given.distinct) != summary.stored
    ]
    if summary.loaded.rows != summary.stored:
        wrong.append(f"the warehouse has {summary.loaded.rows:,} rows for {summary.stored:,} stored messages")
    return wrong


@click.command()
@click.option("--for", "seconds", type=Duration(), default="10m", show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(seconds: float, seed: int) -> None:
    """Run the demo under faults and judge it."""
    place = Path(tempfile.mkdtemp(prefix="kafka2011-soak-"))
    demo = Demo(place, Choices(Size(), spark=False, observatory=False, load_every_s=60.0), click.echo)
    over = threading.Event()
    try:
        demo.start()
        nemesis = Nemesis(demo.cluster.processes, seed)
        ends = time.monotonic() + seconds
        # The processes are restarted from this thread, because they die with the thread that started them.
        going = threading.Thread(target=demo.run, args=(None, over), daemon=True)
        going.start()
        while time.monotonic() < ends:
            click.echo(f"{max(ends - time.monotonic(), 0):6.0f} s left  {nemesis.strike()}")
        over.set()
        going.join()
        summary = demo.finish()
    finally:
        demo.stop()
    click.echo("")
    click.echo("\n".join(summary.lines()))
    click.echo(f"faults: {dict(nemesis.done)}")
    wrong = verdict(summary)
    click.echo("held: everything stored was delivered and loaded" if not wrong else "broken: " + "; ".join(wrong))
    if wrong:
        click.echo(f"everything is kept in {place}")
        raise SystemExit(1)
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
