"""Fetchers on one side, streams on the other: what starts and stops when a rebalance says so.

Paper: §3.2 ("invoke a thread to pull data in partition p"), §3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from consumers.algorithm1.steps import Claim, Owned
from consumers.fetcher import FetchedChunk, Fetcher
from consumers.stream import Stream, message_class
from kafka2011.clock import Clock
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerAddress, BrokerPartition, TopicPartition
from kafka2011.wire import MessageAndOffset

FINISH_S = 0.5
"""How long a rebalance waits for an application to finish the message in its hand."""


class MakeFetcher(Protocol):
    """Makes the fetcher of one broker."""

    def __call__(
        self,
        address: BrokerAddress,
        *,
        deliver: Callable[[FetchedChunk], None],
        on_error: Callable[[TopicPartition, Kafka2011Error], None],
        kind_of: Callable[[TopicPartition], type[MessageAndOffset]],
    ) -> Fetcher: ...


class NotOwned(Kafka2011Error):
    """A partition this consumer does not read now."""

    retriable = True


class Delivery:
    """All that one consumer reads. Thread: worker, except ``positions`` and ``seek`` (any).

    Lock order: a fetcher's, then a stream's; never the other way round.
    """

    def __init__(self, stream_of: Callable[[str, int], Stream], make_fetcher: MakeFetcher, clock: Clock) -> None:
        self._stream_of, self._make_fetcher, self._clock = stream_of, make_fetcher, clock
        self._fetchers: dict[BrokerAddress, Fetcher] = {}
        self._places: dict[Owned, tuple[Stream, BrokerAddress]] = {}

    def start(self, claims: Iterable[Claim]) -> None:
        """Pull these, beside what is pulled already."""
        for claim in claims:
            stream = self._stream_of(claim.owned.topic, claim.thread.index)
            stream.on_room = lambda stream=stream: self._resume(stream)  # type: ignore[misc]
            offset = stream.add(claim.owned, claim.offset)
            self._places[claim.owned] = stream, claim.address
            self._fetcher(claim.address).add({_source(claim.owned): offset})
        in_use = {address for _, address in self._places.values()}
        for address in self._fetchers.keys() - in_use:
            self._fetchers.pop(address).stop(wait_s=0)

    def stop(self, partitions: Collection[Owned] | None = None) -> dict[Owned, int]:
        """Deliver no more of these (None = of all); return how far the application got in each."""
        stopped = [owned for owned in self._places if partitions is None or owned in partitions]
        places = {owned: self._places.pop(owned) for owned in stopped}
        for owned, (_, address) in places.items():
            self._fetchers[address].remove([_source(owned)])
        streams = {stream.name: stream for stream, _ in places.values()}
        revoked = [(stream, stream.revoke(places.keys())) for stream in streams.values()]
        deadline = self._clock.monotonic() + FINISH_S
        positions: dict[Owned, int] = {}
        for stream, readers in revoked:
            positions |= stream.settle(readers, max(0.0, deadline - self._clock.monotonic()))
        return positions

    def positions(self) -> dict[Owned, int]:
        """How far the application got in each partition."""
        streams = {stream.name: stream for stream, _ in list(self._places.values())}
        return {owned: at for stream in streams.values() for owned, at in stream.positions().items()}

    def seek(self, owned: Owned, offset: int) -> None:
        """Go on elsewhere in a partition that is read now."""
        place = self._places.get(owned)
        if place is None:
            raise NotOwned(f"{owned} is not read by this consumer now, so it cannot seek there; the owner can")
        stream, address = place
        fetcher = self._fetchers[address]
        fetcher.remove([_source(owned)])
        stream.revoke([owned])
        stream.add(owned, offset)
        fetcher.add({_source(owned): offset})

    def close(self) -> None:
        """End all fetchers."""
        for fetcher in self._fetchers.values():
            fetcher.stop(wait_s=0.2)

    def _fetcher(self, address: BrokerAddress) -> Fetcher:
        if address not in self._fetchers:
            broker = address.broker_id
            self._fetchers[address] = self._make_fetcher(
                address,
                deliver=lambda chunk: self._deliver(broker, chunk),
                on_error=lambda source, error: self._failed(broker, source, error),
                kind_of=lambda source: message_class(source.topic, BrokerPartition(broker, source.partition)),
            )
        return self._fetchers[address]

    def _deliver(self, broker: int, chunk: FetchedChunk) -> None:
        owned = _owned(broker, chunk.source)
        place = self._places.get(owned)
        if place is not None and place[0].put(owned, chunk):
            self._fetchers[place[1]].pause([chunk.source])

    def _failed(self, broker: int, source: TopicPartition, error: Kafka2011Error) -> None:
        owned = _owned(broker, source)
        place = self._places.get(owned)
        if place is not None:
            place[0].put(owned, error)

    def _resume(self, stream: Stream) -> None:
        by_address: dict[BrokerAddress, list[TopicPartition]] = {}
        for owned, (its_stream, address) in list(self._places.items()):
            if its_stream is stream:
                by_address.setdefault(address, []).append(_source(owned))
        for address, sources in by_address.items():
            fetcher = self._fetchers.get(address)
            if fetcher is not None:
                fetcher.resume(sources)


def _source(owned: Owned) -> TopicPartition:
    return TopicPartition(owned.topic, owned.partition.partition)


def _owned(broker: int, source: TopicPartition) -> Owned:
    return Owned(source.topic, BrokerPartition(broker, source.partition))
