"""The kinds of requests the 2011 port knows: what reads each, what answers it, what the counters call it.

0.7's five and the acknowledged produce are there from the beginning (docs/protocol.md). A plug-in adds its own before
the broker listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafka2011.broker import handlers
from kafka2011.broker.handlers import Answer
from kafka2011.wire import READERS, AckedProduceRequest, FetchRequest, MultiFetchRequest, OffsetsRequest

if TYPE_CHECKING:
    from kafka2011.broker.protocol import BrokerProtocol
    from kafka2011.broker.service import Broker

Handler = Callable[["Broker", Any, "BrokerProtocol"], "Answer | Deferred[Answer]"]


class Requests:
    """The requests of one broker that have an answer. Thread: reactor."""

    def __init__(self) -> None:
        self.readers = dict(READERS)
        self.handlers: dict[type, tuple[str, Handler]] = {
            FetchRequest: ("fetch", lambda broker, request, _: handlers.fetch(broker, request)),
            MultiFetchRequest: ("multifetch", lambda broker, request, _: handlers.multifetch(broker, request)),
            OffsetsRequest: ("offsets", lambda broker, request, _: handlers.offsets(broker, request)),
            AckedProduceRequest: (
                "acked_produce",
                lambda broker, request, client: handlers.acked_produce(broker, request, client.address),
            ),
        }

    def add(self, key: int, name: str, kind: type, read: Callable[[bytes, int], Any], answer: Handler) -> None:
        """Know one more: ``read`` makes a ``kind`` of its body, ``answer`` is asked for each."""
        self.readers[key] = read
        self.handlers[kind] = (name, answer)
