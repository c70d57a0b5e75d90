"""The transaction service: coordinator, its log and markers put together, offered to the modern port.

    start   the partitions of the state topic this broker leads are read; decisions that were taken are carried out
    stop    nothing is decided or told any more

See docs/transactions.md (settings have the names modern brokers give them).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import LoopingCall

from kafka2011.broker.reactor import every, within
from kafka2011.config import Setting
from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerAddress, TopicPartition
from since2011.server.services import Handler
from since2011.topics.internal import N_PARTITIONS, TRANSACTIONS_TOPIC, partition_of
from since2011.transactions.broker_channel import BrokerChannel
from since2011.transactions.coordinator import TransactionCoordinator
from since2011.transactions.events import Answer, Event
from since2011.transactions.executor import Executor
from since2011.transactions.handlers import asking, producing
from since2011.transactions.leadership import TransactionsLeadership
from since2011.transactions.state_log import StateLog, settings
from since2011.transactions.transaction import Transaction
from since2011.wire.codec import ApiKey
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused

if TYPE_CHECKING:
    from since2011.server.handlers.call import Answer as Sent
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

    TransactionHandler = Callable[["TransactionService", Call], Coroutine[Any, Any, Sent | None]]

_SECTION = "modern port (not in 2011)"
START_PATIENCE_S = 10.0
"""How long a start waits until the transactions are read; after that the port opens, and producers are told 14."""
MAX_ID = 32_000
"""Characters of a transactional id: it is stored in a string of bounded length."""


def _ms(name: str, default: int, help: str) -> Setting:
    return Setting(name, int, default, "ms", help, _SECTION, minimum=1)


class TransactionService:
    """The transactions of one broker. Thread: reactor."""

    COORDINATES: ClassVar[int | None] = 1
    SETTINGS: ClassVar[tuple[Setting, ...]] = (
        _ms("transaction.max.timeout.ms", 900_000, "Longest time a producer may ask for to end a transaction."),
        _ms("transactional.id.expiration.ms", 604_800_000, "How long a transactional id that is not used is kept."),
        _ms("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, "How often transactions that have "
            "had their time are looked for, and aborted."),
        _ms("transaction.remove.expired.transaction.cleanup.interval.ms", 3_600_000, "How often transactional ids that "
            "are not used are looked for, and forgotten."),
        Setting("transaction.partition.verification.enable", bool, True, "", "Leaders ask the coordinator before they "
                "take the first batch of a transaction (KIP-890).", _SECTION),
        Setting("transaction.state.log.replication.factor", int, 3, "replicas", "Of __transaction_state, where there "
                "is a controller; fewer where there are fewer brokers when it is made.", _SECTION, minimum=1),
        Setting("max.transactional.ids", int, 100_000, "ids", "Transactional ids this broker coordinates; more are "
                "told to come back later.", _SECTION, minimum=1),
    )  # fmt: skip

    def __init__(self, modern: ModernBroker) -> None:
        self.modern = modern
        self._config = modern.broker.config
        self.coordinator = TransactionCoordinator(self._config.integer("transactional.id.expiration.ms"))
        self._log = StateLog(modern.topics, modern.replication.leading, modern.appending, modern.clock)
        self.executor = Executor(modern, self.coordinator, self._log)
        self._leadership = TransactionsLeadership(
            modern.topics, self._log, modern.journal, self._elected, self.executor.resigned
        )
        self._channels: dict[int, BrokerChannel] = {}
        self._loops: list[LoopingCall] = []
        modern.verifier = self

    def handlers(self) -> Mapping[ApiKey, Handler]:
        """The requests of transactions; InitProducerId also for producers that have none."""
        found: dict[ApiKey, TransactionHandler] = {
            ApiKey.INIT_PRODUCER_ID: producing.init_producer_id,
            ApiKey.ADD_PARTITIONS_TO_TXN: producing.add_partitions_to_txn,
            ApiKey.ADD_OFFSETS_TO_TXN: producing.add_offsets_to_txn,
            ApiKey.END_TXN: producing.end_txn,
            ApiKey.DESCRIBE_TRANSACTIONS: asking.describe_transactions,
            ApiKey.LIST_TRANSACTIONS: asking.list_transactions,
        }
        return {key: partial(handler, self) for key, handler in found.items()}

    # Life

    async def start(self) -> None:
        """Read what is ours."""
        modern, executor = self.modern, self.executor
        modern.topics.watch(TRANSACTIONS_TOPIC, self._leadership)
        await within(modern.reactor, START_PATIENCE_S, self._leadership.ready())
        timeouts_s = self._config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms") / 1000
        unused_s = self._config.integer("transaction.remove.expired.transaction.cleanup.interval.ms") / 1000
        self._loops = [
            every(modern.reactor, timeouts_s, executor.look_for_timeouts),
            every(modern.reactor, unused_s, executor.look_for_unused),
        ]

    async def stop(self) -> None:
        """Decide and tell nothing more; what is on its way to the disk gets there."""
        self._leadership.stop()
        for loop in self._loops:
            loop.stop()
        for channel in self._channels.values():
            channel.stop()
        await self.executor.stop()

    def brokers_changed(self) -> None:
        """Who leads which partition is in the metadata; markers find their way by it."""

    def _elected(self, number: int, epoch: int, found: list[Transaction]) -> None:
        self.executor.elected(number, epoch, found)

    # Who speaks for whom

    async def coordinator_of(self, key: str) -> BrokerAddress:
        """The broker that leads the id's partition of the state topic, which is made if there is none yet."""
        if not 0 < len(key) <= MAX_ID:
            raise Refused(ErrorCode.INVALID_REQUEST, "a transactional id has characters, and not as many as this")
        number = partition_of(key)
        if self._leadership.partition(number) is None:
            await self._make_topic()
        image = self._leadership.partition(number)
        address = None if image is None else self.modern.view().brokers.get(image.leader)
        if address is None:
            raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the leader of {TRANSACTIONS_TOPIC}-{number} is away")
        return address

    async def _make_topic(self) -> None:
        try:
            topics, wanted = self.modern.topics, self._config.integer("transaction.state.log.replication.factor")
            n_replicas = max(1, min(wanted, len(topics.image.brokers))) if topics.replicas.obeys else 1
            await topics.create(TRANSACTIONS_TOPIC, N_PARTITIONS, n_replicas, settings(n_replicas))
        except (Kafka2011Error, OSError) as error:
            raise Refused(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{TRANSACTIONS_TOPIC} cannot be made: {error}"
            ) from error

    def error_of(self, transactional_id: str) -> ErrorCode:
        """Why this broker cannot speak for an id: another does, what is known is being read, or cannot be."""
        if not transactional_id or len(transactional_id) > MAX_ID:
            return ErrorCode.INVALID_REQUEST
        number = partition_of(transactional_id)
        if not self._leadership.is_ours(number):
            return ErrorCode.NOT_COORDINATOR
        if number in self._leadership.loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        can = number in self.coordinator.served and self._log.may_answer(number)
        return ErrorCode.NONE if can else ErrorCode.COORDINATOR_NOT_AVAILABLE

    @property
    def is_loading(self) -> bool:
        """Whether there may be transactions here that nobody can see yet."""
        return bool(self._leadership.loading)

    @property
    def is_full(self) -> bool:
        """Whether a new transactional id would be one too many."""
        n_ids = sum(len(each.known) for each in self.coordinator.served.values())
        return n_ids >= self._config.integer("max.transactional.ids")

    def ask(self, transactional_id: str, make: Callable[[object], Event]) -> Deferred[Answer]:
        """Fire with the coordinator's answer; ``make`` puts the token into the event."""
        if error := self.error_of(transactional_id):
            return succeed(Answer(None, error))
        return self.executor.ask(transactional_id, make)

    # Verification (KIP-890)

    @property
    def verifies(self) -> bool:
        """Whether leaders are to ask."""
        return self._config["transaction.partition.verification.enable"] is True

    async def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Ask the coordinator: this broker's own memory, or the one that leads the id's partition."""
        image = self._leadership.partition(partition_of(transactional_id))
        if image is None or image.leader == self.modern.topics.broker_id:
            if error := self.error_of(transactional_id):
                return dict.fromkeys(partitions, error)
            return self.coordinator.verify(transactional_id, producer_id, epoch, partitions)
        channel = self._channels.get(image.leader)
        if channel is None:
            channel = self._channels[image.leader] = BrokerChannel(self.modern, image.leader)
        try:
            return await channel.verify(transactional_id, producer_id, epoch, list(partitions))
        except Kafka2011Error:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)

    # What can be seen

    def state(self) -> dict[str, Any]:
        """Every id with its state, and how many partitions wait for a marker."""
        shown = {
            each.current.id: {
                "state": each.current.state.words,
                "producer": each.current.producer_id,
                "epoch": each.current.epoch,
                "partitions": [f"{one.topic}-{one.partition}" for one in sorted(each.current.partitions)],
                "start_ms": each.current.start_ms,
            }
            for each in self.coordinator.transactions()
        }
        return {
            "transactions": {
                "ids": shown,
                "coordinates": sorted(self.coordinator.served),
                "loading": sorted(self._leadership.loading),
                "markers_untold": self.executor.n_untold,
            }
        }

    def trouble(self) -> str | None:
        """Why producers are told COORDINATOR_NOT_AVAILABLE."""
        for number, reason in self._leadership.unreadable.items():
            return f"transactions of {TRANSACTIONS_TOPIC}-{number} are not coordinated, producers are told 15: {reason}"
        return None
