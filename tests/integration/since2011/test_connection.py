"""What a connection to the modern port may rely on. See docs/modern-port.md."""

from __future__ import annotations

import contextlib
import random
import socket
import uuid

import psutil
import pytest

from kafka2011.testing import BrokerProcess
from since2011.wire.codec import ApiKey, Struct, decode_response, encode_request
from since2011.wire.error_codes import ErrorCode
from tests.integration.since2011.wire_client import WireClient, fetch_body, produce_body
from tests.unit.since2011.server.test_batches import built
from tests.waiting import until

ALL_TOPICS = Struct(topics=None, auto_create=False)


def test_any_version_of_api_versions_is_answered(client: WireClient) -> None:
    """An ApiVersions version nobody offers gets the oldest answer with error 35, and the connection lives (§1.6)."""
    client.socket.sendall(bytes.fromhex("00000014" + "0012" + "0063" + "00000007" + "0002" + "7878" + "00" * 8))

    number, answer = decode_response(ApiKey.API_VERSIONS, 0, client.receive_frame())

    assert (number, answer.error) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert next((api.min, api.max) for api in answer.apis if api.key == ApiKey.PRODUCE) == (3, 11)
    again = client.ask(ApiKey.API_VERSIONS, 3, Struct(software_name="test", software_version="1"))
    assert again.apis == answer.apis
    assert not {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE} & {api.key for api in answer.apis}


@pytest.mark.parametrize(
    "frame",
    ["0000 0002 00000001 ffff", "0001 0012 00000001 ffff", "0003 0001 00000001 ffff", "0063 0000 00000001 ffff"],
    ids=["old produce", "new fetch", "metadata cut short", "unknown request"],
)
def test_what_is_not_offered_closes_its_own_connection_only(client: WireClient, other: WireClient, frame: str) -> None:
    """Any other request that is not offered, or cannot be read, costs its connection and no other (§1.6)."""
    data = bytes.fromhex(frame.replace(" ", ""))
    client.socket.sendall(len(data).to_bytes(4, "big") + data)

    assert client.is_closed()
    assert other.ask(ApiKey.METADATA, 12, ALL_TOPICS).brokers


def test_first_request_needs_no_handshake(client: WireClient) -> None:
    """ApiVersions is not a handshake: a connection may open with any request (§1.6)."""
    answer = client.fetch("nobody-has-this-topic", 0)

    assert answer.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_answers_leave_in_the_order_of_the_requests(client: WireClient, other: WireClient) -> None:
    """A fetch that waits for data holds back the answers behind it, not their effect (§1.6)."""
    topic, made = f"order-{uuid.uuid4().hex[:8]}", f"made-{uuid.uuid4().hex[:8]}"
    client.produce(topic, [b"first"])
    waiting = client.send(ApiKey.FETCH, 11, fetch_body(topic, client.end(topic), max_wait_ms=60_000))
    effect = client.send(ApiKey.CREATE_TOPICS, 4, Struct(
        topics=[Struct(name=made, partitions=1, replication=1, assignments=[], configs=[])],
        timeout_ms=1000, validate_only=False,
    ))  # fmt: skip

    def created() -> bool:
        return made in [topic.name for topic in other.ask(ApiKey.METADATA, 5, ALL_TOPICS).topics]

    until(created, "the topic behind the waiting fetch exists")
    other.produce(topic, [b"second"])

    number, answer = client.receive(ApiKey.FETCH, 11)
    assert waiting == number and answer.topics[0].partitions[0].records
    assert effect == client.receive(ApiKey.CREATE_TOPICS, 4)[0]


def test_acks_0_is_not_answered(client: WireClient) -> None:
    """A producer that wants no answer gets none: the next answer belongs to the next request (§1.6)."""
    client.send(ApiKey.PRODUCE, 7, produce_body("silent", built([b"x"]), acks=0))

    assert client.ask(ApiKey.METADATA, 4, Struct(topics=[Struct(name="silent")], auto_create=False)).topics


def test_acks_0_that_fails_closes(client: WireClient) -> None:
    """The only answer to a failed produce with acks=0 is the end of the connection (§1.6)."""
    client.send(ApiKey.PRODUCE, 7, produce_body("silent", built([b"x"]), acks=0, partition=99))

    assert client.is_closed()


