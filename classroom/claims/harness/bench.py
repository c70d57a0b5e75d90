"""What an experiment has at hand: its size, its twist, brokers and consumers, and a plot to put points on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

from classroom.claims.harness.room import ClaimBroker, Room


class Scale(Enum):
    """How large a run is: for the tests, for a lecture, for a verdict to hand out."""

    TINY = 0
    QUICK = 1
    FULL = 2


@dataclass(slots=True)
class Plot:
    """The picture of a run. ``x`` of a point is a number, or a name for a bar."""

    x: str = ""
    y: str = ""
    log: bool = False
    """Whether the x axis is logarithmic."""
    points: list[tuple[str, float | str, float]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


Told = Callable[[dict[str, Any]], None]


class Bench:
    """One run of one experiment. Thread: one."""

    def __init__(
        self,
        room: Room,
        name: str,
        *,
        scale: Scale = Scale.FULL,
        twisted: bool = False,
        tell: Told = lambda event: None,
    ) -> None:
        self.room, self.name, self.scale, self.twisted = room, name, scale, twisted
        self.random = Random(2011)
        self.directory: Path = room.directory(name)
        self.picture = Plot()
        self._tell = tell

    def size(self, tiny: int, quick: int, full: int) -> int:
        """A number for each scale."""
        return (tiny, quick, full)[self.scale.value]

    @contextmanager
    def broker(
        self,
        options: Mapping[str, object] | None = None,
        *,
        altered: Sequence[str] = (),
        name: str = "broker",
        log_dir: Path | None = None,
    ) -> Iterator[ClaimBroker]:
        """A broker as a process of its own, in a directory of its own."""
        nursery = self.room.nursery
        with ClaimBroker(nursery, log_dir or self.directory / name, options or {}, altered) as process:
            yield process

    def plot(self, x: str, y: str, *, log: bool = False) -> None:
        """Name the axes, before the first point."""
        self.picture.x, self.picture.y, self.picture.log = x, y, log
        self._tell({"plot": {"x": x, "y": y, "log": log}})

    def point(self, series: str, x: float | str, y: float) -> None:
        """Put a point on the plot; whoever watches sees it at once."""
        self.picture.points.append((series, x, round(y, 6)))
        self._tell({"point": [series, x, round(y, 6)]})

    def say(self, text: str) -> None:
        """Tell whoever watches what is going on."""
        self._tell({"says": text})
