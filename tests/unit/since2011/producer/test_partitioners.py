"""Where records go that have no key (KIP-480, KIP-794)."""

from __future__ import annotations

import random
from collections import Counter

from since2011.client.backoff import Backoff
from since2011.client.metadata import Metadata, TopicPlaces
from since2011.producer.accumulator import Accumulator
from since2011.producer.configuration import read_config
from since2011.producer.partitioners import Sticky
from since2011.producer.routing import Router
from since2011.wire.codec import NO_UUID


def router(*, batch_size: int = 1000, leaders: tuple[int, ...] = (1, 1, 1), **settings: object) -> Router:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = read_config({"bootstrap.servers": "a:1", "batch.size": batch_size} | named)
    accumulator = Accumulator(batch_size=batch_size, linger_s=1, memory=1 << 20)
    metadata = Metadata(config.bootstrap, max_age_s=1, backoff=Backoff(1, 1))
    available = [index for index, leader in enumerate(leaders) if leader >= 0]
    places = metadata.topics["t"] = TopicPlaces(NO_UUID, list(leaders), [0] * len(leaders), available)
    accumulator.place("t", places)
    made = Router(config, accumulator, metadata)
    made.queues = accumulator.queues["t"]  # type: ignore[attr-defined]
    return made


def choose(router: Router, size: int, **how: object) -> int:
    given = {"partition": None, "key": None, "value": b""} | how
    return router.choose("t", router.queues, size=size, **given).partition  # type: ignore[attr-defined,arg-type]


def test_records_without_a_key_stay_until_a_batch_is_full() -> None:
    """KIP-480: one partition until batch.size bytes, then another one."""
    chosen = router()
    found = [choose(chosen, 100) for _ in range(40)]

    for turn in range(4):
        assert len(set(found[turn * 10 : turn * 10 + 10])) == 1
        assert turn == 0 or found[turn * 10] != found[turn * 10 - 1]


def test_the_bytes_are_spread_evenly() -> None:
    """KIP-794: by bytes, not by batches, so that over many turns every partition gets its share."""
    chosen, sizes = router(), random.Random(1)
    got: Counter[int] = Counter()
    for _ in range(30_000):
        size = sizes.randrange(50, 150)
        got[choose(chosen, size)] += size

    assert max(got.values()) < 1.2 * min(got.values())


def test_long_queues_get_less() -> None:
    """KIP-794, adaptive: where five batches wait, one comes for six that come to where none does."""
    sticky = Sticky(source=random.Random(1))
    got = Counter(sticky.next(2, [0, 1], [5, 0]) for _ in range(7000))
    assert 4.5 < got[1] / got[0] < 7.5


def test_only_partitions_with_a_leader() -> None:
    """KIP-480: without a key, a partition without a leader gets nothing; with none at all, any."""
    chosen = router(leaders=(1, -1, -1))
    assert {choose(chosen, 600) for _ in range(20)} == {0}
    assert {choose(router(leaders=(-1, -1)), 600) for _ in range(50)} == {0, 1}


def test_keys_can_be_ignored() -> None:
    """partitioner.ignore.keys: the key does not decide."""
    by_key = {choose(router(), 600, key=b"k") for _ in range(30)}
    ignored = {choose(router(partitioner_ignore_keys=True), 600, key=b"k") for _ in range(30)}
    assert len(by_key) == 1 and len(ignored) > 1
