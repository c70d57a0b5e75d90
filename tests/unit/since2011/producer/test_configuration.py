"""The rules between a producer's settings (issue 28, must show 6). Each cites the topic of its note."""

from __future__ import annotations

from typing import Any

import pytest

from kafka2011.errors import ConfigError
from since2011.producer.configuration import ProducerConfig, read_config


def config(**settings: Any) -> ProducerConfig:
    """``settings`` have underscores for dots."""
    return read_config({"bootstrap.servers": "a:1"} | {name.replace("_", "."): v for name, v in settings.items()})


def test_the_defaults_are_kafkas() -> None:
    """Notes, producer settings: the defaults of Kafka 4.0."""
    found = config()

    assert (found.acks, found.idempotent, found.max_in_flight, found.retries) == (-1, True, 5, 2**31 - 1)
    assert (found.batch_size, found.linger_s, found.buffer_memory) == (16384, 0.005, 32 << 20)
    assert (found.max_block_s, found.request_timeout_s, found.delivery_timeout_s) == (60, 30, 120)
    assert (found.max_request_size, found.retry_backoff_s, found.transaction_timeout_ms) == (1 << 20, (0.1, 1), 60000)


def test_delivery_timeout_covers_linger_and_one_request() -> None:
    """Notes, delivery.timeout.ms: at least linger.ms + request.timeout.ms; too small is an error if it was chosen."""
    with pytest.raises(ConfigError, match=r"at least linger\.ms \+ request\.timeout\.ms, which is 30005"):
        config(delivery_timeout_ms=30004)
    assert config(delivery_timeout_ms=30005).delivery_timeout_s == 30.005


def test_delivery_timeout_left_alone_is_raised() -> None:
    """Notes, delivery.timeout.ms: the default gives way to the settings that were chosen."""
    assert config(linger_ms=100_000, request_timeout_ms=50_000).delivery_timeout_s == 150


@pytest.mark.parametrize(
    "settings",
    [{"acks": "1"}, {"acks": 0}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}],
    ids=str,
)
@pytest.mark.parametrize("asked", [{"enable_idempotence": True}, {"transactional_id": "t"}], ids=str)
def test_idempotence_forces_acks_retries_and_in_flight(settings: dict[str, Any], asked: dict[str, Any]) -> None:
    """Notes, idempotence: it forces acks=all, retries > 0, at most 5 in flight; asked for and impossible: an error."""
    with pytest.raises(ConfigError, match=f"with enable.idempotence, {next(iter(settings)).replace('_', '.')}"):
        config(**settings, **asked)


@pytest.mark.parametrize("settings", [{"acks": "1"}, {"acks": 0}, {"retries": 0}], ids=str)
def test_idempotence_left_alone_gives_way(settings: dict[str, Any]) -> None:
    """Notes, idempotence: on by default, it is off where acks or retries do not allow it."""
    assert config(**settings).idempotent is False


def test_too_many_in_flight_is_always_an_error_with_idempotence() -> None:
    """Notes, max.in.flight: since Kafka 4.0 not even the default gives way, because order would be lost silently."""
    with pytest.raises(ConfigError, match="at most 5"):
        config(max_in_flight_requests_per_connection=6)
    assert config(max_in_flight_requests_per_connection=6, enable_idempotence=False).max_in_flight == 6


def test_a_transaction_needs_idempotence() -> None:
    """Notes, transactional.id: not without idempotence."""
    with pytest.raises(ConfigError, match=r"transactional\.id needs enable\.idempotence"):
        config(transactional_id="t", enable_idempotence=False)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"acks": "2"}, "must be 0, 1 or all"),
        ({"linger_ms": -1}, "between 0 and"),
        ({"batch_size": "much"}, "whole number"),
        ({"compression_type": "rar"}, "one of none, gzip, snappy, lz4, zstd"),
        ({"enable_idempotence": "perhaps"}, "true or false"),
        ({"bootstrap_servers": "nowhere"}, "no HOST:PORT"),
        ({"bootstrap_servers": ""}, "no HOST:PORT"),
        ({"partitioner_class": "random"}, "must be a function"),
        ({"linger_mz": 1}, "did you mean linger.ms"),
    ],
    ids=str,
)
def test_what_cannot_be_is_named(settings: dict[str, Any], sentence: str) -> None:
    """A wrong setting is an error with its name when the producer is made."""
    with pytest.raises(ConfigError, match=sentence):
        config(**settings)
