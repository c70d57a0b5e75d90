"""What stands in the nodes, as bytes and as values. No I/O.

The order of the keys is a real broker's; a reader takes any order and passes over keys it does not know, as Kafka's
does. What cannot be read is a ``ValueError`` that says why: the caller knows the path.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

PRODUCER_ID_BLOCK = 1000
"""Producer ids a broker takes at a time."""
NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a broker, by the name of its listener."""

    listener: str
    host: str
    port: int
    security: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    """A broker as it registers itself."""

    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    started_ms: int = 0
    features: Mapping[str, Any] = field(default_factory=dict)
    version: int = 5
    """Of its text: below 5 its inter-broker protocol is older than 2.7, and it knows no topic ids."""

    def encode(self) -> bytes:
        """Version 5, that of Kafka 2.7 and later. ``host`` and ``port``, for old readers, are the first plain ones."""
        plain = next((endpoint for endpoint in self.endpoints if endpoint.security == "PLAINTEXT"), None)
        values: dict[str, Any] = {
            "features": dict(self.features),
            "listener_security_protocol_map": {e.listener: e.security for e in self.endpoints},
            "endpoints": [f"{e.listener}://{_bracketed(e.host)}:{e.port}" for e in self.endpoints],
        }
        if self.rack is not None:
            values["rack"] = self.rack
        values |= {
            "jmx_port": -1,
            "port": -1 if plain is None else plain.port,
            "host": None if plain is None else plain.host,
            "version": 5,
            "timestamp": str(self.started_ms),
        }
        return _json(values)


def parse_broker(value: bytes) -> BrokerEntry:
    """A broker's node, versions 1 (0.8: host and port only) to 5."""
    values = _object(value)
    rack, started = values.get("rack"), values.get("timestamp", "0")
    security = values.get("listener_security_protocol_map", {})
    endpoints: tuple[Endpoint, ...]
    if values.get("version") == 1:
        endpoints = (Endpoint("PLAINTEXT", _text(values, "host"), _number(values, "port", 65535)),)
    else:
        endpoints = tuple(_endpoint(text, security) for text in _list(values, "endpoints"))
    if rack is not None and not isinstance(rack, str):
        raise ValueError("the rack is no text")
    features = values.get("features", {})
    return BrokerEntry(
        endpoints,
        rack,
        int(started) if str(started).isdecimal() else 0,
        features if isinstance(features, dict) else {},
        _number(values, "version", 2**31 - 1) if "version" in values else 1,
    )


def _endpoint(text: object, security: object) -> Endpoint:
    listener, slashes, address = str(text).partition("://")
    host, colon, port = address.rpartition(":")
    if not slashes or not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is no LISTENER://HOST:PORT")
    protocol = security.get(listener, listener) if isinstance(security, dict) else listener
    return Endpoint(listener, host.removeprefix("[").removesuffix("]"), int(port), str(protocol))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which brokers hold each partition of a topic; while it is being moved, which come and which go."""

    partitions: Mapping[int, tuple[int, ...]]
    topic_id: UUID | None = None
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Version 3. Without a topic id it is what a broker of an inter-broker protocol below 2.8 writes."""
        values: dict[str, Any] = {"partitions": _rows(self.partitions)}
        if self.topic_id is not None:
            values["topic_id"] = encode_id(self.topic_id)
        values |= {"adding_replicas": _rows(self.adding), "removing_replicas": _rows(self.removing), "version": 3}
        return _json(values)


def parse_assignment(value: bytes) -> Assignment:
    """A topic's node, versions 1 to 3."""
    values = _object(value)
    topic_id = values.get("topic_id")
    return Assignment(
        _replicas(values.get("partitions")),
        None if topic_id is None else decode_id(str(topic_id)),
        _replicas(values.get("adding_replicas", {})),
        _replicas(values.get("removing_replicas", {})),
    )


def _rows(replicas: Mapping[int, tuple[int, ...]]) -> dict[str, list[int]]:
    return {str(index): list(brokers) for index, brokers in sorted(replicas.items())}


def _replicas(value: object) -> dict[int, tuple[int, ...]]:
    if not isinstance(value, dict):
        raise ValueError("partitions are no table")
    found = {}
    for index, brokers in value.items():
        if not index.isdecimal() or not isinstance(brokers, list) or not all(type(b) is int for b in brokers):
            raise ValueError(f"partition {index!r} has no list of brokers")
        found[int(index)] = tuple(brokers)
    return found


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Who leads a partition, since how many decisions, and who keeps up. ``controller_epoch`` is the decider's."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = 0
    recovering: bool = False
    """After an election in which records may have been lost."""

    def encode(self) -> bytes:
        values: dict[str, Any] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
        }
        if self.recovering:
            values["leader_recovery_state"] = 1
        return _json(values)


def parse_state(value: bytes) -> PartitionState:
    """A partition's state node."""
    values = _object(value)
    isr = _list(values, "isr")
    numbers = [values.get(name) for name in ("leader", "leader_epoch", "controller_epoch")]
    if not all(type(number) is int for number in (*numbers, *isr)):
        raise ValueError("leader, epochs and in-sync replicas must be numbers")
    leader, leader_epoch, controller_epoch = (int(str(number)) for number in numbers)
    recovering = values.get("leader_recovery_state", 0) == 1
    return PartitionState(leader, leader_epoch, tuple(isr), controller_epoch, recovering)


