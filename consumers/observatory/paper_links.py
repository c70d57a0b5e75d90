"""Every element of the page leads to the paragraph it shows and to the code that does it.

The line numbers are looked up in the installed code, so they are never out of date.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Link:
    """Section and paragraph of the paper, what it says in our words, and where the code is."""

    section: str
    says: str
    code: str


LINKS: dict[str, Link] = {
    "segments": Link(
        "§3.1 Simple storage ¶1",
        "a partition is a log, a log is a set of segment files of about equal size",
        "kafka2011.log.segment_list:SegmentList",
    ),
    "flush": Link("§3.1 Simple storage ¶1", "a message is exposed only after it is flushed", "kafka2011.log.log:Log"),
    "retention": Link(
        "§3.1 Stateless broker ¶1", "a message is deleted after a fixed time, read or not", "kafka2011.log.retention:"
    ),
    "message": Link(
        "§3.1 Simple storage ¶2",
        "a message is addressed by its offset; the next one's is this plus its length",
        "kafka2011.wire.reading:read_set",
    ),
    "sendfile": Link(
        "§3.1 Efficient transfer ¶3",
        "the kernel moves the file's bytes to the socket",
        "kafka2011.broker.sendfile:",
    ),
    "broker": Link("§3 ¶1", "published messages are stored at servers, the brokers", "kafka2011.broker.service:Broker"),
    "registries": Link(
        "§3.2 ¶6", "brokers, consumers, ownership and offsets are registries in ZooKeeper", "zk_registry.paths:"
    ),
    "watches": Link(
        "§3.2 ¶7", "a consumer watches the broker and consumer registries", "consumers.algorithm1.rebalance:rebalance"
    ),
    "owners": Link("§3.2 ¶6", "each partition has one owner in a group, an ephemeral node", "zk_registry.owners:"),
    "rebalance": Link(
        "§3.2 Algorithm 1", "release, read, sort, share, claim", "consumers.algorithm1.rebalance:rebalance"
    ),
    "offsets": Link("§3.2 ¶6", "offsets are persistent nodes, one per group and partition", "zk_registry.offsets:"),
    "delivery": Link(
        "§3.3 ¶1", "at least once: what was read after the last stored offset comes again", "consumers.commit:"
    ),
    "modern": Link(
        "after the paper",
        "a coordinator hands out generations",
        "consumers.group_protocol.coordinator.service:GroupCoordinator",
    ),
    "load": Link("§4 ¶4", "a load task reads from the brokers and keeps the offsets with the data", "hadoop_etl.job:"),
    "audit": Link("§4 ¶5", "producers publish counts per window; the load compares", "hadoop_etl.audit:"),
}


@cache
def resolve() -> dict[str, dict[str, Any]]:
    """All links with the module and the line of today's code."""
    return {key: found for key, link in LINKS.items() if (found := _resolve(link)) is not None}


def _resolve(link: Link) -> dict[str, Any] | None:
    module, _, name = link.code.partition(":")
    text = _text(module)
    if text is None:
        return None  # a part that is not installed has no code to show here
    line = next((node.lineno for node in ast.parse(text).body if name and getattr(node, "name", "") == name), 1)
    return {"section": link.section, "says": link.says, "module": module, "line": line}


def source_of(module: str) -> str | None:
    """The text of one of our own modules, for the page's code links; None for anything else."""
    return _text(module) if module in {link.code.partition(":")[0] for link in LINKS.values()} else None


def _text(module: str) -> str | None:
    """A module's source, without importing it: Spark and its kin would make the page slow to start."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin).read_text() if spec is not None and spec.origin is not None else None
