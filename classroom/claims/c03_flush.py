"""§3.1: readers never see what a power cut can take away."""

from __future__ import annotations

from pathlib import Path

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.alterations import SYNCED
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import NEVER_FLUSH, numbered, publish
from classroom.claims.harness.room import ClaimBroker
from kafka2011.wire import decode_set

CLAIM = Claim(
    number="C03",
    section="3.1",
    title="Exposed only after flush",
    sentence="A message is only exposed to the consumers after it is flushed.",
    experiment="A broker flushes every 50 messages. An eager reader reads all it is given; then the broker is "
    "killed, or the power is cut: killed, and its files are cut to what the last fsync had covered. What was "
    "read is looked for again.",
    threshold="no message that a reader was given is missing after a kill or a power cut",
    twist="the broker answers fetches up to the end of the log, flushed or not",
    dissent="A disk that says it has synced and has not. The power cut here is made from the kernel's own calls "
    "to fsync; tests/integration/log/test_power_cut.py cuts a real ext4 file system, which needs root.",
    later="Today readers see what is replicated (the high watermark), not what is flushed: docs/since-2011.md.",
    code=("kafka2011/log/log.py", "kafka2011/broker/flusher.py"),
    tests=("tests/paper/broker/test_broker.py", "tests/integration/log/test_power_cut.py"),
    walk="docs/walks/2-flush-and-crash.md",
)


def experiment(bench: Bench) -> Figures:
    """Kill and cut at several amounts of unflushed messages."""
    bench.plot("messages not flushed when it happened", "messages read and then gone")
    every_50 = NEVER_FLUSH | {"log.flush.interval": 50}
    altered = ["note_syncs", "exposed"] if bench.twisted else ["note_syncs"]
    rounds, seen, gone = bench.size(1, 3, 8), {"kill": 0, "power cut": 0}, {"kill": 0, "power cut": 0}
    for number in range(rounds):
        for how in gone:
            unflushed = 7 + 5 * number
            with bench.broker(every_50, altered=altered, name=f"{how}-{number}") as broker:
                publish(broker, "t", numbered(50))
                publish(broker, "t", numbered(unflushed, first=50))
                read = _read(broker)
                broker.kill()
                if how == "power cut":
                    _forget_unsynced(broker)
                broker.restart()
                left = _read(broker)
            lost = len(read - left)
            seen[how] += len(read)
            gone[how] += lost
            bench.point(how, unflushed, lost)
    return {"rounds": rounds, "seen": seen, "gone": gone}


def judge(figures: Figures) -> Judgement:
    """Nothing that was seen may be gone."""
    seen, gone = sum(figures["seen"].values()), sum(figures["gone"].values())
    figure = f"{gone} of {seen} messages that were read are gone after {figures['rounds']} kills and as many power cuts"
    return Judgement(Verdict.FAILS if gone else Verdict.HOLDS, figure)


def _read(broker: ClaimBroker) -> set[bytes]:
    """What an eager reader is given."""
    found: set[bytes] = set()
    with broker.connect() as connection:
        offset = 0
        while data := connection.fetch("t", 0, offset):
            for message in decode_set(data, offset):
                found.add(message.payload)
                offset = message.next_offset
    return found


def _forget_unsynced(broker: ClaimBroker) -> None:
    """What the power cut leaves: of each file as much as its last fsync had covered."""
    notes = (line.split(" ", 1) for line in (broker.notes / SYNCED).read_text().splitlines())
    synced = {Path(name): int(size) for size, name in notes}
    for path in broker.files("t"):
        with path.open("r+b") as file:
            file.truncate(synced.get(path, 0))


