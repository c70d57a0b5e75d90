"""The six labs, in the order of the paper."""

from __future__ import annotations

from classroom.labs.lab import Lab
from classroom.labs.lab1.seen import SEEN as SEEN_1
from classroom.labs.lab1.unseen import UNSEEN as UNSEEN_1
from classroom.labs.lab2.seen import SEEN as SEEN_2
from classroom.labs.lab2.unseen import UNSEEN as UNSEEN_2
from classroom.labs.lab3.seen import SEEN as SEEN_3
from classroom.labs.lab3.unseen import UNSEEN as UNSEEN_3
from classroom.labs.lab4.seen import SEEN as SEEN_4
from classroom.labs.lab4.unseen import UNSEEN as UNSEEN_4
from classroom.labs.lab5.seen import SEEN as SEEN_5
from classroom.labs.lab5.unseen import UNSEEN as UNSEEN_5
from classroom.labs.lab6.arena import MADE
from classroom.labs.lab6.seen import SEEN as SEEN_6
from classroom.labs.lab6.unseen import UNSEEN as UNSEEN_6
from classroom.labs.registry import ERRORS
from classroom.labs.sandbox import Limits

LABS = (
    Lab(1, "Message set and CRC", "3.1", "2–3", "messages", (*SEEN_1, *UNSEEN_1)),
    Lab(2, "A log with segments and recovery", "3.1", "3–4", "log", (*SEEN_2, *UNSEEN_2)),
    Lab(3, "Flush and visibility under power cuts", "3.1", "3", "flush", (*SEEN_3, *UNSEEN_3)),
    Lab(
        4,
        "A fetch server with sendfile",
        "3.1",
        "4–5",
        "server",
        (*SEEN_4, *UNSEEN_4),
        refuses=frozenset({"os.write", "os.writev", "os.pwrite", "os.pwritev", "os.splice"}),
        # Address space, not memory: forty threads reserve much and use little.
        options={"limits": Limits(memory_bytes=8 << 30, open_files=256)},
    ),
    Lab(
        5,
        "Registries, ephemeral nodes and watches",
        "3.2",
        "3–4",
        "registries",
        (*SEEN_5, *UNSEEN_5),
        given=("zookeeper",),
        options={"errors": ERRORS},
    ),
    Lab(
        6,
        "Algorithm 1, until the simulator cannot break it",
        "3.2",
        "6–10",
        "consumer",
        (*SEEN_6, *UNSEEN_6),
        given=("steps",),
        refuses=frozenset({"time.time", "time.monotonic", "time.sleep", "random.random", "random.uniform"}),
        options={"made": MADE},
    ),
)


def lab(number: int) -> Lab:
    """The lab of that number; KeyError if there is none."""
    return {one.number: one for one in LABS}[number]
