"""What stands in the nodes, byte for byte, and what does not count."""

from __future__ import annotations

import pytest

from kafka2011.errors import ConfigError
from kafka2011.types import BrokerAddress, BrokerPartition
from zk_registry import paths
from zk_registry.brokers import encode_broker, parse_broker, parse_partition_count
from zk_registry.consumers import Subscription, new_consumer_id, parse_subscription
from zk_registry.offsets import parse_offset


def test_the_layout_is_that_of_2011() -> None:
    """Every path is where 0.7 has it (docs/zookeeper.md)."""
    partition = BrokerPartition(0, 3)

    assert paths.broker_id(2) == "/brokers/ids/2"
    assert paths.topic_on_broker("clicks", 2) == "/brokers/topics/clicks/2"
    assert paths.consumer_id("g", "g_host-1-abc") == "/consumers/g/ids/g_host-1-abc"
    assert paths.owner("g", "clicks", partition) == "/consumers/g/owners/clicks/0-3"
    assert paths.offset("g", "clicks", partition) == "/consumers/g/offsets/clicks/0-3"
    assert paths.parents("/a/b/c") == ["/a", "/a/b"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "é", "x" * 201])
def test_a_name_that_could_leave_its_place_is_refused(name: str) -> None:
    """No topic or group name can point outside its own node (docs/zookeeper.md)."""
    with pytest.raises(paths.IllegalName, match="letters, digits"):
        paths.topic(name)
    with pytest.raises(paths.IllegalName):
        paths.consumer_ids(name)


def test_a_broker_entry_is_written_and_read_as_in_2011() -> None:
    """A broker's node is <creator>:<host>:<port> (docs/zookeeper.md)."""
    value = encode_broker("127.0.0.1", 9092, 1347000000000)

    assert value == b"127.0.0.1-1347000000000:127.0.0.1:9092"
    assert parse_broker("0", value) == BrokerAddress(0, "127.0.0.1", 9092)
    assert parse_broker("0", b"a:h:0") == BrokerAddress(0, "h", 0), "a broker whose 2011 port is off"


@pytest.mark.parametrize(
    ("name", "value"),
    [("0", b""), ("0", b"a:b"), ("0", b"a:h:99999"), ("0", b"a:h:-1"), ("0", b"a:evil:1;rm:9"), ("0", b"a::1:92"),
     ("0", b"\xff\xfe:\x00:12"), ("x", b"a:h:1"), ("-1", b"a:h:1"), ("99999999999", b"a:h:1"), ("0", b"{" * 900_000)],
)  # fmt: skip
def test_what_is_no_broker_is_not_taken_for_one(name: str, value: bytes) -> None:
    """Garbage in the broker registry is nothing, not an error (docs/zookeeper.md)."""
    assert parse_broker(name, value) is None


def test_partition_counts_and_offsets_are_plain_decimals() -> None:
    """Counts and offsets are decimal text; anything else is nothing (docs/zookeeper.md)."""
    assert parse_partition_count(b"4") == 4
    assert parse_offset(b"9223372036854775807") == 2**63 - 1
    for garbage in (b"", b"-1", b"4.0", b"0x4", "٤".encode(), b"9" * 20, b"\x00", b"9223372036854775808"):
        assert parse_offset(garbage) is None
    assert parse_partition_count(b"100001") is None


def test_a_subscription_is_written_exactly_as_in_2011() -> None:
    """Fixed topics, whitelist and blacklist have 0.7's text to the last space (docs/zookeeper.md)."""
    assert Subscription.fixed({"topic1": 4, "topic2": 2}).encode() == b'{ "topic1": 4,"topic2": 2 }'
    assert Subscription.fixed({}).encode() == b"{  }"
    assert Subscription.whitelist("white.*", 4).encode() == b"*4*white.*"
    assert Subscription.blacklist("black.*", 2).encode() == b"!2!black.*"


def test_a_subscription_is_read_in_any_spacing() -> None:
    """0.7's text, compact JSON and samsa's bare topic are all understood (docs/zookeeper.md, docs/paper-vs-code.md)."""
    assert parse_subscription(b'{ "topic1": 4,"topic2": 2 }') == Subscription.fixed({"topic1": 4, "topic2": 2})
    assert parse_subscription(b'{"topic1":4}') == Subscription.fixed({"topic1": 4})
    assert parse_subscription(b"{  }") == Subscription.fixed({})
    assert parse_subscription(b"topic1") == Subscription.fixed({"topic1": 1})
    assert parse_subscription(b"*4*white.*") == Subscription.whitelist("white.*", 4)


@pytest.mark.parametrize(
    "garbage",
    [b"", b"{", b"[1]", b'{"a": "1"}', b'{"a": true}', b'{"a": 0}', b'{"a/b": 1}', b"*0*x", b"*1*(", b"*1!x", b"\xff",
     b"[" * 90_000, b'{"a": ' + b"9" * 5000 + b"}", b"x" * 900_000],
)  # fmt: skip
def test_what_is_no_subscription_is_ignored(garbage: bytes) -> None:
    """A node that is not a subscription is nobody's subscription, whatever it holds (docs/zookeeper.md)."""
    assert parse_subscription(garbage) is None


def test_a_filter_matches_whole_names() -> None:
    """A filter is a pattern over whole topic names; commas mean "or" (docs/consumer.md)."""
    white, black = Subscription.whitelist('"click.*, views"', 3), Subscription.blacklist("click.*")

    assert white.pattern == "click.*|views"
    assert [white.streams_of(topic) for topic in ("clicks", "views", "reviews")] == [3, 3, 0]
    assert [black.streams_of(topic) for topic in ("clicks", "views")] == [0, 1]
    assert white.topics is None and Subscription.fixed({"b": 1, "a": 1}).topics == ("a", "b")
    with pytest.raises(ConfigError, match="regular expression"):
        Subscription.whitelist("(")


def test_consumer_ids_look_like_those_of_2011() -> None:
    """A consumer id is <group>_<host>-<ms>-<8 hex>, or <group>_<configured> (docs/zookeeper.md)."""
    made = new_consumer_id("g", "host", 1300000000000)

    assert made.startswith("g_host-1300000000000-") and len(made.rpartition("-")[2]) == 8
    assert new_consumer_id("g", "host", 1, "mine") == "g_mine"


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+", "(a|ab)*c", "(.*)*x", "(x.*){2}", ".*.*.*.*x", "a?" * 30 + "a" * 30, "(?=a)b", r"(a)\1", "x" * 1001],
)
def test_a_filter_that_could_take_for_ever_is_refused(pattern: str) -> None:
    """One member's filter is matched by all: one that could hang them is refused, and passed over in a node (§3.2)."""
    with pytest.raises(ConfigError, match="refused"):
        Subscription.whitelist(pattern)
    assert parse_subscription(b"*1*" + pattern.encode()) is None


@pytest.mark.parametrize(
    "pattern", ["white.*", "a|b|c", "log-(eu|us)-.*", "[a-z]+[0-9]*", "(?i)audit.*", ".*.*.*x", "(ab)*c?"]
)
def test_filters_people_write_are_taken_and_quick(pattern: str) -> None:
    """What is accepted is answered for the longest name there can be, however little it matches (§3.2)."""
    subscription = Subscription.whitelist(pattern)

    assert parse_subscription(subscription.encode()) == subscription
    assert [subscription.streams_of(name * 255) for name in "%é-"] == [0, 0, 0]
