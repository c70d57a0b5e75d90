"""Readers of nodes: whatever is written there, they answer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from zk_registry.brokers import encode_broker, parse_broker, parse_partition_count
from zk_registry.consumers import Subscription, parse_subscription
from zk_registry.offsets import parse_offset

names = st.text("AZaz09._-", min_size=1, max_size=20).filter(lambda name: name not in (".", ".."))


@given(st.dictionaries(names, st.integers(1, 1000), max_size=5))
def test_a_subscription_is_read_as_it_was_written(streams: dict[str, int]) -> None:
    """What one consumer writes, every other reads (docs/zookeeper.md)."""
    assert parse_subscription(Subscription.fixed(streams).encode()) == Subscription.fixed(streams)


@given(st.sampled_from(["clicks", "c.*", "a|b", "[a-z]+-x", "(x|y)+"]), st.integers(1, 1000), st.booleans())
def test_a_filter_is_read_as_it_was_written(pattern: str, n_streams: int, excludes: bool) -> None:
    """Filters survive the registry too (docs/zookeeper.md)."""
    make = Subscription.blacklist if excludes else Subscription.whitelist
    assert parse_subscription(make(pattern, n_streams).encode()) == make(pattern, n_streams)


_pieces = st.sampled_from(
    ["a", "b", ".", "[ab]", "|", "(", ")", "(?:", "*", "+", "?", "{2}", "{0,9}", "{3,}", "*?", "+?"]
)


@settings(max_examples=1000)
@given(st.lists(_pieces, min_size=1, max_size=25).map("".join), st.sampled_from(["a", "ab", "b"]))
def test_whatever_filter_is_accepted_is_answered(pattern: str, piece: str) -> None:
    """No filter that is taken keeps a reader busy: all of these are matched against names of 255 (§3.2)."""
    subscription = parse_subscription(b"*1*" + pattern.encode())
    if subscription is not None:
        name = (piece * 255)[:254] + "-"
        assert subscription.streams_of(name) in (0, 1)


@given(names, st.integers(1, 65535), st.integers(0, 2**40))
def test_a_broker_is_read_as_it_was_written(host: str, port: int, started_ms: int) -> None:
    """A broker's address survives the registry (docs/zookeeper.md)."""
    address = parse_broker("7", encode_broker(host, port, started_ms))
    assert address is not None and (address.host, address.port) == (host, port)


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode), st.text(max_size=20))
def test_no_content_raises(value: bytes, name: str) -> None:
    """A reader answers or says None; no bytes make it fail (attack table, row Z1)."""
    parse_broker(name, value)
    parse_partition_count(value)
    parse_subscription(value)
    offset = parse_offset(value)
    assert offset is None or 0 <= offset < 2**63
