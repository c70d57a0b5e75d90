"""A transactional producer that says exactly what a test wants said."""

from __future__ import annotations

from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.record_batch import TRANSACTIONAL, headers
from since2011.wire.records import Record, decode_marker, decode_records, encode_records
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until

STAMP_MS = 1_700_000_000_000
TRY_AGAIN = frozenset({
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
})  # fmt: skip


class Transactional:
    """One instance of a producer with a transactional id; what is "not now" is asked again, as clients do."""

    def __init__(self, client: WireClient, name: str, timeout_ms: int = 60_000) -> None:
        self.client, self.name, self.timeout_ms = client, name, timeout_ms
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def init(self) -> Transactional:
        """Find the coordinator, and get a producer id and epoch."""
        body = Struct(key=self.name, key_type=1)
        until(lambda: not self.client.ask(ApiKey.FIND_COORDINATOR, 2, body).error, "there is a coordinator")

        def initialized() -> Struct | None:
            answer = self.init_once()
            assert not answer.error or answer.error in TRY_AGAIN, answer.error
            return None if answer.error else answer

        answer = until(initialized, f"{self.name} is initialized")
        self.producer_id, self.epoch = answer.producer_id, answer.epoch
        self._sequences.clear()
        return self

    def init_once(self, producer_id: int = -1, epoch: int = -1, version: int = 4) -> Struct:
        """InitProducerId as it is answered."""
        body = Struct(
            transactional_id=self.name, txn_timeout_ms=self.timeout_ms, producer_id=producer_id, producer_epoch=epoch
        )
        return self.client.ask(ApiKey.INIT_PRODUCER_ID, version, body)

    def add_once(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        """AddPartitionsToTxn as it is answered, partition by partition."""
        body = self._of(topics=[Struct(name=topic, partitions=list(partitions))])
        answer = self.client.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, body)
        return [one.error for one in answer.topics[0].partitions]

    def add(self, topic: str, *partitions: int) -> None:
        """Make partitions part of the transaction."""
        until(lambda: not _again(max(self.add_once(topic, *partitions))), "the partitions are part of the transaction")

    def produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 11) -> Struct:
        """Write one batch; the partition's answer."""
        sequence = self._sequences.get((topic, partition), 0)
        answer = until(lambda: self._produced(topic, values, partition, sequence, version), "it is taken or refused")
        if not answer.error:
            self._sequences[topic, partition] = sequence + len(values)
        return answer

    def _produced(
        self, topic: str, values: tuple[bytes, ...], partition: int, sequence: int, version: int
    ) -> Struct | None:
        answer = self.produce_once(topic, values, partition=partition, sequence=sequence, version=version)
        return None if answer.error == ErrorCode.NOT_ENOUGH_REPLICAS else answer

    def produce_once(
        self, topic: str, values: tuple[bytes, ...], *, partition: int = 0, sequence: int = 0, version: int = 11,
        name: str | None = "", acks: int = -1,
    ) -> Struct:  # fmt: skip
        """Produce as it is answered; ``name`` None: without a transactional id."""
        records = [Record(number, STAMP_MS, None, value) for number, value in enumerate(values)]
        batch = encode_records(
            records, attributes=TRANSACTIONAL, producer_id=self.producer_id, producer_epoch=self.epoch,
            base_sequence=sequence,
        )  # fmt: skip
        rows = [Struct(index=partition, records=batch)]
        body = Struct(
            transactional_id=self.name if name == "" else name, acks=acks, timeout_ms=30_000,
            topics=[Struct(name=topic, partitions=rows)],
        )  # fmt: skip
        answer: Struct = self.client.ask(ApiKey.PRODUCE, version, body).topics[0].partitions[0]
        return answer

    def add_offsets(self, group: str) -> None:
        """Make the group's offsets part of the transaction."""
        until(
            lambda: not _again(self.client.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, self._of(group=group)).error),
            "the group's offsets are part of the transaction",
        )

    def commit_offset(
        self, group: str, topic: str, offset: int, *, generation: int = -1, member: str = "", version: int = 3
    ) -> int:
        """TxnOffsetCommit of partition 0; its error."""
        rows = [Struct(name=topic, partitions=[Struct(index=0, offset=offset, leader_epoch=-1, metadata="")])]
        body = self._of(group=group, generation=generation, member=member, instance=None, topics=rows)
        error: int = self.client.ask(ApiKey.TXN_OFFSET_COMMIT, version, body).topics[0].partitions[0].error
        return error

    def end_once(self, *, commit: bool, version: int = 3) -> int:
        """EndTxn as it is answered."""
        error: int = self.client.ask(ApiKey.END_TXN, version, self._of(commit=commit)).error
        return error

    def end(self, *, commit: bool) -> None:
        """Commit or abort."""
        until(lambda: not _again(self.end_once(commit=commit)), "the transaction is ended")

    def described(self) -> Struct:
        """DescribeTransactions of this id."""
        body = Struct(transactional_ids=[self.name])
        found: Struct = self.client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, body).transactions[0]
        return found

    def is_complete(self) -> bool:
        """Whether every partition has its marker."""
        return bool(self.described().state in ("CompleteCommit", "CompleteAbort"))

    def _of(self, **more: object) -> Struct:
        return Struct(transactional_id=self.name, producer_id=self.producer_id, epoch=self.epoch, **more)


def _again(error: int) -> bool:
    assert not error or error in TRY_AGAIN, ErrorCode(error)
    return bool(error)


def read(client: WireClient, topic: str, *, committed: bool, partition: int = 0) -> list[bytes | None]:
    """What a reader sees of a partition, aborted records filtered as clients do (§8.10)."""
    found: list[bytes | None] = []
    offset, end = 0, -1
    while offset != end:
        answer = fetched(client, topic, committed=committed, partition=partition, offset=offset)
        assert not answer.error, answer.error
        end = answer.last_stable if committed else answer.high_watermark
        data = bytes(answer.records or b"")
        found += visible(data, answer.aborted if committed else None)
        offset = max([offset, *(header.next_offset for _, header in headers(data))])
    return found


def fetched(client: WireClient, topic: str, *, committed: bool, partition: int = 0, offset: int = 0) -> Struct:
    """Fetch as it is answered."""
    rows = [Struct(index=partition, offset=offset, max_bytes=1 << 20, leader_epoch=-1)]
    body = Struct(
        max_wait_ms=0, min_bytes=1, max_bytes=50 << 20, isolation=int(committed), session_id=0, session_epoch=-1,
        topics=[Struct(name=topic, partitions=rows)], forgotten=[], rack="",
    )  # fmt: skip
    answer: Struct = client.ask(ApiKey.FETCH, 11, body).topics[0].partitions[0]
    return answer


def visible(data: bytes, aborted: list[Struct] | None) -> list[bytes | None]:
    """The values of a fetch answer; with ``aborted``, those of committed transactions and of none."""
    waiting = sorted(aborted or (), key=lambda one: int(one.first_offset))
    gone: set[int] = set()
    found: list[bytes | None] = []
    for position, header in headers(data):
        batch = data[position : position + header.size]
        while waiting and waiting[0].first_offset <= header.last_offset:
            gone.add(waiting.pop(0).producer_id)
        if header.control:
            marker = decode_marker(batch, header)
            if marker is not None and not marker.committed:
                gone.discard(header.producer_id)
        elif not (header.transactional and header.producer_id in gone):
            found += [record.value for record in decode_records(batch, header, lambda codec, block: block)]
    return found