def test_fetch_waits_for_min_bytes_or_max_wait(client: WireClient, other: WireClient) -> None:
    """A fetch is held until enough is there, and answered empty when its time is up (§1.6)."""
    client.produce("poll", [b"x"])
    end = client.end("poll")

    assert client.fetch("poll", end, max_wait_ms=50).records == b""
    number = client.send(ApiKey.FETCH, 11, fetch_body("poll", end, max_wait_ms=60_000, min_bytes=100))
    other.produce("poll", [b"y"])
    other.produce("poll", [b"z" * 200])
    answered, answer = client.receive(ApiKey.FETCH, 11)

    row = answer.topics[0].partitions[0]
    assert number == answered
    assert (0, end + 11 + 210) == (row.error, row.high_watermark)
    assert row.last_stable == row.high_watermark


def test_a_fetch_session_nobody_gave_is_unknown(client: WireClient) -> None:
    """A session is asked for with epoch 0; one that the broker never gave is refused by name (KIP-227)."""
    body = fetch_body("poll", 0)
    body.session_epoch = 0
    answer = client.ask(ApiKey.FETCH, 11, body)
    assert answer.error == 0 and answer.session_id > 0
    body.session_id, body.session_epoch = answer.session_id + 1, 3

    assert client.ask(ApiKey.FETCH, 11, body).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_parked_join_does_not_hold_up_its_own_leave(client: WireClient, other: WireClient) -> None:
    """A request behind a parked JoinGroup takes effect at once; both answers come, in order (§1.6, §23)."""

    def join(member: str) -> Struct:
        return Struct(group="parked", session_ms=30_000, rebalance_ms=60_000, member=member, type="consumer",
                      protocols=[Struct(name="range", metadata=b"")])  # fmt: skip

    first = other.ask(ApiKey.JOIN_GROUP, 3, join(""))
    assert first.error == 0
    # The group is not stable, so the next one is parked until the first joins again: it never does here.
    mine = client.ask(ApiKey.JOIN_GROUP, 4, join(""))
    assert mine.error == ErrorCode.MEMBER_ID_REQUIRED
    joining = client.send(ApiKey.JOIN_GROUP, 4, join(mine.member))
    leaving = client.send(ApiKey.LEAVE_GROUP, 1, Struct(group="parked", member=mine.member))

    number, joined = client.receive(ApiKey.JOIN_GROUP, 4)
    assert (joining, ErrorCode.UNKNOWN_MEMBER_ID) == (number, joined.error)
    number, left = client.receive(ApiKey.LEAVE_GROUP, 1)
    assert (leaving, 0) == (number, left.error)


def test_metadata_says_where_to_dial_next(broker: BrokerProcess, client: WireClient) -> None:
    """Host and port of Metadata are those of the modern port (§1.6)."""
    for version in (0, 1, 5, 8, 9, 12):
        answer = client.ask(ApiKey.METADATA, version, Struct(topics=[], auto_create=False))
        assert [(0, "127.0.0.1", broker.modern_port)] == [(b.id, b.host, b.port) for b in answer.brokers]
    found = client.ask(ApiKey.FIND_COORDINATOR, 2, Struct(key="g", key_type=0))

    assert (0, broker.modern_port) == (found.error, found.port)


def test_strange_bytes_cost_one_connection(broker: BrokerProcess, client: WireClient) -> None:
    """Impossible sizes, other protocols and noise are closed at once; the broker goes on.

    See docs/reliability.md, N1, N5.
    """
    rng = random.Random(4)
    noise = [
        b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\x01",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + rng.randbytes(200),
        b"SSH-2.0-x\r\n", b"\0\0\0\x14" + rng.randbytes(20),
    ]  # fmt: skip
    for data in noise:
        with socket.create_connection(("127.0.0.1", broker.modern_port or 0), timeout=60) as stranger:
            stranger.sendall(data)
            with contextlib.suppress(ConnectionError):
                assert stranger.recv(1) == b""

    assert client.ask(ApiKey.METADATA, 1, Struct(topics=None)).brokers
    assert broker.state()["counters"]["handler_errors"] == 0


def test_a_client_that_does_not_read_costs_little(broker: BrokerProcess, client: WireClient, other: WireClient) -> None:
    """Hundreds of fetches whose answers nobody takes: reading stops, memory stays, others are served (§4.2, N4)."""
    for _ in range(8):
        client.produce("greedy", [b"x" * 250_000] * 2)
    before = psutil.Process(broker.pid).memory_info().rss
    client.socket.setblocking(False)
    request = b"".join(encode_request(ApiKey.FETCH, 11, 1, "greedy", fetch_body("greedy", 0, max_bytes=8 << 20)))
    with contextlib.suppress(BlockingIOError):
        for _ in range(5000):
            client.socket.sendall(request)

    for _ in range(20):
        assert other.ask(ApiKey.METADATA, 1, Struct(topics=None)).brokers
    assert psutil.Process(broker.pid).memory_info().rss - before < 64 << 20
