"""§3.1: sequential access lets the operating system's caching work."""

from __future__ import annotations

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness import meters
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH, fill, read_all
from classroom.claims.harness.meters import MB
from classroom.claims.harness.page_cache import Pages, evict
from classroom.claims.harness.room import ClaimBroker

CLAIM = Claim(
    number="C09",
    section="3.1",
    title="Sequential access and read-ahead",
    sentence="with the consumer often lagging the producer by a small amount, normal operating system caching "
    "heuristics are very effective (specifically write-through caching and read-ahead)",
    experiment="A consumer reads right behind the producer: bytes from the disk are counted. Then the log is put "
    "out of the cache and a late consumer reads it from the beginning: before each fetch mincore says whether "
    "its bytes are there already. The same fetches in random order are the control.",
    threshold="nothing comes from the disk for the close consumer; the late one finds at least a third more of "
    "its bytes already in memory than a reader in random order",
    twist="the late consumer reads in random order too, as with an index from message ids",
    dissent="A disk that reads ahead by itself, or a kernel whose read-ahead is set to 0 (blockdev --setra).",
    later="The same; a consumer that is far behind still disturbs the cache of the others (tiered storage is "
    "today's answer).",
    code=("kafka2011/log/segment.py",),
    tests=("tests/paper/broker/test_broker.py",),
    walk="docs/walks/3-fetch-and-sendfile.md",
)

PIECE = 64 << 10


def experiment(bench: Bench) -> Figures:
    """A close consumer, a late one, and one that jumps about."""
    bench.plot("reader", "% of the bytes already in memory when asked for")
    size = bench.size(8, 48, 192) * MB
    with bench.broker(LAZY_FLUSH) as broker:
        begin, from_disk = 0, 0
        for _ in range(4):
            end = fill(broker, "t", size // 4)
            before = meters.io(broker.pid)
            read_all(broker, "t", begin, end)
            from_disk += (meters.io(broker.pid) - before).read_bytes
            begin = end
        offsets = list(range(0, end - PIECE, PIECE))
        orders = {"sequential": list(offsets), "random": bench.random.sample(offsets, len(offsets))}
        if bench.twisted:
            bench.random.shuffle(orders["sequential"])
        found = {}
        for name, order in orders.items():
            found[name] = _already_there(broker, order)
            bench.point("there already", name, 100 * found[name])
    bench.point("there already", "close behind", 100 * (1 - from_disk / end))
    shares = {name: round(share, 3) for name, share in found.items()}
    return {"log_mb": round(end / MB, 1), "close_from_disk": from_disk, **shares}


def judge(figures: Figures) -> Judgement:
    """Write-through for the close consumer, read-ahead for the late one."""
    late, jumping = figures["sequential"], figures["random"]
    figure = (
        f"close behind the producer {figures['close_from_disk']:,} of {figures['log_mb']:.0f} million bytes came from "
        f"the disk; a late consumer found {late:.0%} of its bytes read ahead, a reader in random order {jumping:.0%}"
    )
    spread = "counts of pages; how far the kernel reads ahead differs a little from run to run"
    close = figures["close_from_disk"] < 0.01 * figures["log_mb"] * MB
    return Judgement(Verdict.HOLDS if close and late > jumping + 1 / 3 else Verdict.FAILS, figure, spread)


def _already_there(broker: ClaimBroker, offsets: list[int]) -> float:
    """Fetch pieces of a cold log in some order; the share of pages that were in memory before they were asked for."""
    (path,) = broker.files("t")
    evict([path])
    pages, there, asked = Pages(path), 0, 0
    with broker.connect() as connection:
        for offset in offsets[: 40 * MB // PIECE]:
            resident, wanted = pages.resident(offset, offset + PIECE)
            there, asked = there + resident, asked + wanted
            connection.fetch("t", 0, offset, PIECE)
    return there / asked
