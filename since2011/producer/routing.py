"""The partition of each record: the one asked for, the application's choice, the key's, or the sticky one."""

from __future__ import annotations

from since2011.client.metadata import Metadata
from since2011.client.partitioner import partition_of_key
from since2011.producer.accumulator import Accumulator
from since2011.producer.batch import PartitionQueue
from since2011.producer.configuration import ProducerConfig
from since2011.producer.errors import RecordRefused
from since2011.producer.partitioners import Sticky


class Router:
    """Chooses for one producer. Under its lock."""

    def __init__(self, config: ProducerConfig, accumulator: Accumulator, metadata: Metadata) -> None:
        self._accumulator, self._metadata = accumulator, metadata
        self._own = config.partitioner
        self._by_key = not config.ignore_keys
        self._adaptive, self._batch_size = config.adaptive, config.batch_size
        self._sticky: dict[str, Sticky] = {}

    def choose(
        self,
        topic: str,
        queues: list[PartitionQueue],
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        size: int,
    ) -> PartitionQueue:
        """The queue of a record of ``size`` bytes."""
        if partition is None:
            if key is None and self._own is None:
                sticky = self._sticky.get(topic)
                if sticky is None or sticky.bytes + size > self._batch_size:
                    return self._next(topic, queues, size)
                sticky.bytes += size
                return queues[sticky.partition]
            if self._own is not None:
                places = self._metadata.topics.get(topic)
                partition = self._own(topic, key, value, len(queues), places.available if places else ())
            elif self._by_key and key is not None:
                return queues[partition_of_key(key, len(queues))]
            else:
                return self.choose(topic, queues, None, None, value, size)
        if not 0 <= partition < len(queues):
            raise RecordRefused(f"topic {topic} has partitions 0 to {len(queues) - 1}, not {partition}")
        return queues[partition]

    def _next(self, topic: str, queues: list[PartitionQueue], size: int) -> PartitionQueue:
        """Another sticky partition, that begins with a record of ``size`` bytes."""
        sticky = self._sticky.setdefault(topic, Sticky(adaptive=self._adaptive))
        places = self._metadata.topics.get(topic)
        available = places.available if places else []
        chosen = sticky.next(len(queues), available, self._accumulator.waiting_batches(topic, available))
        sticky.bytes = size
        return queues[chosen]
