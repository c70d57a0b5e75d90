"""§3.3: the CRC of each message tells whether it is still what was published."""

from __future__ import annotations

from pathlib import Path

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, numbered, publish
from classroom.claims.harness.nursery import wait_for
from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.wire import decode_set

CLAIM = Claim(
    number="C23",
    section="3.3",
    title="What a CRC finds",
    sentence="Having the CRC at the message level also allows us to check network errors after a message is "
    "produced or consumed.",
    experiment="Single bits of a stored log are flipped on the disk, every bit of a message's head and many of "
    "payloads; after each the message is fetched and read, and the bit is put back.",
    threshold="no flipped bit leads to a payload other than the one that was published; a footnote for flips "
    "that nobody notices",
    twist="the reader does not check CRCs",
    dissent="More than one flipped bit: a CRC of 32 bits lets one in four billion random damages pass.",
    later="One CRC-32C for each batch, which covers all of it but its offset and epoch: "
    "since2011/wire/record_batch.py.",
    code=("kafka2011/wire/entry.py", "kafka2011/wire/pure.py"),
    tests=("tests/unit/wire/test_message_sets.py", "tests/integration/broker/test_damage.py"),
    walk="docs/walks/2-flush-and-crash.md",
)

HEAD = 10
"""Length 4, magic 1, attributes 1, CRC 4."""
PARTS = {"length": range(4), "magic": range(4, 5), "attributes": range(5, 6), "CRC": range(6, 10)}


def experiment(bench: Bench) -> Figures:
    """Flip, read, put back."""
    bench.plot("where the bit was", "% of flipped bits that were noticed")
    payloads = numbered(50)
    entry = HEAD + len(payloads[0])
    flips = [(8 * byte + bit) for byte in range(HEAD) for bit in range(8)]
    flips += [8 * HEAD + bench.random.randrange(8 * len(payloads[0])) for _ in range(bench.size(40, 400, 2_000))]
    noticed: dict[str, list[int]] = {name: [0, 0] for name in (*PARTS, "payload")}
    wrong = 0
    with bench.broker(LAZY_FLUSH) as broker, broker.connect() as connection:
        end = publish(broker, "t", payloads)
        wait_for(lambda: connection.offsets("t", 0)[0] == end, "all is flushed")
        (path,) = broker.files("t")
        for place in flips:
            number = bench.random.randrange(len(payloads) - 1)
            _flip(path, 8 * entry * number + place)
            found = _read(connection, number * entry, 2 * entry, checked=not bench.twisted)
            _flip(path, 8 * entry * number + place)
            part = next((name for name, bytes_of in PARTS.items() if place // 8 in bytes_of), "payload")
            noticed[part][0] += found is None
            noticed[part][1] += 1
            wrong += found is not None and found != payloads[number]
    for part, (seen, of) in noticed.items():
        bench.point("noticed", part, 100 * seen / of)
    return {"flips": len(flips), "noticed": noticed, "wrong": wrong}


def judge(figures: Figures) -> Judgement:
    """A wrong payload is what must never be."""
    noticed = sum(seen for seen, _ in figures["noticed"].values())
    figure = (
        f"{figures['wrong']} of {figures['flips']:,} flipped bits gave the application a wrong payload; "
        f"{noticed:,} were noticed"
    )
    if figures["wrong"]:
        return Judgement(Verdict.FAILS, figure)
    seen, of = figures["noticed"]["attributes"]
    if seen < of:
        footnote = (
            f"Of the {of} bits of the attributes byte {of - seen} were flipped and not noticed: the CRC covers the "
            "payload only. They have no meaning, so no harm was done; those that name the compression are noticed "
            "otherwise."
        )
        return Judgement(Verdict.FOOTNOTE, figure, footnote=footnote)
    return Judgement(Verdict.HOLDS, figure)


def _flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def _read(connection: BrokerConnection, offset: int, size: int, *, checked: bool) -> bytes | None:
    """The payload of the message at ``offset``; None if its reader notices that something is wrong."""
    data = connection.fetch("t", 0, offset, size)
    if not checked:
        return data[HEAD : 4 + int.from_bytes(data[:4], "big")]
    try:
        return decode_set(data, offset)[0].payload
    except (Kafka2011Error, IndexError):
        return None
