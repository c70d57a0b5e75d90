"""Where everything is in ZooKeeper since 0.8: the whole layout on one page, relative to the chroot (``/modern``).

| path | kind | value |
|---|---|---|
| /brokers/ids/<id> | ephemeral | endpoints, rack; its creation's number is the broker's epoch |
| /brokers/topics/<topic> | persistent | topic id, replicas of each partition |
| /brokers/topics/<topic>/partitions/<n>/state | persistent | leader, leader epoch, in-sync replicas |
| /config/{topics,brokers,clients,users,ips}/<name> | persistent | settings that differ from the defaults |
| /config/changes/config_change_<number> | persistent | which of these was changed |
| /admin/delete_topics/<topic> | persistent | none: it is being deleted |
| /cluster/id | persistent | the cluster's id |
| /controller, /controller_epoch | ephemeral, persistent | who the controller is, and the how-many-eth |
| /isr_change_notification/isr_change_<number> | persistent | of which partitions the leader changed the in-sync set |
| /log_dir_event_notification/log_dir_event_<number> | persistent | which broker has lost a disk |
| /admin/reassign_partitions, /admin/preferred_replica_election | persistent | what old tools ask of the controller |
| /latest_producer_id_block | persistent | the last thousand producer ids given out |
| /feature | persistent | features a real 3.9 has agreed on |

A broker that starts creates the parents (``CONTAINERS``) in the order a real one does. Texts: ``texts.py``.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

DEFAULT_CHROOT = "/modern"

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONFIG = "/config"
CHANGES = "/config/changes"
CHANGE = "/config/changes/config_change_"
DELETIONS = "/admin/delete_topics"
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
PRODUCER_IDS = "/latest_producer_id_block"
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE = "/isr_change_notification/isr_change_"
LOG_DIR_EVENTS = "/log_dir_event_notification"
REASSIGNMENT = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"

CONTAINERS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CHANGES,
    DELETIONS,
    "/brokers/seqid",
    ISR_CHANGES,
    PRODUCER_IDS,
    LOG_DIR_EVENTS,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)

DEFAULT_ENTITY = "<default>"
"""The name in a path of what holds for all brokers, all users or all clients."""


def broker(broker_id: int) -> str:
    """A living broker."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """A topic's replicas."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """The parent of a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    """The parent of a partition's state."""
    return f"{TOPICS}/{name}/partitions/{index}"


def state(name: str, index: int) -> str:
    """A partition's leader and in-sync replicas."""
    return f"{TOPICS}/{name}/partitions/{index}/state"


def partition_of_state(path: str) -> tuple[str, int] | None:
    """Topic and number of the partition whose state lies here; None: no state does."""
    parts = path.split("/")
    at_state = len(parts) == 7 and path.startswith(TOPICS) and parts[4] == "partitions" and parts[6] == "state"
    return (parts[3], int(parts[5])) if at_state and parts[5].isdecimal() else None


def config(entity: str) -> str:
    """The settings of an entity: ``topics/t``, ``brokers/1``, ``users/u/clients/c``."""
    return f"{CONFIG}/{entity}"


def deletion(name: str) -> str:
    """A topic being deleted."""
    return f"{DELETIONS}/{name}"


def sanitized(name: str) -> str:
    """A user's or client's name as it stands in a path: a real Kafka escapes it as in an address."""
    return name if name == DEFAULT_ENTITY else quote(name, safe="-_.")


def unsanitized(name: str) -> str:
    """The name behind an escaped one."""
    return name if name == DEFAULT_ENTITY else unquote(name)
