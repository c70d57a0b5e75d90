"""Where messages go: broker lists, partitions, keys (docs/producer.md)."""

from __future__ import annotations

import pytest

from kafka2011.errors import ConfigError, ConnectionFailed, IllegalTopicName
from kafka2011.producer import Producer, StaticRouter, parse_brokers
from kafka2011.types import BrokerAddress, BrokerPartition
from tests.unit.producer.conftest import MakeBroker
from tests.unit.producer.puppet import PuppetBroker


def router(*brokers: PuppetBroker, partitions: tuple[int, ...] = (-1,)) -> StaticRouter:
    return StaticRouter([BrokerAddress(i, "127.0.0.1", b.port) for i, b in enumerate(brokers)], partitions)


def test_both_spellings_of_a_broker_list() -> None:
    """``host:port`` counts ids from 0; 0.7's ``id:host:port`` names them."""
    assert parse_brokers("a:1, b:2") == [BrokerAddress(0, "a", 1), BrokerAddress(1, "b", 2)]
    assert parse_brokers("7:a:1") == [BrokerAddress(7, "a", 1)]
    for wrong in ("a", "a:b", ":9092", "a:0", "a:70000"):
        with pytest.raises(ConfigError, match="broker list"):
            parse_brokers(wrong)
    with pytest.raises(ConfigError, match="empty"):
        Producer("")


def test_a_broker_list_lets_the_broker_choose(broker: PuppetBroker) -> None:
    """With a static list partition -1 is sent (docs/producer.md): the broker picks one at random."""
    with Producer(broker.address) as producer:
        producer.send("clicks", b"x")
        producer.send("clicks", b"y", key="ignored, as in 0.7")

    broker.received(2)
    assert {request.partition for request in broker.produced} == {-1}


def test_known_partitions_are_sent_as_real_numbers(broker: PuppetBroker) -> None:
    """A router that knows the partitions sends real numbers, all of them in the long run (§3.2)."""
    with Producer(router(broker, partitions=(0, 1, 2))) as producer:
        for _ in range(300):
            producer.send("clicks", b"x")

    assert len(broker.received(300)) == 300
    assert {request.partition for request in broker.produced} == {0, 1, 2}


def test_a_key_decides_the_partition(make_broker: MakeBroker) -> None:
    """Candidates are taken in numeric order of broker and partition; the key's hash picks one.

    See §3.2, docs/producer.md.
    """
    first, second = make_broker(), make_broker()
    with Producer(router(first, second, partitions=(0, 1))) as producer:
        for _ in range(3):
            producer.send("clicks", b"x", key="test")  # 3556498 mod 4 = 2: broker 1, partition 0

    second.received(3)
    assert not first.produced
    assert {request.partition for request in second.produced} == {0}


def test_a_custom_partitioner_is_asked(make_broker: MakeBroker) -> None:
    """Any function of key and number of partitions decides; one that leaves the range is refused.

    See docs/paper-vs-code.md.
    """
    first, second = make_broker(), make_broker()
    with Producer(router(first, second, partitions=(0, 1, 2, 3)), partitioner=lambda key, n: len(key)) as producer:
        producer.send("clicks", b"x", key="test")
        with pytest.raises(ConfigError, match="returned 9 for 8 partitions"):
            producer.send("clicks", b"x", key="nine char")

    second.received(1)
    assert [request.partition for request in second.produced] == [0]
    assert not first.produced


def test_a_partitioner_without_partitions_is_refused() -> None:
    """A plain broker list and a partitioner together make no sense (docs/producer.md)."""
    with pytest.raises(ConfigError, match="partitioner"):
        Producer("127.0.0.1:1", partitioner=lambda key, n: 0)


def test_an_illegal_topic_is_refused_at_once(broker: PuppetBroker) -> None:
    """A name that cannot be a directory never leaves the producer."""
    with Producer(broker.address) as producer:
        for name in ("", "..", "a/b", "x" * 201):
            with pytest.raises(IllegalTopicName, match="topic"):
                producer.send(name, b"x")


