"""The modern topics of one broker: which there are, which partitions it leads, and their logs.

This is the one place that decides of which era a topic is: modern, if the cluster's metadata has it; else of 2011.
A log is made when its partition is first written to; until then it is empty without a file.

What is led is decided by a controller where there is one (``since2011.replication.manager``). A broker that has never
seen one leads the partitions of which it is the only replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from kafka2011.broker.reactor import Reactor
from kafka2011.events import Journal
from kafka2011.types import BrokerAddress
from since2011.log.log import ModernLog
from since2011.log.manager import LogManager
from since2011.log.settings import LogConfig, topic_settings
from since2011.replication.leadership import LeadershipListener
from since2011.replication.led import Led
from since2011.replication.manager import ReplicaManager
from since2011.server.events import ModernTopicUnclean, StrayLog
from since2011.topics.administration import Administration
from since2011.topics.errors import InvalidSetting
from since2011.topics.image import ZERO_ID, BrokerImage, ClusterImage, PartitionImage, TopicImage
from since2011.topics.store import MetadataStore
from since2011.topics.zookeeper_store import ZooKeeperStore
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused
from zk_registry.modern.texts import Endpoint

LISTENER = "PLAINTEXT"
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class ModernTopics:
    """What this broker knows and holds of modern topics. Thread: reactor."""

    def __init__(
        self,
        store: MetadataStore,
        logs: LogManager,
        administration: Administration,
        replicas: ReplicaManager,
        reactor: Reactor,
        journal: Journal,
    ) -> None:
        self.store, self.logs, self.administration, self.replicas = store, logs, administration, replicas
        self.broker_id = administration.broker_id
        self.is_clustered = isinstance(store, ZooKeeperStore)
        """Whether there can be a controller."""
        self._broker_entities = ("brokers/<default>", f"brokers/{self.broker_id}")
        self._reactor, self._journal = reactor, journal
        self.image = ClusterImage("")
        self._making: dict[str, Deferred[None]] = {}
        self._changed: list[Callable[[], None]] = []
        self._stop_watching: Callable[[], None] = lambda: None

    # Life

    async def start(self) -> None:
        """Take over what the store knows, and follow it from now on."""
        self.image = self.store.image
        self._stop_watching = self.store.on_change(lambda _image: self._reactor.callFromThread(self._follow))
        await deferToThread(self._remove_strays)
        self._lead_by_metadata()
        for log in [] if self.replicas.obeys else self.logs.logs():
            partition = self.image.partition(log.topic, log.partition)
            if partition is not None and partition.replicas == (self.broker_id,):
                # This broker is the only replica, so what is in the log is what readers may see.
                log.raise_high_watermark(log.log_end_offset)

    def _remove_strays(self) -> None:
        """Delete the logs of topics that were deleted while this broker was away.

        They are of this cluster, whose id its directories bear, and its metadata does not know them.
        """
        for log in self.logs.logs():
            if self.image.partition(log.topic, log.partition) is None:
                self._journal.emit(StrayLog(topic=log.topic, partition=log.partition))
                self.logs.delete(log.topic, log.partition)

    async def register(self, host: str, port: int, rack: str | None = None) -> None:
        """Be a living broker of the cluster, at this address."""
        endpoint = Endpoint(LISTENER, host, port)
        await deferToThread(self.store.register, BrokerImage(self.broker_id, (endpoint,), rack))
        self._follow()

    async def stop(self) -> None:
        """Leave the cluster."""
        self._stop_watching()
        await deferToThread(self.store.close)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the reactor after every change of the metadata."""
        self._changed.append(callback)

    def _follow(self) -> None:
        before, self.image = self.image, self.store.image
        if before is self.image:
            return
        if not self.replicas.obeys:
            gone = [log for log in self.logs.logs() if self._is_gone(log, before)]
            if gone:
                deferToThread(self._delete, gone).addErrback(self._unclean)
        if before.configs is not self.image.configs:
            everyone = any(before.config(entity) != self.image.config(entity) for entity in self._broker_entities)
            for topic in {log.topic for log in self.logs.logs()}:
                entity = f"topics/{topic}"
                if everyone or before.config(entity) != self.image.config(entity):
                    config = self.config_of(topic)
                    self.logs.reconfigure(topic, config)
                    self.replicas.reconfigured(topic, config)
        self._lead_by_metadata()
        for callback in self._changed:
            callback()

    def _lead_by_metadata(self) -> None:
        """Without a controller the metadata is a decision: what is cached of the last one is out of date."""
        if self.is_clustered and self.image.elected_controller is not None:
            self.replicas.obey()
        if self.replicas.obeys:
            return
        self.replicas.led.clear()
        for topic in self.replicas.leaderships.watched():
            self._tell_leaderships(topic)

    def _tell_leaderships(self, topic: str) -> None:
        image = self.image.topics.get(topic)
        epochs = (
            {}
            if image is None
            else {
                index: max(partition.leader_epoch, 0)
                for index, partition in enumerate(image.partitions)
                if partition.leader == self.broker_id and partition.replicas == (self.broker_id,)
            }
        )
        self.replicas.leaderships.now(topic, epochs)

    def watch(self, topic: str, listener: LeadershipListener) -> None:
        """Tell ``listener`` of every partition of ``topic`` this broker leads, now and from now on."""
        self.replicas.leaderships.watch(topic, listener)
        if not self.replicas.obeys:
            self._tell_leaderships(topic)

    def _is_gone(self, log: ModernLog, before: ClusterImage) -> bool:
        """Whether a log's topic was deleted: it was there and is not, or another topic has its name."""
        topic = self.image.topics.get(log.topic)
        if topic is None:
            return log.topic in before.topics
        return log.topic_id is not None and topic.topic_id != log.topic_id

    def _delete(self, logs: Iterable[ModernLog]) -> None:
        for log in logs:
            self.logs.delete(log.topic, log.partition)

    def _unclean(self, failure: Failure) -> None:
        self._journal.emit(ModernTopicUnclean(reason=failure.getErrorMessage()))

    # What there is

    def __contains__(self, topic: str) -> bool:
        return topic in self.image.topics or topic in self.replicas.topics

    def brokers(self) -> dict[int, BrokerAddress]:
        """The living brokers by the metadata: a real one is in no other registry."""
        return {
            number: BrokerAddress(number, endpoint.host, endpoint.port)
            for number, broker in self.image.brokers.items()
            if (endpoint := broker.endpoint(LISTENER)) is not None
        }

    def config_of(self, topic: str) -> LogConfig:
        """A topic's settings: its own, else this broker's. What nobody knows is passed over."""
        known = topic_settings()
        given = {name: text for name, text in self.store.image.config(f"topics/{topic}").items() if name in known}
        try:
            return self.administration.effective(given)
        except InvalidSetting as error:
            self._journal.emit(ModernTopicUnclean(reason=f"{topic}: {error}; its defaults are used"))
            return self.administration.effective({})

    def led(self, topic: str, index: int) -> Led:
        """A partition this broker leads. Raises Refused when it is another's or nobody's, LogError when offline."""
        found = self.replicas.led.get((topic, index))
        if found is None:
            found = self._find(topic, index)
            if found.log is not None:
                self.replicas.led[topic, index] = found
        elif found.log is not None and found.log.failed is not None:
            self.logs.get(topic, index)
        return found

    def _find(self, topic: str, index: int) -> Led:
        image = self.image.topics.get(topic)
        partition = self.image.partition(topic, index)
        if (image is None or partition is None) and (topic, index) not in self.replicas.replicas:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of {topic[:250]!r}")
        if self.replicas.obeys or image is None or partition is None:
            return self.replicas.find(topic, index)
        self._check_leads(topic, index, partition)
        log = self.logs.get(topic, index)
        if log is not None and log.topic_id is not None and log.topic_id != image.topic_id:
            log = None  # of a topic that was deleted while this broker was away; it makes room when this one is written
        if log is not None:
            # This broker is the only replica, so what is in the log is what readers may see.
            log.raise_high_watermark(log.log_end_offset)
        return Led(topic, index, image.topic_id, max(partition.leader_epoch, 0), log)

    def _check_leads(self, topic: str, index: int, partition: PartitionImage) -> None:
        if partition.leader < 0:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has no leader now")
        if partition.leader != self.broker_id:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is led by broker {partition.leader}")
        if len(partition.replicas) > 1:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{index} has replicas: a controller must decide")

    def log_for_writing(self, led: Led) -> ModernLog:
        """The log of a partition, made now if nobody has written to it yet."""
        if led.log is None:
            topic_id = None if led.topic_id == ZERO_ID else led.topic_id
            config = self.config_of(led.topic)
            led.log = self.logs.get_or_create(led.topic, led.index, topic_id, config, is_new=led.is_new)
            if led.leader is None:
                led.log.raise_high_watermark(led.log.log_end_offset)
            if not self.replicas.obeys:
                self.replicas.led[led.topic, led.index] = led
        return led.log

    # Making topics

    def create(
        self, topic: str, n_partitions: int, n_replicas: int = 1, settings: Mapping[str, str] = NO_SETTINGS
    ) -> Deferred[TopicImage | None]:
        """Make a topic that somebody has asked about; fires when it is there, by whomever it was made."""
        under_way = self._making.get(topic)
        if under_way is None:
            work = deferToThread(self._create, topic, n_partitions, n_replicas, settings)
            under_way = self._making[topic] = work.addBoth(self._created, topic)
        waiting: Deferred[TopicImage | None] = Deferred()

        def done(result: Failure | None) -> Failure | None:
            if not waiting.called:
                if isinstance(result, Failure):
                    waiting.errback(result)
                else:
                    waiting.callback(self.image.topics.get(topic))
            return None if isinstance(result, Failure) else result

        under_way.addBoth(done)
        return waiting

    def _create(self, topic: str, n_partitions: int, n_replicas: int, settings: Mapping[str, str]) -> None:
        image = self.store.image
        if topic in image.topics:
            return
        self.store.create_topic(topic, self.administration.place_new(topic, n_partitions, n_replicas), settings)

    def _created(self, result: Failure | None, topic: str) -> Failure | None:
        del self._making[topic]
        self._follow()
        if isinstance(result, Failure) and topic in self.image.topics:
            return None  # another broker, or a person, was faster
        return result
