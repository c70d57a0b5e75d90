"""A member reads each partition from the broker that holds it, whoever is down and however addresses are listed.

Issue 19 A4: addresses were given to the ids of the live brokers by their place in the list, and a wrong log was read.
"""

from __future__ import annotations

import pytest

from consumers.group_protocol.member import Member
from consumers.group_protocol.member.addresses import read_addresses, read_brokers
from kafka2011.errors import ConfigError
from kafka2011.types import BrokerPartition, TopicPartition
from since2011.client.cluster import Topics


def topics(live: set[int], holders: tuple[int, ...]) -> Topics:
    """What the metadata says: who lives, and who holds the partitions of t."""
    places = {TopicPartition("t", n): BrokerPartition(holder, 0) for n, holder in enumerate(holders)}
    return Topics(places, {}, dict.fromkeys(live, ("modern", 9192)))


@pytest.mark.parametrize("text", ["1@one:91,2@two:92,3@three:93", "3@three:93, 1@one:91,2@two:92"])
@pytest.mark.parametrize("live", [{1, 2, 3}, {2, 3}, {3}])
def test_an_address_belongs_to_its_id(text: str, live: set[int]) -> None:
    """In any order, and with any broker down: 2 and 3 are not read at the addresses of 1 and 2."""
    found = {each.broker_id: (each.host, each.port) for each in read_brokers(text, topics(live, (1, 2, 3)))}
    assert found == {1: ("one", 91), 2: ("two", 92), 3: ("three", 93)}


@pytest.mark.parametrize(
    ("text", "live"), [("one:91,two:92", {1, 2}), ("two:92,one:91", {1, 2}), ("one:91,two:92", {2}), ("one:91", {2})]
)
def test_addresses_without_ids_are_not_guessed(text: str, live: set[int]) -> None:
    """Also with one broker down, which the metadata knows by what it holds: an error that says what to write."""
    with pytest.raises(ConfigError, match="brokers 1, 2: write ID@HOST:PORT"):
        read_brokers(text, topics(live, (1, 2)))


def test_a_member_asks_instead_of_reading_a_wrong_log() -> None:
    """The same through the member itself: broker 1 is down, both addresses are listed."""
    member = Member("g", modern="127.0.0.1:1", brokers="one:91,two:92")
    member._topics = topics({2}, (1, 2))
    with pytest.raises(ConfigError, match="whose address is one:91"):
        member._now_reading()


def test_a_single_broker_needs_no_id() -> None:
    """Then there is nothing to mistake."""
    (only,) = read_brokers("localhost:9092", topics({7}, (7, 7)))
    assert (only.broker_id, only.host, only.port) == (7, "localhost", 9092)


@pytest.mark.parametrize("text", ["x@one:91", "1@one", "1@one:91,1@two:92", ""])
def test_what_is_no_list_of_brokers(text: str) -> None:
    """Is refused."""
    with pytest.raises((ValueError, ConfigError)):
        read_brokers(text, topics({1, 2}, (1,)))
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        read_addresses("one")
