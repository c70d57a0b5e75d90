"""A producer's settings, by the names every Kafka client has them, and the rules between them.

The defaults are those of Kafka 4.0 (``linger.ms`` is 5; it was 0 before). A rule that is broken is a ConfigError when
the producer is made, never a surprise later. A setting left alone gives way where Kafka's own producer lets it.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka2011.errors import ConfigError
from since2011.producer.interceptors import Interceptor, Serializer
from since2011.producer.partitioners import Partitioner

log = logging.getLogger(__name__)

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MAX_INT = 2**31 - 1
MAX_IN_FLIGHT_WITH_IDEMPOTENCE = 5
"""A broker remembers that many batches of a producer and partition."""


def _number(least: int, most: int = MAX_INT) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise ConfigError(f"{name} is {value!r}; it must be a whole number") from None
        if not least <= number <= most:
            raise ConfigError(f"{name} is {number}; it must be between {least} and {most}")
        return number

    return read


def _switch(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ConfigError(f"{name} is {value!r}; it must be true or false")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is {value!r}; it must be a text that is not empty")
    return value


def _acks(name: str, value: Any) -> int:
    found = {"all": -1, "-1": -1, "0": 0, "1": 1}.get(str(value).lower())
    if found is None:
        raise ConfigError(f"{name} is {value!r}; it must be 0, 1 or all")
    return found


def _codec(name: str, value: Any) -> int:
    if value not in CODECS:
        raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(CODECS)}")
    return CODECS[value]


def _bootstrap(name: str, value: Any) -> tuple[tuple[str, int], ...]:
    parts = value.split(",") if isinstance(value, str) else list(value or ())
    found = []
    for part in parts:
        host, colon, port = str(part).strip().rpartition(":")
        if not colon or not host or not port.isdecimal():
            raise ConfigError(f"{name} has {part!r}, which is no HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ConfigError(f"{name} names no broker; give at least one HOST:PORT")
    return tuple(found)


def _as_given(name: str, value: Any) -> Any:
    return value


def _function(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise ConfigError(f"{name} is {value!r}; it must be a function")
    return value


_SETTINGS: dict[str, tuple[Callable[[str, Any], Any], Any]] = {
    "bootstrap.servers": (_bootstrap, None),
    "client.id": (_text, "kafka2011-producer"),
    "acks": (_acks, "all"),
    "batch.size": (_number(0), 16384),
    "linger.ms": (_number(0), 5),
    "buffer.memory": (_number(0, 2**63 - 1), 33554432),
    "max.block.ms": (_number(0), 60000),
    "max.request.size": (_number(0), 1048576),
    "max.in.flight.requests.per.connection": (_number(1), 5),
    "retries": (_number(0), MAX_INT),
    "retry.backoff.ms": (_number(0), 100),
    "retry.backoff.max.ms": (_number(0), 1000),
    "reconnect.backoff.ms": (_number(0), 50),
    "reconnect.backoff.max.ms": (_number(0), 1000),
    "request.timeout.ms": (_number(1), 30000),
    "delivery.timeout.ms": (_number(0), 120000),
    "metadata.max.age.ms": (_number(0), 300000),
    "enable.idempotence": (_switch, True),
    "compression.type": (_codec, "none"),
    "transactional.id": (_text, None),
    "transaction.timeout.ms": (_number(1), 60000),
    "partitioner.class": (_function, None),
    "partitioner.ignore.keys": (_switch, False),
    "partitioner.adaptive.partitioning.enable": (_switch, True),
    "key.serializer": (_function, None),
    "value.serializer": (_function, None),
    "interceptor.classes": (_as_given, ()),
}
"""How each setting is read, and its default. Who we are and whom we trust (TLS, SCRAM) is a client's: client.tls.*."""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """The settings of one producer, checked. Times are in seconds."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str
    acks: int
    """-1 for all."""
    batch_size: int
    linger_s: float
    buffer_memory: int
    max_block_s: float
    max_request_size: int
    max_in_flight: int
    retries: int
    retry_backoff_s: tuple[float, float]
    reconnect_backoff_s: tuple[float, float]
    request_timeout_s: float
    delivery_timeout_s: float
    metadata_max_age_s: float
    idempotent: bool
    codec: int
    transactional_id: str | None
    transaction_timeout_ms: int
    partitioner: Partitioner | None
    ignore_keys: bool
    adaptive: bool
    key_serializer: Serializer | None
    value_serializer: Serializer | None
    interceptors: Sequence[Interceptor] = field(default=())


