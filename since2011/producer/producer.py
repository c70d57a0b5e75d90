"""Today's producer: ``send`` takes a record, a thread of its own brings it to the leader of its partition.

    producer = Producer({"bootstrap.servers": "127.0.0.1:9192", "linger.ms": 20})
    producer.send("clicks", b"viewed profile 7", key=b"member42", on_delivery=print)
    producer.flush()

The settings are those of Kafka's own producer and of librdkafka's, by the same names. Each record is stored once and in
the order of its partition, whatever breaks on the way, within ``delivery.timeout.ms``: that is what idempotence, which
is on by default, is for. The paper's producer (``kafka2011.producer``) is told nothing, and may lose or repeat.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from kafka2011.clock import SYSTEM_CLOCK, Clock
from kafka2011.errors import ProducerClosed
from kafka2011.types import TopicPartition
from since2011.client.backoff import Backoff
from since2011.client.group_metadata import GroupMetadata, OffsetAndMetadata
from since2011.client.metadata import Metadata
from since2011.client.network import Network, Opener
from since2011.producer.accumulator import Accumulator
from since2011.producer.batch import PartitionQueue
from since2011.producer.configuration import read_config
from since2011.producer.delivery import Delivery, OnDelivery
from since2011.producer.dispatch import Dispatcher
from since2011.producer.errors import (
    BufferExhausted,
    RecordRefused,
    RetriableError,
    SendError,
    TimedOut,
    error_of,
)
from since2011.producer.idempotence import Idempotence
from since2011.producer.interceptors import Interceptors
from since2011.producer.metrics import Metrics
from since2011.producer.record import OVERHEAD, Header, ProducerRecord, as_bytes, size_with_headers
from since2011.producer.routing import Router
from since2011.producer.sender import Sender
from since2011.producer.transaction_state import Call, Wrong
from since2011.producer.transactions import Transactions
from since2011.wire.error_codes import ErrorCode

_BATCHES_BEFORE_THE_SENDER = 8
_HOPELESS = (ErrorCode.INVALID_TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class Producer:
    """Sends records. Thread: any. A context manager, which flushes and closes."""

    def __init__(
        self, settings: Mapping[str, Any], *, clock: Clock = SYSTEM_CLOCK, opener: Opener | None = None
    ) -> None:
        self.config = config = read_config(settings)
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        backoff = Backoff(*config.retry_backoff_s)
        self._accumulator = Accumulator(
            batch_size=config.batch_size, linger_s=config.linger_s, memory=config.buffer_memory
        )
        self._queues = self._accumulator.queues
        self._metadata = Metadata(config.bootstrap, max_age_s=config.metadata_max_age_s, backoff=backoff)
        transactional = config.transactional_id is not None
        idempotence = Idempotence(transactional=transactional) if config.idempotent else None
        self._transactions: Transactions | None = None
        if config.transactional_id is not None and idempotence is not None:
            self._transactions = Transactions(
                config.transactional_id, config.transaction_timeout_ms, idempotence, backoff
            )
        self._dispatcher = Dispatcher(
            config, self._accumulator, self._metadata, idempotence, self._transactions, backoff
        )
        self._interceptors = Interceptors(config.interceptors)
        self._network = Network(
            client_id=config.client_id,
            clock=clock,
            backoff=Backoff(*config.reconnect_backoff_s),
            request_timeout_s=config.request_timeout_s,
            opener=opener,
        )
        self._sender = Sender(config, self._dispatcher, self._network, self._changed, self._interceptors, clock)
        self._router = Router(config, self._accumulator, self._metadata)
        self._largest = min(config.max_request_size, config.buffer_memory)
        self._begun = 0
        self._closed = False
        self._prepared = bool(self._interceptors or config.key_serializer or config.value_serializer)
        self._sender.start()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close(None if kind is None else 0)

    # -- records --------------------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Take a record; returns before it is sent. Waits at most ``max.block.ms``, for the topic's leaders and memory.

        ``on_delivery(metadata, error)`` is called in the producer's thread, in order within a partition: be quick.
        """
        if self._prepared:
            record = self._interceptors.on_send(ProducerRecord(topic, value, key, partition, timestamp, headers))
            topic, value, key, partition, timestamp, headers = self._serialized(record)
        if (value.__class__ is not bytes and value is not None) or (key.__class__ is not bytes and key is not None):
            key, value = as_bytes(key, value)
        size = OVERHEAD + (len(value) if value else 0) + (len(key) if key else 0)
        if headers:
            size = size_with_headers(key, value, headers)
        if size > self._largest:
            raise self._too_large(topic, size)
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        elif timestamp < 0:
            raise RecordRefused(f"the timestamp is {timestamp}; it is milliseconds since 1970")
        with self._lock:
            queues = self._queues.get(topic) or self._check(topic)
            queue = self._router.choose(topic, queues, partition, key, value, size)
            row = (timestamp, key, value, headers)
            delivery = self._accumulator.extend(queue, row, size, on_delivery)
            if delivery is not None:
                return delivery
            # What follows is done once for each batch: none is open where sending is not allowed.
            self._check(topic)
            if self._transactions is not None:
                self._transactions.take_part(queue)
            if not self._accumulator.has_memory(size):
                self._wait_for_memory(queue, size)
            delivery = self._accumulator.begin(queue, row, size, on_delivery, self._clock.monotonic())
        self._begun += 1
        if self._begun % _BATCHES_BEFORE_THE_SENDER == 0:
            self._sender.let_go_first()
        else:
            self._sender.wake()
        return delivery

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything sent before is stored or has failed, and was called back; linger is over for it."""
        self._not_in_a_callback("flush")
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            self._accumulator.flushing += 1
            waiting = list(self._accumulator.incomplete)
        self._sender.wake()
        try:
            while waiting:
                batch = waiting.pop(0)
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not batch.event().wait(left):
                    raise TimedOut(f"{len(waiting) + 1} batches are still under way after {timeout} s; flush again")
                if batch.outcome is None:  # it was split
                    waiting = [*dict.fromkeys(delivery.batch for delivery in batch.deliveries), *waiting]
        finally:
            with self._changed:
                self._accumulator.flushing -= 1

    def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has; makes the topic where brokers do that by themselves."""
        with self._changed:
            return len(self._check(topic, sending=False))

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, for at most ``timeout`` seconds, and end. An open transaction is left to the coordinator.

        What is not settled by then fails. From a callback, it ends at once.
        """
        with self._changed:
            first, self._closed = not self._closed, True
            self._accumulator.close()
            self._changed.notify_all()
        if not first:
            return
        own = threading.current_thread() is self._sender.thread
        try:
            if not own and timeout != 0:
                self.flush(timeout)
        except TimedOut:
            pass
        finally:
            with self._changed:
                self._dispatcher.outcomes.fail_all(
                    RetriableError("the producer was closed before the record was acknowledged; send it again")
                )
            self._sender.stop()
            if not own:
                self._sender.thread.join()

    def metrics(self) -> Metrics:
        """What has happened so far."""
        with self._changed:
            return Metrics.of(self._accumulator, self._dispatcher.outcomes, self._sender)

    # -- transactions ---------------------------------------------------------------------------------------------

    def init_transactions(self, timeout: float | None = None) -> None:
        """Tell the coordinator who we are: an older producer of this name is fenced, and what it began is ended."""
        with self._changed:
            call = self._transactional("init_transactions").initialize()
        self._await(call, timeout)

    def begin_transaction(self) -> None:
        """What is sent from now on is stored together, or not at all."""
        with self._changed:
            self._transactional("begin_transaction").begin()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group_metadata: GroupMetadata,
        timeout: float | None = None,
    ) -> None:  # fmt: skip
        """Commit these offsets of a consumer's group if, and only if, the transaction is committed."""
        places = {
            partition: OffsetAndMetadata(place) if isinstance(place, int) else place
            for partition, place in offsets.items()
        }
        with self._changed:
            call = self._transactional("send_offsets_to_transaction").send_offsets(places, group_metadata)
        self._await(call, timeout)

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Flush, and make everything sent since ``begin_transaction`` count."""
        self._end("commit_transaction", timeout)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Make nothing count of what was sent since ``begin_transaction``; what is not sent yet, is not."""
        self._end("abort_transaction", timeout)

    def _end(self, name: str, timeout: float | None) -> None:
        self._not_in_a_callback(name)
        with self._changed:
            transactions = self._transactional(name)
            call = transactions.commit() if name == "commit_transaction" else transactions.abort()
            self._accumulator.flushing += 1
        try:
            self._await(call, timeout)
        finally:
            with self._changed:
                self._accumulator.flushing -= 1

    def _transactional(self, name: str) -> Transactions:
        if self._closed:
            raise ProducerClosed(f"{name}(): the producer is closed; make another one")
        if self._transactions is None:
            raise Wrong(f"{name}(): set transactional.id to use transactions")
        return self._transactions

    def _await(self, call: Call, timeout: float | None) -> None:
        """Wait for a call's end; raises its error, or TimedOut, and then it may be called again to wait on."""
        limit = self.config.max_block_s if timeout is None else timeout
        deadline = time.monotonic() + limit
        self._sender.wake()
        with self._changed:
            while not call.done and not self._closed:
                left = deadline - time.monotonic()
                if left <= 0:
                    why = f" ({self._network.last_failure})" if self._network.last_failure else ""
                    raise TimedOut(f"{call.name}() is still under way after {limit:g} s{why}; call it again to wait on")
                self._changed.wait(left)
            if not call.done:
                raise ProducerClosed(f"{call.name}(): the producer was closed meanwhile; make another one")
            assert self._transactions is not None
            self._transactions.finished(call)
        if call.error is not None:
            raise type(call.error)(f"{call.name}(): {call.error}", call.error.answered)

    # -- inside: the lock is held ---------------------------------------------------------------------------------

    def _check(self, topic: str, *, sending: bool = True) -> list[PartitionQueue]:
        """The queues of a topic; waits for them. Raises what forbids to send."""
        deadline = self._clock.monotonic() + self.config.max_block_s
        while True:
            if self._closed:
                raise ProducerClosed("the producer is closed; make another one")
            if self._dispatcher.fatal is not None:
                raise self._dispatcher.fatal
            if self._transactions is not None and sending:
                self._transactions.check_send()
            queues = self._queues.get(topic)
            if queues:
                return queues
            error = self._metadata.errors.get(topic)
            if error in _HOPELESS:
                raise error_of(f"topic {topic}", error)
            failure = self._network.last_failure
            if failure is not None and not failure.retriable:
                raise failure  # the login was refused, or the broker is too old: waiting helps nobody
            self._metadata.want(topic)
            self._sender.wake()
            left = deadline - self._clock.monotonic()
            if left <= 0:
                why = error.name if error else str(self._network.last_failure or "no broker has answered")
                raise TimedOut(f"nothing is known of topic {topic} after max.block.ms: {why}; are the brokers up?")
            self._changed.wait(left)

    def _wait_for_memory(self, queue: PartitionQueue, size: int) -> None:
        config, accumulator = self.config, self._accumulator
        deadline = self._clock.monotonic() + config.max_block_s
        accumulator.waiting += 1
        try:
            while not accumulator.has_memory(size):
                self._sender.wake()
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    raise BufferExhausted(
                        f"{queue}: buffer.memory ({config.buffer_memory} bytes) was full for max.block.ms "
                        f"({config.max_block_s:g} s); send more slowly, or raise it"
                    )
                self._changed.wait(left)
                self._check(queue.topic)
        finally:
            accumulator.waiting -= 1

    # -- inside ---------------------------------------------------------------------------------------------------

    def _serialized(self, record: ProducerRecord) -> ProducerRecord:
        key, value = record.key, record.value
        if self.config.key_serializer is not None:
            key = self.config.key_serializer(record.topic, key)
        if self.config.value_serializer is not None:
            value = self.config.value_serializer(record.topic, value)
        return record._replace(key=key, value=value)

    def _too_large(self, topic: str, size: int) -> SendError:
        name = "max.request.size" if self._largest == self.config.max_request_size else "buffer.memory"
        return RecordRefused(f"a record for {topic} of up to {size} bytes is larger than {name}, {self._largest}")

    def _not_in_a_callback(self, name: str) -> None:
        if threading.current_thread() is self._sender.thread:
            raise Wrong(f"{name}() in a callback would wait for itself; call it from another thread")
