"""Code of the application around every record: counting, tracing, adding headers.

An interceptor that raises is reported to the log and passed over: it must never cost a record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from since2011.producer.delivery import RecordMetadata
from since2011.producer.record import ProducerRecord

Serializer = Callable[[str, object], bytes | None]
"""Topic and object to bytes."""

log = logging.getLogger(__name__)


class Interceptor:
    """Overwrite what you need."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Before the record is serialized, in the thread that sends; may return another record."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """After the record is stored, or has failed, in the producer's own thread."""


class Interceptors:
    """All of them in their order. Thread: any."""

    def __init__(self, chain: Sequence[Interceptor]) -> None:
        self._chain = tuple(chain)

    def __bool__(self) -> bool:
        return bool(self._chain)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for one in self._chain:
            try:
                record = one.on_send(record)
            except Exception:
                log.exception("an interceptor failed in on_send; the record goes on without it")
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        for one in self._chain:
            try:
                one.on_acknowledgement(metadata, error)
            except Exception:
                log.exception("an interceptor failed in on_acknowledgement")