def read_config(given: Mapping[str, Any]) -> ProducerConfig:
    """Read settings and check them and what holds between them; raises ConfigError."""
    for name in given:
        if name not in _SETTINGS:
            near = difflib.get_close_matches(name, _SETTINGS, 1)
            raise ConfigError(f"{name} is no setting of a producer" + (f"; did you mean {near[0]}?" if near else ""))
    read = {
        name: parse(name, given.get(name, default))
        for name, (parse, default) in _SETTINGS.items()
        if name in given or default is not None or name == "bootstrap.servers"
    }
    idempotent = _idempotence(read, given)
    if "transactional.id" in read and not idempotent:
        raise ConfigError("transactional.id needs enable.idempotence: a transaction must not store a record twice")

    def ms(name: str) -> float:
        return float(read[name]) / 1000

    return ProducerConfig(
        bootstrap=read["bootstrap.servers"],
        client_id=read["client.id"],
        acks=read["acks"],
        batch_size=read["batch.size"],
        linger_s=ms("linger.ms"),
        buffer_memory=read["buffer.memory"],
        max_block_s=ms("max.block.ms"),
        max_request_size=read["max.request.size"],
        max_in_flight=read["max.in.flight.requests.per.connection"],
        retries=read["retries"],
        retry_backoff_s=(ms("retry.backoff.ms"), ms("retry.backoff.max.ms")),
        reconnect_backoff_s=(ms("reconnect.backoff.ms"), ms("reconnect.backoff.max.ms")),
        request_timeout_s=ms("request.timeout.ms"),
        delivery_timeout_s=_delivery_timeout_ms(read, given) / 1000,
        metadata_max_age_s=ms("metadata.max.age.ms"),
        idempotent=idempotent,
        codec=read["compression.type"],
        transactional_id=read.get("transactional.id"),
        transaction_timeout_ms=read["transaction.timeout.ms"],
        partitioner=read.get("partitioner.class"),
        ignore_keys=read["partitioner.ignore.keys"],
        adaptive=read["partitioner.adaptive.partitioning.enable"],
        key_serializer=read.get("key.serializer"),
        value_serializer=read.get("value.serializer"),
        interceptors=tuple(read["interceptor.classes"]),
    )


def _idempotence(read: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Idempotence needs acks=all, retries and at most five in flight.

    Left at its default it gives way to the first two. The third is an error since Kafka 4.0, because giving way would
    let retries change the order.
    """
    if not read["enable.idempotence"]:
        return False
    asked_for = "enable.idempotence" in given or "transactional.id" in given
    for broken, name, rule in (
        (read["retries"] == 0, "retries", "more than 0, for it is safe to send again"),
        (read["acks"] != -1, "acks", "all, for a record one broker has may be lost with it"),
    ):
        if not broken:
            continue
        if asked_for:
            raise ConfigError(f"with enable.idempotence, {name} must be {rule}; it is {given[name]}")
        log.info("enable.idempotence is off, because %s is %s", name, given[name])
        return False
    in_flight = read["max.in.flight.requests.per.connection"]
    if in_flight > MAX_IN_FLIGHT_WITH_IDEMPOTENCE:
        raise ConfigError(
            "with enable.idempotence, max.in.flight.requests.per.connection must be at most 5, for a broker remembers "
            f"that many batches; it is {in_flight}"
        )
    return True


def _delivery_timeout_ms(read: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    """One try must fit: delivery.timeout.ms is at least linger.ms + request.timeout.ms. The default is raised."""
    chosen: int = read["delivery.timeout.ms"]
    least: int = min(read["linger.ms"] + read["request.timeout.ms"], MAX_INT)
    if chosen >= least:
        return chosen
    if "delivery.timeout.ms" in given:
        raise ConfigError(
            f"delivery.timeout.ms must be at least linger.ms + request.timeout.ms, which is {least}; it is {chosen}"
        )
    log.warning("delivery.timeout.ms is %d, because linger.ms + request.timeout.ms is", least)
    return least
