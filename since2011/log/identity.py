"""Whose a log directory is: ``meta.properties``, as real Kafka writes it in its ZooKeeper years (version 0).

    #
    #Wed Nov 18 16:00:00 UTC 2026
    broker.id=0
    version=0
    cluster.id=4lXOlHdzR7eFnm5NhfMSNA

A directory of another cluster or of another broker is refused by name: its offsets would be taken for ours.
``partition.metadata`` in each partition's directory says of which topic it is, by the topic's id.
"""

from __future__ import annotations

import base64
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from kafka2011.errors import LogCorrupt, LogError
from since2011.log.files import write_whole

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
_VERSION = "0"


class ForeignLogDirectory(LogError):
    """A log directory of another cluster, of another broker or of a newer kind."""


class Identity(NamedTuple):
    """Which broker of which cluster."""

    broker_id: int
    cluster_id: str


def read_identity(directory: Path) -> Identity | None:
    """Whose the directory is; None if nobody has used it. Raises LogCorrupt and ForeignLogDirectory."""
    path = directory / META_PROPERTIES
    try:
        text = path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None
    words = dict(
        line.strip().partition("=")[::2] for line in text.splitlines() if line.strip() and line.strip()[0] not in "#!"
    )
    version = words.get("version", _VERSION)
    if version != _VERSION:
        raise ForeignLogDirectory(
            f"{path} is of version {version[:20]!r}, as KRaft brokers write it; give this broker another log directory"
        )
    broker_id = words.get("broker.id", "")
    if not broker_id.isdecimal():
        raise LogCorrupt(f"{path}: broker.id is {broker_id[:20]!r}, not a number; write the number of its broker there")
    return Identity(int(broker_id), words.get("cluster.id", ""))


def claim(directory: Path, identity: Identity) -> None:
    """Write down whose the directory is, or check it. Raises ForeignLogDirectory."""
    found = read_identity(directory)
    if found is not None and found.broker_id != identity.broker_id:
        raise ForeignLogDirectory(
            f"{directory} belongs to broker {found.broker_id}, and this is broker {identity.broker_id}: give this one "
            f"another log directory, or set brokerid={found.broker_id}"
        )
    if found is not None and found.cluster_id not in ("", identity.cluster_id):
        raise ForeignLogDirectory(
            f"{directory} belongs to cluster {found.cluster_id}, and this one is {identity.cluster_id}: connect to the "
            f"other ZooKeeper, or give this broker another log directory (its records stay where they are)"
        )
    if found != identity:
        stamp = time.strftime("#%a %b %d %H:%M:%S UTC %Y", time.gmtime())
        text = f"#\n{stamp}\nbroker.id={identity.broker_id}\nversion={_VERSION}\ncluster.id={identity.cluster_id}\n"
        write_whole(directory / META_PROPERTIES, text.encode())


def read_topic_id(directory: Path) -> uuid.UUID | None:
    """The id of the topic a partition is of; None if it does not say. Raises LogCorrupt."""
    try:
        text = (directory / PARTITION_METADATA).read_text("ascii", "replace")
    except FileNotFoundError:
        return None
    words = dict(line.partition(":")[::2] for line in text.splitlines())
    encoded = words.get("topic_id", "").strip()
    try:
        data = base64.urlsafe_b64decode(encoded + "==")
    except ValueError:
        data = b""
    if words.get("version", "").strip() != _VERSION or len(data) != 16:
        raise LogCorrupt(f"{directory.name}/{PARTITION_METADATA}: {text[:80]!r} names no topic id")
    return uuid.UUID(bytes=data)


def write_topic_id(directory: Path, topic_id: uuid.UUID) -> None:
    """Say of which topic a partition is. It becomes durable with the partition's first flush."""
    encoded = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    write_whole(directory / PARTITION_METADATA, f"version: {_VERSION}\ntopic_id: {encoded}".encode(), sync=False)
