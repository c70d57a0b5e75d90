"""The controller's connections: to each broker one, with one request under way at a time, so that order is kept.

A request is sent again until it is answered or this life of the broker is over: what an answer says besides is of no
matter here, for a broker that knows better has nothing to be told. The controller talks to its own broker the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, cast

from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.internet.task import deferLater

from kafka2011.broker.reactor import Reactor, in_time
from kafka2011.errors import Kafka2011Error, RequestTimedOut
from since2011.controller.outbox import Message, address
from since2011.replication.peer import Peer, ask_within, connect
from since2011.topics.image import BrokerImage
from since2011.wire.codec import ApiKey, Struct

VERSIONS = {ApiKey.LEADER_AND_ISR: 4, ApiKey.UPDATE_METADATA: 6, ApiKey.STOP_REPLICA: 3}
"""Of inter-broker protocol 2.6."""
RETRY_S = 0.1
TIMEOUT_S = 30.0
"""For an answer (``controller.socket.timeout.ms``)."""
Answered = Callable[[Message, Struct], None]


class Channel:
    """One life of one broker. Thread: reactor."""

    def __init__(self, reactor: Reactor, client_id: str, broker: BrokerImage, answered: Answered) -> None:
        self._reactor, self._client_id, self._answered = reactor, client_id, answered
        self.broker = broker
        self._waiting: deque[Message] = deque()
        self.idle: Deferred[None] | None = None
        """Fires when all was answered, for whoever waits for that."""
        self._peer: Peer | None = None
        self._busy = self._closed = False

    def when_idle(self) -> Deferred[None]:
        """Fires when nothing is waited for, once per call."""
        if not self._busy:
            return succeed(None)
        self.idle = self.idle or Deferred()
        return self.idle

    def send(self, message: Message) -> None:
        """Send it after those before it."""
        self._waiting.append(message)
        if not self._busy:
            self._busy = True
            Deferred.fromCoroutine(self._work())

    def close(self) -> None:
        """Nothing more is sent."""
        self._closed = True
        self._waiting.clear()
        self._tell_idle()
        if self._peer is not None:
            self._peer.abort()

    async def _work(self) -> None:
        while self._waiting and not self._closed:
            message = self._waiting[0]
            try:
                answer = await self._ask(message)
            except Kafka2011Error:
                if not self._closed:
                    await deferLater(cast(Any, self._reactor), RETRY_S)
                continue
            if not self._closed:
                self._waiting.popleft()
                self._answered(message, answer)
        self._busy = False
        self._tell_idle()

    def _tell_idle(self) -> None:
        idle, self.idle = self.idle, None
        if idle is not None:
            idle.callback(None)

    async def _ask(self, message: Message) -> Struct:
        if self._peer is None or self._peer.gone:
            place = address(message.broker)
            self._peer = await connect(self._reactor, place.host, place.port, self._client_id, TIMEOUT_S)
        version = VERSIONS[message.key]
        return await ask_within(self._reactor, self._peer, TIMEOUT_S, message.key, version, message.body)


class Channels:
    """A channel to each living broker. Thread: reactor."""

    def __init__(self, reactor: Reactor, broker_id: int, answered: Answered) -> None:
        self._reactor, self._client_id, self._answered = reactor, str(broker_id), answered
        self._open: dict[int, Channel] = {}

    def send(self, messages: tuple[Message, ...]) -> None:
        """Put requests on their way, each broker's in this order."""
        for message in messages:
            broker_id = message.broker.broker_id
            channel = self._open.get(broker_id)
            if channel is None or channel.broker.epoch != message.broker.epoch:
                if channel is not None:
                    channel.close()
                channel = self._open[broker_id] = Channel(
                    self._reactor, self._client_id, message.broker, self._answered
                )
            channel.send(message)

    def living(self, brokers: Mapping[int, BrokerImage]) -> None:
        """Give up those that are gone."""
        for broker_id, channel in list(self._open.items()):
            if broker_id not in brokers or brokers[broker_id].epoch != channel.broker.epoch:
                channel.close()
                del self._open[broker_id]

    async def idle(self, at_most_s: float) -> None:
        """Wait until every broker has answered what it was sent, but not for long."""
        waiting = gatherResults([channel.when_idle() for channel in self._open.values()])
        try:
            await in_time(self._reactor, at_most_s, waiting, "the brokers did not answer")
        except RequestTimedOut:
            pass  # whoever is elected next tells them

    def close(self) -> None:
        """Out of office: nothing more is sent."""
        self.living({})
