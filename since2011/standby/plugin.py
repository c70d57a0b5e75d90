"""The broker plug-in that makes a broker one member of a logical broker.

    begin    the logs are there -> a session, this member's node -> follow, or run
    elected  logs flushed -> epoch noted -> lead -> port opened, registered as 0.7 does
    lost     the lease is over, or another was elected: everything stops at once, and the process begins again
    end      no more appends -> followers have everything, or 200 ms -> the session ends, another is elected

Paper: §3.3, future work. See docs/since-2011.md.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from kafka2011.broker.protocol import BrokerProtocol
from kafka2011.broker.reactor import every
from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.config import Config, Setting
from kafka2011.errors import ConfigError
from kafka2011.types import BrokerAddress
from since2011.log.files import write_whole
from since2011.replication.leader import SyncRules
from since2011.standby.epochs import Epochs
from since2011.standby.events import LeadershipLost, LeadershipWon
from since2011.standby.follow import KEY, FollowRequest, read_follow
from since2011.standby.in_sync import MEMBERS, InSync
from since2011.standby.lead import Lead
from since2011.standby.leadership import Leadership
from since2011.standby.member import Member
from since2011.standby.member_log import MemberLog
from since2011.standby.registry import StandbyRegistry
from since2011.standby.role import Role
from since2011.standby.watermarks import Watermarks
from zk_registry.broker_plugin import ZooKeeperPlugin
from zk_registry.lease import Lease, LeasedSession
from zk_registry.states import SessionState

if TYPE_CHECKING:
    from kafka2011.broker.service import Broker

_SECTION = "standby brokers (not in 2011)"
DIRECTORY = ".standby"
HAND_OVER_S = 0.2
"""How long an orderly stop waits for followers to have everything."""


class StandbyPlugin:
    """Thread: reactor; ``Member`` works in its own."""

    SETTINGS: ClassVar[tuple[Setting, ...]] = (
        Setting("standby.member", str, None, "", "Which member of the broker `brokerid` this process is. Its members "
                "hold the same messages; one leads, the others stand by (docs/since-2011.md). Unset: the broker has "
                "no standbys.", _SECTION, choices=MEMBERS),
        Setting("standby.lag.ms", int, 10_000, "ms", "How long a member may lack something its leader has before it is "
                "no longer counted as in sync.", _SECTION, minimum=100),
        Setting("standby.min.insync", int, 1, "members", "How many must be in sync, the leader counted, for a produce "
                "to be acknowledged by all, and for anything to become visible.", _SECTION, minimum=1, maximum=3),
    )  # fmt: skip

    @classmethod
    def wanted(cls, config: Config) -> bool:
        """Whether this broker is a member."""
        return config["standby.member"] is not None

    def __init__(self, broker: Broker) -> None:
        config = broker.config
        self.broker, self.member = broker, config.get("standby.member", str)
        self.broker_id, self.started_ms = config.integer("brokerid"), SYSTEM_CLOCK.wall_ms()
        if not ZooKeeperPlugin.wanted(config):
            raise ConfigError("standby.member needs zk.connect: the members of a broker find each other there")
        if config["port.access"] == "off" or config.integer("port") == 0:
            raise ConfigError("standby.member needs a 2011 port with a number: members follow each other there")
        self.lease = Lease(config.integer("zk.sessiontimeout.ms") / 1000)
        self._role = Role(self.lease)
        self._watermarks = Watermarks()
        self._lead: Lead | None = None
        self._member: Member | None = None
        self._serve: Callable[[], Deferred[None]] | None = None
        self._up: Deferred[None] | None = Deferred()
        self._lost = False
        self._loop: LoopingCall | None = None
        broker.gate = self
        broker.visibility = self._watermarks
        broker.requests.add(KEY, "follow", FollowRequest, read_follow, self._follow)
        broker.store.kind_of_log = partial(MemberLog, self._role, broker.store.checkpoint)

    # -- what the member asks -------------------------------------------------------------------------------------

    @property
    def address(self) -> BrokerAddress:
        """Where this member listens when it leads."""
        address = self.broker.address
        return BrokerAddress(address.broker_id, self._zookeeper.reachable(address.host), address.port)

    @property
    def told_address(self) -> str:
        """Where its read-only HTTP is."""
        return f"{self.address.host}:{self.broker.admin_port or 0}"

    @property
    def disks(self) -> dict[int, str]:
        """The disks of the members the leader knows."""
        return {} if self._lead is None else self._lead.leadership.disks

    def logs(self) -> list[MemberLog]:
        """All logs of this member."""
        return [log for log in self.broker.store.logs() if isinstance(log, MemberLog)]

    # -- life -----------------------------------------------------------------------------------------------------

    def begin(self, serve: Callable[[], Deferred[None]]) -> Deferred[None]:
        """As ``Gate``: begin to follow, or to lead."""
        self._serve = serve
        zookeeper = self.broker.plugins["zookeeper"]
        assert isinstance(zookeeper, ZooKeeperPlugin)
        self._zookeeper, self.session = zookeeper, zookeeper.session
        zookeeper.elects = True
        directory = self.broker.store.directory / DIRECTORY
        directory.mkdir(mode=0o700, exist_ok=True)
        self.disk = _disk_id(directory / "disk")
        self.epochs = Epochs(directory)
        self.epochs.load({log.where: log.end_offset for log in self.logs()})
        self.leased = LeasedSession(self.session, self.lease)
        registry = StandbyRegistry(self.leased, self.broker_id, self.member, self.disk)
        self._member = Member(self, registry)
        self.session.on_state(self._session_changed)
        threading.Thread(target=self._work, name="standby", daemon=True).start()
        assert self._up is not None
        return self._up

    def start(self) -> None:
        """Nothing more: it began before the broker served."""

    def topic_created(self, topic: str, n_partitions: int) -> None:
        """Followers hear of it with their next answer."""

    def end(self) -> Deferred[None]:
        """As ``Gate``: stop taking appends, and let the followers come as far as they can in a moment."""
        return Deferred.fromCoroutine(self._hand_over())

    async def _hand_over(self) -> None:
        lead = self._lead
        if lead is not None and not self._lost:
            self._role.closing = True
            for client in self.broker.limits:
                if not lead.is_follower(client):
                    client.drop("shutdown", "the broker stops")
            for log in self.logs():
                if log.end_offset > log.flushed_offset:
                    self.broker.flush(log)
            until = self.broker.now() + HAND_OVER_S
            while not lead.is_whole() and self.broker.now() < until:
                pause: Deferred[None] = Deferred()
                self.broker.reactor.callLater(0.005, pause.callback, None)
                await pause
        self._step_down()

    def stop(self) -> None:
        """End the thread."""
        self._step_down()
        if self._member is not None:
            self._member.stop()

    def _step_down(self) -> None:
        self._role.step_down()
        self._watermarks.lead = None
        self._watermarks.give_up()
        if self._loop is not None and self._loop.running:
            self._loop.stop()

    def _work(self) -> None:
        assert self._member is not None
        try:
            self.session.start()
            self._member.work()
        except Exception as error:
            self._in_reactor(self._failed, Failure(error))

    def _failed(self, failure: Failure) -> None:
        if self._up is not None:
            self._up.errback(failure)
            self._up = None
        else:
            self.lose(failure.getErrorMessage())

    def is_up(self) -> None:
        """This member knows whom it follows, or that nobody can lead. Thread: any."""
        self._in_reactor(self._told_up)

    def _told_up(self) -> None:
        if self._up is not None:
            up, self._up = self._up, None
            up.callback(None)

    def _in_reactor(self, call: Callable[..., object], *arguments: object) -> None:
        self.broker.reactor.callFromThread(call, *arguments)

    # -- leading --------------------------------------------------------------------------------------------------

    def elected(self, epoch: int, version: int, in_sync: InSync, term: int) -> None:
        """This member has won. Thread: the member's."""
        self._in_reactor(self._take_over, epoch, version, in_sync, term)

    def _take_over(self, epoch: int, version: int, in_sync: InSync, term: int) -> None:
        broker, member = self.broker, self._member
        if not broker.running or member is None or self._serve is None:
            return
        lag_s, least = broker.config.integer("standby.lag.ms") / 1000, broker.config.integer("standby.min.insync")
        disks = {MEMBERS.index(name): disk for name, disk in in_sync.disks.items()}
        rules = SyncRules(lag_s=lag_s, min_insync=least)
        me = MEMBERS.index(self.member)
        leadership = Leadership(me, epoch, disks, version, len(MEMBERS), rules, broker.now())
        lead = self._lead = self._watermarks.lead = Lead(
            broker, leadership, self.epochs, self._watermarks, member.propose
        )
        self._role.take_over(lead, term)
        lead.begin(self.logs())
        names = ", ".join(sorted(in_sync.disks))
        broker.journal.emit(LeadershipWon(broker_id=self.broker_id, member=self.member, epoch=epoch, members=names))
        self._loop = every(broker.reactor, min(self.lease.length_s / 20, lag_s / 4), self._tick)
        maybeDeferred(self._serve).addCallbacks(lambda _: self._told_up(), self._failed)

    def _tick(self) -> None:
        lead = self._lead
        if lead is None or self._lost:
            return
        if not self.lease.holds(self._role.term):
            self.lose("ZooKeeper was not heard of for so long that another may lead")
        else:
            lead.tick()

    def stored(self, version: int | None) -> None:
        """What became of an in-sync set; None: another wrote it, and so leads. Thread: the member's."""
        if version is None:
            self.over("another member was elected")
        elif self._lead is not None:
            self._in_reactor(self._lead.stored, version)

    def over(self, reason: str) -> None:
        """This member may not lead any more. Thread: any."""
        self._in_reactor(self.lose, reason)

    def _session_changed(self, state: SessionState) -> None:
        if self._member is not None:
            self._member.changed()
        if state is SessionState.LOST and self._role.leads:
            self.over("the session with ZooKeeper has ended")

    def lose(self, reason: str) -> None:
        """Stop at once: this process may not lead any more."""
        if self._lost or not self.broker.running:
            return
        self._lost = True
        epoch = self._role.epoch
        self._step_down()
        for client in self.broker.limits:
            client.drop("shutdown", "this member does not lead any more")
        self.broker.journal.emit(
            LeadershipLost(broker_id=self.broker_id, member=self.member, epoch=epoch, reason=reason)
        )
        self.broker.begin_again(reason)

    def _follow(self, broker: Broker, request: FollowRequest, client: BrokerProtocol) -> Any:
        self._role.check_leads()
        assert self._lead is not None
        return self._lead.follow(request, client)

    # -- what others see ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What this member is, and how far readers may see."""
        member, lead = self._member, self._lead
        shown: dict[str, Any] = {"member": self.member, "leads": self._role.leads}
        if lead is not None:
            followers = lead.leadership.leaders
            shown |= {
                "epoch": lead.epoch,
                "in_sync": [MEMBERS[number] for number in sorted(lead.leadership.state.isr)],
                "ends": {
                    str(where): {MEMBERS[n]: at.log_end for n, at in one.followers.items() if at.log_end >= 0}
                    for where, one in followers.items()
                },
            }
        elif member is not None and member.leader is not None:
            shown |= {"epoch": member.epoch, "leader": f"{member.leader.host}:{member.leader.port}"}
        if member is not None:
            shown["partitions"] = {
                str(log.where): {
                    "watermark": log.visible_offset,
                    "epochs": [list(entry) for entry in self.epochs.of(log.where).entries],
                }
                for log in self.logs()
            }
        return shown

    def trouble(self) -> str | None:
        """What keeps this member from its work."""
        return None if self._member is None else self._member.trouble

    def collectors(self) -> tuple[()]:
        """It has no metrics of its own."""
        return ()


def _disk_id(path: Path) -> str:
    """The id of this disk: made once, so that one that was replaced is known to be another."""
    if not path.exists():
        write_whole(path, secrets.token_hex(8).encode())
    return path.read_text(encoding="ascii")
