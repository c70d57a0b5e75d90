"""Bytes nobody foresaw, for every parser: a value or a named error, never anything else.

With atheris (from PyPI, where it installs) the bytes that reach new lines are kept and changed further; without it the
same targets are given damaged copies of good bytes, chosen at random. Each target runs in a process of its own:

    python -m benchmarks.siege.fuzz TARGET SECONDS
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

PACKAGES = ["kafka2011", "zk_registry", "since2011", "consumers", "benchmarks.siege.fuzz_targets"]


def is_guided() -> bool:
    """Whether atheris is there."""
    return importlib.util.find_spec("atheris") is not None


@dataclass(frozen=True)
class Outcome:
    """What came of one target."""

    target: str
    runs: int
    coverage: int
    """Edges of the code that were reached; 0 without atheris."""
    crash: str
    """Empty, or the end of the traceback."""

    def line(self) -> str:
        """One line of the table."""
        return f"{self.target:<20} {self.runs:>10,} inputs {self.coverage:>6} edges   {self.crash or 'held'}"


def fuzz(target: str, seconds: float) -> Outcome:
    """Run one target in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-fuzz-") as place:
        command = [sys.executable, "-m", "benchmarks.siege.fuzz", target, str(seconds), place]
        # The pure Python is what coverage can see; the compiled walkers are held against it by tests/property/wire.
        environ = os.environ | ({"KAFKA2011_PURE": "1"} if is_guided() else {})
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds * 4 + 120, env=environ
        )
    output = done.stdout + done.stderr
    numbers = {name: re.findall(rf"{name}:? *(\d+)", output) for name in ("cov", "Done", "#")}
    runs = [int(n) for n in (*numbers["Done"], *re.findall(r"#(\d+)", output))]
    coverage = int(numbers["cov"][-1]) if numbers["cov"] else 0
    lines = [line for line in output.splitlines() if re.match(r"\S*(Error|Exception|KeyError|timeout)", line.strip())]
    crash = "" if done.returncode == 0 else (lines[-1] if lines else output[-200:])
    return Outcome(target, max(runs, default=0), coverage, crash)


# -- in the process of one target


def _targets() -> dict[str, tuple[Callable[[bytes], object], Sequence[bytes]]]:
    """Every parser with good bytes to begin with. Imported here, so that atheris can watch the imports."""
    from benchmarks.siege import fuzz_targets

    return fuzz_targets.TARGETS


def _guided(target: str, seconds: float, place: str) -> None:
    import atheris

    watched: AbstractContextManager[object] = atheris.instrument_imports(include=PACKAGES)
    with watched:
        run, seeds = _targets()[target]
    for number, seed in enumerate(seeds):
        with open(f"{place}/{number}", "wb") as file:
            file.write(seed)
    options = [f"-max_total_time={max(1, int(seconds))}", f"-artifact_prefix={place}/", "-rss_limit_mb=1024",
               "-timeout=5", "-print_final_stats=1"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, place], run)
    atheris.Fuzz()


def _by_chance(target: str, seconds: float) -> None:
    run, seeds = _targets()[target]
    rng, ends, runs = random.Random(2011), time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        run(damaged(rng, rng.choice(seeds)))
        runs += 1
    print(f"Done {runs} runs")


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A copy with a few bytes changed, cut, inserted or set to the edges of a number."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        what, at = rng.randrange(4), rng.randrange(len(out) + 1)
        if what == 0 and at < len(out):
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif what == 1:
            del out[at:]
        elif what == 2:
            out[at:at] = rng.randbytes(rng.randrange(8))
        else:
            out[at : at + 4] = rng.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1"))
    return bytes(out)


def main() -> None:
    """Fuzz one target until the time is up or it fails."""
    target, seconds, *place = sys.argv[1:]
    if is_guided():
        with tempfile.TemporaryDirectory() if not place else nullcontext(place[0]) as corpus:
            _guided(target, float(seconds), corpus)
    else:
        _by_chance(target, float(seconds))


if __name__ == "__main__":
    main()
