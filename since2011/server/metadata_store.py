"""Which store holds the metadata of modern topics: ZooKeeper's nodes where there is ZooKeeper, else a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kafka2011.config import Setting
from since2011.topics.file_store import FileStore
from since2011.topics.store import MetadataStore
from since2011.topics.zookeeper_store import ZooKeeperStore
from zk_registry.access import access_of
from zk_registry.broker_plugin import ZooKeeperPlugin
from zk_registry.session import ZooKeeperSession

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

SETTINGS: tuple[Setting, ...] = (
    Setting("modern.zk.chroot", str, "/modern", "", "Below zk.connect, where the nodes of today's Kafka are: they have "
            "the names of 0.7's, and other texts.", "modern port (not in 2011)"),
)  # fmt: skip


def open_store(broker: Broker, directory: Path) -> MetadataStore:
    """The store, not started yet."""
    if not isinstance(broker.plugins.get("zookeeper"), ZooKeeperPlugin):
        return FileStore(directory)
    config = broker.config
    session = ZooKeeperSession(
        f"{config.get('zk.connect', str).rstrip('/')}/{config.get('modern.zk.chroot', str).strip('/')}",
        timeout_s=config.integer("zk.sessiontimeout.ms") / 1000,
        connect_timeout_s=config.integer("zk.connectiontimeout.ms") / 1000,
        journal=broker.journal,
        access=access_of(config),
        create_chroot=True,
    )
    # Brokers log in nowhere, and trust nobody's certificate: where the port asks for that, each stays alone.
    open_to_brokers = broker.tls is None and config["modern.sasl.users"] is None
    return ZooKeeperStore(session, broker.address.broker_id, journal=broker.journal, replicates=open_to_brokers)
