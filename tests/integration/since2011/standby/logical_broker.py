"""A logical broker of two or three member processes, to be killed and looked into."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kafka2011.client import BrokerConnection
from kafka2011.errors import Kafka2011Error
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, decode_set, encode_set
from tests.waiting import until
from zk_registry.brokers import BrokerRegistry
from zk_registry.server import free_ports
from zk_registry.session import ZooKeeperSession

SESSION_MS = 6000
"""Long, so that a busy machine is no reason to lose one."""


class LogicalBroker:
    """The members of broker 0, and what ZooKeeper says of them. Thread: one."""

    def __init__(
        self, place: Path, connect: str, members: str, options: Mapping[str, object], stack: ExitStack
    ) -> None:
        self.place = place
        self.registry = BrokerRegistry(stack.enter_context(ZooKeeperSession(connect)))
        self.members: dict[str, BrokerProcess] = {}
        ports = free_ports(2 * len(members))
        for member, port, admin in zip(members, ports[::2], ports[1::2], strict=True):
            own = {
                "brokerid": 0,
                "zk.connect": connect,
                "zk.sessiontimeout.ms": SESSION_MS,
                "standby.member": member,
                "port": port,
                # Of their own, and the same when a member begins again.
                "admin.port": admin,
                "produce.acks.enable": True,
            }
            process = self.members[member] = BrokerProcess(place / member, own | dict(options))
            stack.enter_context(process)

    def leader(self) -> str:
        """The member that holds the broker's node, once one does."""
        return until(self._leader, "a member leads")

    def _leader(self) -> str | None:
        address = self.registry.brokers().get(0)
        ports = {process.options["port"]: member for member, process in self.members.items()}
        return None if address is None else ports.get(address.port)

    def next_leader(self, last: str) -> str:
        """Another than ``last``, once there is one that answers."""

        def other() -> str | None:
            member = self._leader()
            return member if member not in (None, last) and self.answers(member) else None

        return until(other, f"another than {last} leads")

    def answers(self, member: str | None) -> bool:
        """Whether a client is answered there."""
        if member is None:
            return False
        try:
            with BrokerConnection("127.0.0.1", self.port(member), connect_timeout_s=0.05) as connection:
                connection.offsets("nobody", 0)
        except Kafka2011Error:
            return False
        return True

    def port(self, member: str) -> int:
        """Of its 2011 port."""
        return int(str(self.members[member].options["port"]))

    def state(self, member: str) -> dict[str, Any]:
        """What it shows of itself."""
        shown: dict[str, Any] = self.members[member].state()["plugins"]["standby"]
        return shown

    def in_sync(self, members: str) -> None:
        """Wait until exactly these are in sync."""

        def told() -> bool:
            try:
                return bool(self.state(self.leader()).get("in_sync") == sorted(members))
            except OSError:
                return False  # it has just stopped leading

        until(told, f"{members} are in sync")

    def send(self, topic: str, payloads: list[bytes], partition: int = 0) -> list[tuple[int, bytes]]:
        """Publish one after the other, acknowledged by all in sync: offset and payload of each."""
        sent = []
        with BrokerConnection("127.0.0.1", self.port(self.leader()), timeout_s=60.0) as connection:
            for payload in payloads:
                offset, _ = connection.produce_acked(topic, partition, encode_set([payload]), AckLevel.ALL)
                sent.append((offset, payload))
        return sent

    def read(self, topic: str, partition: int = 0) -> list[tuple[int, bytes]]:
        """Everything visible at the leader: offset and payload of each."""
        found = []
        with BrokerConnection("127.0.0.1", self.port(self.leader()), timeout_s=60.0) as connection:
            (offset,) = connection.offsets(topic, partition, -2)
            while data := connection.fetch(topic, partition, offset):
                for message in decode_set(data, offset):
                    found.append((message.offset, message.payload))
                    offset = message.next_offset
        return found

    def wipe(self, member: str) -> None:
        """Delete the disk of a member that does not run."""
        shutil.rmtree(self.place / member)

    def same_files(self, topic: str) -> bool:
        """Whether all members hold the same segment files, byte for byte."""
        directories = [sorted((self.place / member).glob(f"{topic}-*/*.kafka")) for member in self.members]
        names = [[path.relative_to(path.parents[1]) for path in paths] for paths in directories]
        return all(one == names[0] for one in names) and all(
            filecmp.cmp(one, other, shallow=False)
            for paths in directories
            for one, other in zip(directories[0], paths, strict=True)
        )


@contextmanager
def logical_broker(place: Path, connect: str, members: str = "ab", **options: object) -> Iterator[LogicalBroker]:
    """Start the members, the first one first: it leads. Options are settings with ``_`` for the dot."""
    with ExitStack() as stack:
        named = {name.replace("_", "."): value for name, value in options.items()}
        yield LogicalBroker(place, connect, members, named, stack)
