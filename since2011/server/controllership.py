"""The controller on a broker: its thread, its connections, and the settings it has.

It starts when the broker is registered, and it is there only with ZooKeeper: a lone broker has nobody to tell anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from prometheus_client.registry import Collector
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from kafka2011.config import Setting
from since2011.controller.candidate import Balance, Candidate
from since2011.controller.channel import Channels
from since2011.controller.context import Context
from since2011.controller.metrics import ControllerMetrics
from since2011.controller.outbox import Message
from since2011.controller.steps import Deposed, Steps
from since2011.log.settings import LogConfig
from since2011.topics.image import BrokerImage, ClusterImage
from since2011.topics.zookeeper_store import ZooKeeperStore
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused
from zk_registry.operations import RegistryError

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

T = TypeVar("T")
_SECTION = "controller (not in 2011)"
_LAST_WORDS_S = 2.0
"""How long a controller that stops waits for brokers to hear what it has decided."""

SETTINGS: tuple[Setting, ...] = (
    Setting("auto.leader.rebalance.enable", bool, True, "", "Let brokers lead again, from time to time, the partitions "
            "they come first in.", _SECTION),
    Setting("leader.imbalance.check.interval.seconds", int, 300, "s", "How often that is looked at.", _SECTION,
            minimum=1),
    Setting("leader.imbalance.per.broker.percentage", int, 10, "%", "Of the partitions a broker comes first in, how "
            "many others may lead before it leads them again.", _SECTION, minimum=0, maximum=100),
)  # fmt: skip


def error_of(error: Exception) -> ErrorCode:
    """What a client is told for whose request the controller did nothing, or not everything."""
    if isinstance(error, Refused):
        return error.error
    if isinstance(error, RegistryError):
        return ErrorCode.REQUEST_TIMED_OUT
    if isinstance(error, Deposed):
        return ErrorCode.NOT_CONTROLLER
    raise error


class _Rules:
    """What the settings of topics and of this broker say. Thread: any."""

    def __init__(self, broker: Broker, config_of: Callable[[str], LogConfig]) -> None:
        self._broker, self._config_of = broker, config_of

    def unclean(self, topic: str) -> bool:
        return self._config_of(topic).unclean_leader_election_enable

    @property
    def deletes(self) -> bool:
        return self._broker.config["delete.topic.enable"] is True


class Controllership:
    """Thread: reactor."""

    def __init__(self, broker: Broker, store: ZooKeeperStore, config_of: Callable[[str], LogConfig]) -> None:
        self._reactor, self._store = broker.reactor, store
        self._channels = Channels(broker.reactor, broker.address.broker_id, self._answered)
        every = broker.config.integer("leader.imbalance.check.interval.seconds")
        balance = Balance(
            every if broker.config["auto.leader.rebalance.enable"] else 0.0,
            broker.config.integer("leader.imbalance.per.broker.percentage"),
        )
        self._candidate = Candidate(
            store.session,
            broker.address.broker_id,
            _Rules(broker, config_of),
            lambda messages, living: self._reactor.callFromThread(self._send, messages, living),
            balance=balance,
            journal=broker.journal,
        )
        self._configs = store.image.configs
        self._stop_watching: Callable[[], None] = lambda: None
        self._started = False
        self.metrics = ControllerMetrics(self._candidate)

    def start(self) -> None:
        """Run for the office from now on."""
        self._started = True
        self._stop_watching = self._store.on_change(self._image_changed)
        self._candidate.start()

    async def stop(self) -> None:
        """Leave it to others."""
        if self._started:
            self._stop_watching()
            await self._channels.idle(_LAST_WORDS_S)
            await deferToThread(self._candidate.stop)
            self._channels.close()

    def collectors(self) -> list[Collector]:
        """What is measured of it."""
        return [self.metrics]

    def ask(self, steps: Callable[[Context], Steps[T]]) -> Deferred[T]:
        """Do this as the controller; fires with the result, Refused (NOT_CONTROLLER) where another broker is."""
        answer: Deferred[T] = Deferred()

        def done(result: T | Exception) -> None:
            self._reactor.callFromThread(answer.errback if isinstance(result, Exception) else answer.callback, result)

        self._candidate.ask(steps, done)
        return answer

    def _send(self, messages: tuple[Message, ...], living: dict[int, BrokerImage]) -> None:
        self._channels.living(living)
        self._channels.send(messages)

    def _answered(self, message: Message, body: object) -> None:
        self._candidate.answered(message, body)  # type: ignore[arg-type]

    def _image_changed(self, image: ClusterImage) -> None:
        if image.configs is not self._configs:
            self._configs = image.configs
            self._candidate.settings_changed()
