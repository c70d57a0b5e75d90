"""A consumer's settings, by the names and defaults of Kafka's own.

Consumer(bootstrap_servers="127.0.0.1:9192", group_id="billing", auto_offset_reset="earliest")
Consumer({"bootstrap.servers": "127.0.0.1:9192", "group.id": "billing", "auto.offset.reset": "earliest"})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from consumers.group_protocol.member.membership import Settings
from kafka2011.errors import ConfigError
from since2011.client.fetch.settings import FetchSettings

_OF_RELEASE_1_1 = {
    "modern": "bootstrap_servers",
    "brokers": "bootstrap_servers: records are read through the modern port too, so the 2011 addresses are not needed",
    "group": "group_id",
    "protocol": "group_protocol",
    "assignor": "partition_assignment_strategy (classic) or group_remote_assignor (consumer)",
    "instance": "group_instance_id",
    "session_ms": "session_timeout_ms",
    "heartbeat_ms": "heartbeat_interval_ms",
    "auto_commit_s": "auto_commit_interval_ms and enable_auto_commit",
    "reset": "auto_offset_reset",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(FetchSettings):
    """Beside how to fetch: where, for which group, and when to commit. Milliseconds."""

    bootstrap_servers: str | tuple[tuple[str, int], ...]
    """``host:port,host:port``: any brokers of the cluster."""
    group_id: str | None = None
    """None: ``assign`` only, and nothing is committed."""
    group_protocol: Literal["classic", "consumer"] = "classic"
    group_instance_id: str | None = None
    partition_assignment_strategy: str = "range"
    """Of the classic protocol: range, roundrobin, sticky, cooperative-sticky or one's own."""
    group_remote_assignor: str = "uniform"
    """Of the consumer protocol (KIP-848): uniform or range, computed by the broker."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    default_api_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        # A dataclass with slots is made anew, so ``super()`` alone would look in the wrong class.
        FetchSettings.__post_init__(self)
        if self.group_protocol not in ("classic", "consumer"):
            raise ConfigError(f"group_protocol is {self.group_protocol!r}: classic or consumer (KIP-848)")
        for name in ("max_poll_records", "max_poll_interval_ms", "session_timeout_ms", "heartbeat_interval_ms"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; the least is 1")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be less than session_timeout_ms "
                f"({self.session_timeout_ms}): the coordinator would take the member for dead between two of them"
            )
        if not self.bootstrap():
            raise ConfigError("bootstrap_servers is empty; name at least one HOST:PORT")

    def bootstrap(self) -> list[tuple[str, int]]:
        """The addresses; raises ConfigError for what is none."""
        if not isinstance(self.bootstrap_servers, str):
            return list(self.bootstrap_servers)
        return [_address(part) for part in self.bootstrap_servers.split(",") if part.strip()]

    def membership(self) -> Settings:
        """What a membership of the group needs."""
        assert self.group_id is not None
        is_classic = self.group_protocol == "classic"
        return Settings(
            self.group_id,
            self.client_id,
            self.group_instance_id,
            self.session_timeout_ms,
            self.heartbeat_interval_ms,
            self.max_poll_interval_ms,
            self.partition_assignment_strategy if is_classic else self.group_remote_assignor,
        )


def read_settings(given: Mapping[str, Any]) -> ConsumerSettings:
    """Settings by Kafka's names, with dots or underscores; raises ConfigError for names there are not."""
    named = {name.replace(".", "_"): value for name, value in given.items()}
    known = {field.name for field in fields(ConsumerSettings)}
    for name in named.keys() - known:
        if name in _OF_RELEASE_1_1:
            raise ConfigError(f"the setting {name!r} of release 1.1 is gone; write {_OF_RELEASE_1_1[name]}")
        near = get_close_matches(name, known, 1)
        hint = f"; is {near[0]} meant?" if near else ""
        raise ConfigError(f"there is no consumer setting {name!r}{hint}")
    if "bootstrap_servers" not in named:
        raise ConfigError("bootstrap_servers is missing: HOST:PORT,... of any brokers' modern ports")
    if isinstance(named["bootstrap_servers"], list):
        named["bootstrap_servers"] = tuple(named["bootstrap_servers"])
    return ConsumerSettings(**named)


def _address(part: str) -> tuple[str, int]:
    host, colon, port = part.strip().rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()):
        raise ConfigError(f"{part.strip()!r} in bootstrap_servers is not HOST:PORT")
    return host.strip("[]"), int(port)
