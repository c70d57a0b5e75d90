"""What goes wrong in a run, drawn from its seed before it begins, so that a failing run can be made smaller."""

from __future__ import annotations

import random
from typing import NamedTuple

FAULTS_UNTIL_S = 20.0
SESSION_S = 2.0
ZOOKEEPER = -1
"""The other end of a broker's link to ZooKeeper."""


class Fault(NamedTuple):
    """One fault: when, what, to whom, for how long."""

    at: float
    kind: str
    broker: int
    other: int
    lasts: float

    def __str__(self) -> str:
        what = {
            "crash": f"broker {self.broker} dies and comes back after its session has ended",
            "bounce": f"broker {self.broker} dies and is back before its session has ended",
            "power": f"the machine of broker {self.broker} dies, with what was not flushed",
            "cut": f"nothing passes between brokers {self.broker} and {self.other}",
            "cut zookeeper": f"nothing passes between broker {self.broker} and ZooKeeper",
            "isolate": f"broker {self.broker} reaches nobody",
        }[self.kind]
        return f"at {self.at:.2f} s, for {self.lasts:.2f} s: {what}"


_KINDS = ("crash", "crash", "power", "cut", "cut zookeeper", "isolate", "bounce")


def random_faults(seed: int, replicas: tuple[int, ...]) -> list[Fault]:
    """The faults of a run."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    at = chance.uniform(1, 2)
    while at < FAULTS_UNTIL_S:
        kind, broker = chance.choice(_KINDS), chance.choice(replicas)
        other = chance.choice([one for one in replicas if one != broker])
        lasts = chance.uniform(0.3, 5.0)
        if kind in ("crash", "power"):
            lasts = SESSION_S + chance.uniform(0.5, 3.0)
        elif kind == "bounce":
            lasts = chance.uniform(0.1, 1.5)
        faults.append(Fault(at, kind, broker, other, lasts))
        # A machine that lost what was not flushed must not be the only one left: no second fault meanwhile.
        at += chance.expovariate(1 / 1.2) + (lasts + 1.5 if kind == "power" else 0)
    return faults
