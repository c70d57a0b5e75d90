"""Where everything is in ZooKeeper: the whole layout on one page, the same as Kafka 0.7's.

| path | kind | written by | value |
|---|---|---|---|
| /brokers/ids/<broker id> | ephemeral | broker | <host>-<start ms>:<host>:<port> |
| /brokers/topics/<topic> | persistent | broker | none |
| /brokers/topics/<topic>/<broker id> | ephemeral | broker | number of partitions |
| /consumers/<group>/ids/<consumer id> | ephemeral | consumer | what it subscribes to |
| /consumers/<group>/owners/<topic>/<broker id>-<partition> | ephemeral | consumer | id of the owning stream |
| /consumers/<group>/offsets/<topic>/<broker id>-<partition> | persistent | consumer | next offset to read |
| /kafka2011/modern/<broker id> | ephemeral | broker | <host>:<port> of today's protocol (not in 2011) |
| /kafka2011/admin/<broker id> | ephemeral | broker | <host>:<port> of its read-only HTTP (not in 2011) |
| /kafka2011/standby/<broker id> | persistent | leader | which members of the broker are in sync (not in 2011) |
| /kafka2011/standby/<broker id>/members/<member> | ephemeral | member | its disk, <host>:<port> of its read-only HTTP |
| /kafka2011/rows/<topic> | persistent | broker | the topic's partitions in the order today's clients number them |

Values are text. Parents are persistent and hold nothing.

Paper: §3.2, "the broker registry, the consumer registry and the ownership registry are ephemeral ... the offset
registry is persistent".
"""

from __future__ import annotations

from kafka2011.errors import Kafka2011Error
from kafka2011.types import BrokerPartition, is_legal_name

BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
CONSUMERS = "/consumers"
MODERN = "/kafka2011/modern"
ADMIN = "/kafka2011/admin"
ROWS = "/kafka2011/rows"
STANDBY = "/kafka2011/standby"

SHARED_PARENTS = ("/consumers", "/kafka2011")
"""Parents under which clients with different credentials create their own nodes."""


class IllegalName(Kafka2011Error):
    """A group, consumer or topic name that cannot be a node."""


def broker_id(broker: int) -> str:
    return f"{BROKER_IDS}/{broker}"


def topic(name: str) -> str:
    return f"{BROKER_TOPICS}/{_legal('topic', name)}"


def topic_on_broker(name: str, broker: int) -> str:
    return f"{topic(name)}/{broker}"


def modern_address(broker: int) -> str:
    return f"{MODERN}/{broker}"


def admin_address(broker: int) -> str:
    return f"{ADMIN}/{broker}"


def standby(broker: int) -> str:
    return f"{STANDBY}/{broker}"


def partition_row(topic_name: str) -> str:
    return f"{ROWS}/{_legal('topic', topic_name)}"


def group(name: str) -> str:
    return f"{CONSUMERS}/{_legal('group', name)}"


def consumer_ids(group_name: str) -> str:
    return f"{group(group_name)}/ids"


def consumer_id(group_name: str, consumer: str) -> str:
    # Other clients have other ideas of an id (samsa: host:uuid), and theirs are read too.
    if not consumer or "/" in consumer or consumer in (".", "..") or not consumer.isprintable():
        raise IllegalName(f"{consumer!r} cannot be a consumer id: it must be able to name a node")
    return f"{consumer_ids(group_name)}/{consumer}"


def owners(group_name: str, topic_name: str) -> str:
    return f"{group(group_name)}/owners/{_legal('topic', topic_name)}"


def owner(group_name: str, topic_name: str, partition: BrokerPartition) -> str:
    return f"{owners(group_name, topic_name)}/{partition}"


def offsets(group_name: str, topic_name: str) -> str:
    return f"{group(group_name)}/offsets/{_legal('topic', topic_name)}"


def offset(group_name: str, topic_name: str, partition: BrokerPartition) -> str:
    return f"{offsets(group_name, topic_name)}/{partition}"


def parents(path: str) -> list[str]:
    """The nodes above ``path``, the topmost first, without the root: ``/a/b/c`` -> ``/a``, ``/a/b``."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:n]) for n in range(1, len(parts))]


def _legal(what: str, name: str) -> str:
    if not is_legal_name(name):
        raise IllegalName(f"{name!r} cannot be a {what}: use letters, digits, dot, dash and underscore")
    return name