class NoBrokers:
    """A router over a cluster with nobody in it."""

    refreshed = 0

    def partitions(self, topic: str) -> list[BrokerPartition]:
        return []

    def address(self, broker_id: int) -> BrokerAddress:
        raise ConnectionFailed("unknown")

    def refresh(self) -> None:
        self.refreshed += 1

    def close(self) -> None:
        pass


def test_no_broker_alive_is_a_clear_error() -> None:
    """With no broker registered send() says so, after looking again (reliability: unroutable topic)."""
    nobody = NoBrokers()
    with Producer(nobody) as producer, pytest.raises(ConnectionFailed, match="no broker is alive"):
        producer.send("clicks", b"x")

    assert nobody.refreshed == 1


class Vanishing(StaticRouter):
    """A router whose first broker disappears as soon as something went wrong."""

    gone = False

    def refresh(self) -> None:
        self.gone = True

    def address(self, broker_id: int) -> BrokerAddress:
        if self.gone and broker_id == 0:
            raise ConnectionFailed("broker 0 is not registered any more")
        return super().address(broker_id)


def test_a_broker_may_vanish_while_its_messages_are_passed_on(make_broker: MakeBroker) -> None:
    """A broker that left the registry does not end the sending thread: its messages go to the others (§3.2)."""
    dead, alive = make_broker(), make_broker()
    dead.close()
    addresses = [BrokerAddress(0, "127.0.0.1", dead.port), BrokerAddress(1, "127.0.0.1", alive.port)]
    sent = retried = 0
    while not retried:  # the random choice falls on the dead one sooner or later
        with Producer(Vanishing(addresses), connect_timeout_s=0.01) as producer:
            producer.send("clicks", b"x")
        sent += 1
        retried = producer.counters.retried
        assert producer.counters.sent == 1

    assert len(alive.received(sent)) == sent


def test_brokers_are_named_or_found_not_both() -> None:
    """A producer with a broker list and a ZooKeeper is refused: one of them would be ignored (0.7 did so, too)."""
    with pytest.raises(ConfigError, match="name one of the two"):
        Producer("127.0.0.1:9092", zookeeper="127.0.0.1:2181")


def test_a_key_is_not_given_to_another_partition(make_broker: MakeBroker) -> None:
    """While the broker of a key's partition is away the message waits, then it is dropped and told (§3.2)."""
    dead, other = make_broker(), make_broker()
    dead.close()
    drops: list[int] = []
    with Producer(
        router(dead, other, partitions=(0,)),
        connect_timeout_s=0.01,
        retries=1,
        partitioner=lambda key, n: 0,
        on_drop=lambda topic, n, reason: drops.append(n),
    ) as producer:
        producer.send("clicks", b"x", key="any")

    assert drops == [1]
    assert not other.n_connections


def test_a_key_follows_its_broker_to_a_new_address(make_broker: MakeBroker) -> None:
    """A keyed message waits for its own partition, and finds it where the broker now is (§3.2)."""
    dead, moved, other = make_broker(), make_broker(), make_broker()
    dead.close()

    class Moving(StaticRouter):
        """Broker 0 turns out to be elsewhere."""

        looked_again = False

        def refresh(self) -> None:
            self.looked_again = True

        def address(self, broker_id: int) -> BrokerAddress:
            return BrokerAddress(0, "127.0.0.1", moved.port) if self.looked_again else super().address(broker_id)

    addresses = [BrokerAddress(0, "127.0.0.1", dead.port), BrokerAddress(1, "127.0.0.1", other.port)]
    with Producer(Moving(addresses, [0]), connect_timeout_s=0.01, partitioner=lambda key, n: 0) as producer:
        producer.send("clicks", b"x", key="any")

    assert moved.received(1) == [b"x"]
    assert not other.produced
