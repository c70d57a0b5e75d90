"""``make fuzz``: the property tests with fresh examples, round after round, for as long as you like.

    make fuzz ARGS="--for 10m"
    make fuzz ARGS="--seed 1234 tests/property/wire"       # one round again, as it was

Every round prints its seed. When a round fails, Hypothesis shows the shrunk example: keep it as an ``@example`` beside
the test, so that ``make test`` tries it from then on.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import time

_UNITS = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """``90s``, ``10m``, ``1h``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 90s, 10m or 1h")
    return float(found[1]) * _UNITS[found[2]]


def main() -> int:
    """Run rounds until the time is over; the exit code of the first that failed."""
    parser = argparse.ArgumentParser(description="Property tests with fresh seeds.")
    parser.add_argument("--for", dest="duration", type=seconds, default=60.0, metavar="TIME", help="default: 60s")
    parser.add_argument("--seed", type=int, help="one round with this seed")
    parser.add_argument("paths", nargs="*", default=["tests/property"])
    chosen = parser.parse_args()
    over = time.monotonic() + chosen.duration
    rounds = 0
    while rounds == 0 or (chosen.seed is None and time.monotonic() < over):
        seed = random.SystemRandom().randrange(1 << 32) if chosen.seed is None else chosen.seed
        print(f"round {rounds + 1}, seed {seed}", flush=True)
        pytest = [sys.executable, "-m", "pytest", "-q", "-x", "--timeout=0", f"--hypothesis-seed={seed}"]
        ended = subprocess.run([*pytest, *chosen.paths], env=os.environ | {"KAFKA2011_HYPOTHESIS": "fuzz"}, check=False)
        rounds += 1
        if ended.returncode:
            print(f'failed; again with: make fuzz ARGS="--seed {seed} {" ".join(chosen.paths)}"')
            return ended.returncode
    print(f"{rounds} rounds, nothing found")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
