"""Find the claims, run one, keep what came out."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from classroom.claims.claim import CannotTell, Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench, Scale, Told
from classroom.claims.harness.meters import busy, machine
from classroom.claims.harness.room import Room
from kafka2011.errors import Kafka2011Error

_NAME = re.compile(r"c\d\d_")


class Trial(Protocol):
    """A claim's module."""

    CLAIM: Claim

    def experiment(self, bench: Bench) -> Figures: ...
    def judge(self, figures: Figures) -> Judgement: ...


class NoSuchClaim(Kafka2011Error):
    """Nobody has written that claim down."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one claim, ready to be written down."""

    claim: Claim
    judgement: Judgement
    figures: Figures
    plot: dict[str, Any]
    scale: str
    twisted: bool
    date: str
    seconds: float
    machine: str
    busy: str

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; the claim's own words first."""
        rest = asdict(self)
        return {**rest.pop("claim"), **rest.pop("judgement"), **rest}


def trials() -> list[Trial]:
    """All claims in order."""
    import classroom.claims as package

    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__) if _NAME.match(module.name))
    return [cast(Trial, import_module(f"classroom.claims.{name}")) for name in names]


def trial(number: str) -> Trial:
    """The claim with a number: ``C07``, ``c7`` or ``7``."""
    digits = number.upper().lstrip("C")
    wanted = f"C{int(digits):02d}" if digits.isdigit() else number
    known = {one.CLAIM.number: one for one in trials()}
    if wanted not in known:
        raise NoSuchClaim(f"there is no claim {number!r}; `kafka2011 claims list` shows C01 to {max(known)}")
    return known[wanted]


def run(
    trial: Trial, room: Room, *, scale: Scale = Scale.FULL, twisted: bool = False, tell: Told = lambda event: None
) -> Result:
    """Do the experiment and judge it. What cannot be done here is told as such; a defect is an error."""
    claim = trial.CLAIM
    tell({"claim": claim.number, "title": claim.title})
    bench = Bench(room, claim.number, scale=scale, twisted=twisted, tell=tell)
    begun, load = time.monotonic(), busy()
    figures: Figures = {}
    try:
        figures = trial.experiment(bench)
        judgement = trial.judge(figures)
    except CannotTell as why:
        judgement = Judgement(Verdict.UNKNOWN, str(why), "")
    result = Result(
        claim,
        judgement,
        figures,
        bench.picture.as_dict(),
        scale.name.lower(),
        twisted,
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        round(time.monotonic() - begun, 1),
        machine(),
        load,
    )
    tell({"result": result.as_dict()})
    return result


def run_all(
    chosen: list[Trial], directory: Path | None, *, scale: Scale, twisted: bool = False, tell: Told
) -> Iterator[Result]:
    """One after the other in one room; each result is kept as soon as it is there."""
    with Room() as room:
        for one in chosen:
            result = run(one, room, scale=scale, twisted=twisted, tell=tell)
            if directory is not None and not twisted:
                keep(directory, result)
            yield result


def results_directory() -> Path:
    """Where verdicts are kept unless told otherwise: beside the data of brokers."""
    home = os.environ.get("XDG_DATA_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path("~/.local/share").expanduser()
    return base / "kafka2011-claims"


def keep(directory: Path, result: Result) -> None:
    """Write a result down, whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True)
    new = directory / f".{result.claim.number}.new"
    new.write_text(json.dumps(result.as_dict(), indent=1, ensure_ascii=False) + "\n")
    os.replace(new, directory / f"{result.claim.number}.json")


def kept(directory: Path) -> dict[str, dict[str, Any]]:
    """The last result of each claim."""
    found = {}
    for path in sorted(directory.glob("C[0-9][0-9].json")):
        try:
            found[path.stem] = json.loads(path.read_text())
        except ValueError:
            continue  # half a file from elsewhere is no result
    return found
