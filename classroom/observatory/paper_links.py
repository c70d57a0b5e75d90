"""Every element of the page leads to the paragraph it shows and to the code that does it.

The line numbers are looked up in the installed code, so they are never out of date.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Any

from classroom.observatory.source_pages import source_of


@dataclass(frozen=True, slots=True)
class Link:
    """Section and paragraph of the paper, what it says in our words, and where the code is."""

    section: str
    says: str
    code: str
    quote: str
    """The beginning of the sentence, as printed."""


LINKS: dict[str, Link] = {
    "segments": Link(
        "§3.1 Simple storage ¶1",
        "a partition is a log, a log is a set of segment files of about equal size",
        "kafka2011.log.segment_list:SegmentList",
        "a log is implemented as a set of segment files of approximately the same size",
    ),
    "flush": Link(
        "§3.1 Simple storage ¶1",
        "a message is exposed only after it is flushed",
        "kafka2011.log.log:Log",
        "A message is only exposed to the consumers after it is flushed",
    ),
    "retention": Link(
        "§3.1 Stateless broker ¶1",
        "a message is deleted after a fixed time, read or not",
        "kafka2011.log.retention:",
        "A message is automatically deleted if it has been retained in the broker longer than a certain period",
    ),
    "message": Link(
        "§3.1 Simple storage ¶2",
        "a message is addressed by its offset; the next one's is this plus its length",
        "kafka2011.wire.reading:read_set",
        "To compute the id of the next message, we have to add the length of the current message to its id",
    ),
    "sendfile": Link(
        "§3.1 Efficient transfer ¶3",
        "the kernel moves the file's bytes to the socket",
        "kafka2011.broker.sendfile:",
        "there exists a sendfile API that can directly transfer bytes from a file channel to a socket channel",
    ),
    "broker": Link(
        "§3 ¶1",
        "published messages are stored at servers, the brokers",
        "kafka2011.broker.service:Broker",
        "The published messages are then stored at a set of servers called brokers",
    ),
    "registries": Link(
        "§3.2 ¶6",
        "brokers, consumers, ownership and offsets are registries in ZooKeeper",
        "zk_registry.paths:",
        "Each consumer group is associated with an ownership registry and an offset registry in Zookeeper",
    ),
    "watches": Link(
        "§3.2 ¶7",
        "a consumer watches the broker and consumer registries",
        "consumers.algorithm1.rebalance:rebalance",
        "Each consumer also registers a Zookeeper watcher on both the broker registry and the consumer registry",
    ),
    "owners": Link(
        "§3.2 ¶6",
        "each partition has one owner in a group, an ephemeral node",
        "zk_registry.owners:",
        "The ownership registry has one path for every subscribed partition",
    ),
    "rebalance": Link(
        "§3.2 Algorithm 1",
        "release, read, sort, share, claim",
        "consumers.algorithm1.rebalance:rebalance",
        "the consumer initiates a rebalance process to determine the new subset of partitions",
    ),
    "offsets": Link(
        "§3.2 ¶6",
        "offsets are persistent nodes, one per group and partition",
        "zk_registry.offsets:",
        "The offset registry stores for each subscribed partition, the offset of the last consumed message",
    ),
    "delivery": Link(
        "§3.3 ¶1",
        "at least once: what was read after the last stored offset comes again",
        "consumers.commit:",
        "In general, Kafka only guarantees at-least-once delivery",
    ),
    "modern": Link(
        "§3.2 ¶2, and after it",
        "no master in the paper; ten years later a coordinator hands out generations",
        "consumers.group_protocol.coordinator.service:GroupCoordinator",
        "to not have a central master node, but instead let consumers coordinate among themselves",
    ),
    "load": Link(
        "§4 ¶4",
        "a load task reads from the brokers and keeps the offsets with the data",
        "hadoop_etl.job:",
        "Both data and offsets are stored in HDFS only on the successful completion of the job",
    ),
    "audit": Link(
        "§4 ¶5",
        "producers publish counts per window; the load compares",
        "hadoop_etl.audit:",
        "Our tracking also includes an auditing system to verify that there is no data loss",
    ),
}


@cache
def resolve() -> dict[str, dict[str, Any]]:
    """All links with the module and the line of today's code."""
    return {key: found for key, link in LINKS.items() if (found := _resolve(link)) is not None}


def _resolve(link: Link) -> dict[str, Any] | None:
    module, _, name = link.code.partition(":")
    text = source_of(module)
    if text is None:
        return None  # a part that is not installed has no code to show here
    line = next((node.lineno for node in ast.parse(text).body if name and getattr(node, "name", "") == name), 1)
    return {"section": link.section, "says": link.says, "module": module, "line": line}