def encode_config(settings: Mapping[str, str]) -> bytes:
    """The settings of a topic, broker, client or user."""
    return _json({"version": 1, "config": dict(sorted(settings.items()))})


def parse_config(value: bytes) -> dict[str, str]:
    """Settings by name; a node without data, as a container has, holds none."""
    if not value:
        return {}
    settings = _object(value).get("config")
    if not isinstance(settings, dict) or not all(isinstance(text, str) for text in settings.values()):
        raise ValueError("settings are no table of texts")
    return settings


def encode_change(entity: str) -> bytes:
    """A notice that the settings of ``entity`` (``topics/t``) were changed."""
    return _json({"version": 2, "entity_path": entity})


def parse_change(value: bytes) -> str:
    """Whose settings were changed; version 1 named kind and name apart."""
    values = _object(value)
    if values.get("version") == 1:
        return f"{_text(values, 'entity_type')}/{_text(values, 'entity_name')}"
    return _text(values, "entity_path")


def encode_cluster_id(cluster_id: str) -> bytes:
    """The version is a text, as Kafka writes it."""
    return _json({"version": "1", "id": cluster_id})


def parse_cluster_id(value: bytes) -> str:
    return _text(_object(value), "id")


def encode_controller(broker_id: int, elected_ms: int) -> bytes:
    """Who the controller is, as 3.9 writes it."""
    values = {"version": 2, "brokerid": broker_id, "timestamp": str(elected_ms), "kraftControllerEpoch": -1}
    return _json(values)


def parse_controller(value: bytes) -> int:
    """The controller's broker id."""
    return _number(_object(value), "brokerid", 2**31 - 1)


def encode_partitions(partitions: Iterable[tuple[str, int]]) -> bytes:
    """Partitions as a notice of changed in-sync sets names them, and a request for preferred leaders."""
    return _json({"version": 1, "partitions": [{"topic": topic, "partition": index} for topic, index in partitions]})


def parse_partitions(value: bytes) -> list[tuple[str, int]]:
    """The partitions that a notice or a request names."""
    return [(topic, index) for topic, index, _ in _partition_rows(value)]


def encode_reassignment(wanted: Mapping[tuple[str, int], tuple[int, ...]]) -> bytes:
    """Where partitions are to lie, as old tools ask for it."""
    rows = [{"topic": topic, "partition": index, "replicas": list(to)} for (topic, index), to in wanted.items()]
    return _json({"version": 1, "partitions": rows})


def parse_reassignment(value: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    """Where each of these partitions is to lie."""
    found = {}
    for topic, index, row in _partition_rows(value):
        replicas = row.get("replicas")
        if not isinstance(replicas, list) or not all(type(broker) is int for broker in replicas):
            raise ValueError(f"{topic}-{index} has no list of brokers")
        found[topic, index] = tuple(replicas)
    return found


def _partition_rows(value: bytes) -> list[tuple[str, int, dict[str, Any]]]:
    rows = []
    for row in _list(_object(value), "partitions"):
        if not isinstance(row, dict):
            raise ValueError("a partition is no JSON object")
        rows.append((_text(row, "topic"), _number(row, "partition", 2**31 - 1), row))
    return rows


def parse_log_dir_event(value: bytes) -> int:
    """The broker that has lost a log directory."""
    return _number(_object(value), "broker", 2**31 - 1)


def encode_producer_ids(broker_id: int, first: int) -> bytes:
    """A block of producer ids; its bounds are texts."""
    last = first + PRODUCER_ID_BLOCK - 1
    return _json({"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)})


def parse_producer_ids(value: bytes) -> int:
    """The first id after the block; 0 where none was ever taken."""
    if not value:
        return 0
    end = _text(_object(value), "block_end")
    if not end.isdecimal() or int(end) >= 2**63 - PRODUCER_ID_BLOCK:
        raise ValueError(f"the block ends at {end[:40]!r}")
    return int(end) + 1


def encode_id(number: UUID) -> str:
    """A topic's or cluster's id as Kafka writes it: 22 characters of base64 for addresses."""
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def decode_id(text: str) -> UUID:
    """The id behind its 22 characters."""
    try:
        return UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is no id of 22 characters") from error


def _json(values: object) -> bytes:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()


def _object(value: bytes) -> dict[str, Any]:
    try:
        values = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def _text(values: Mapping[str, Any], name: str) -> str:
    text = values.get(name)
    if not isinstance(text, str):
        raise ValueError(f"{name} is missing")
    return text


def _number(values: Mapping[str, Any], name: str, most: int) -> int:
    number = values.get(name)
    if type(number) is not int or not 0 <= number <= most:
        raise ValueError(f"{name} is no number from 0 to {most}")
    return number


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    found = values.get(name)
    if not isinstance(found, list):
        raise ValueError(f"{name} is no list")
    return found
