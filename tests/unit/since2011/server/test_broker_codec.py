"""Requests between brokers held against bytes that real 3.9 brokers at protocol 2.6 exchanged (sheet §3.3)."""

from __future__ import annotations

import pytest

from kafka2011.errors import InvalidRequest
from since2011.wire.codec import (
    ApiKey,
    Struct,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

HOST = "0a" + b"127.0.0.1".hex()

LEADER_AND_ISR = (
    "0004000400000003000131 00 00000001 00000001 000000000000001d 02 0274 02 00000001 00000001 00000003 00000000"
    "03 00000003 00000001 00000000 03 00000003 00000001 01 01 01 00 00 02 00000003"
    f"{HOST} 00005e8b 00 00"
)
STOP_REPLICA = "000500030000000f000133 00 00000003 00000002 0000000000000082 02 0274 02 00000000 00000005 00 00 00 00"
CONTROLLED_SHUTDOWN = "0007000300000000000133 00 00000003 0000000000000047 00"
# Put together by hand from the schema of UpdateMetadata 6: an endpoint begins with its port.
UPDATE_METADATA = (
    "0006000600000004000131 00 00000001 00000001 000000000000001d 02 0274 02 00000000 00000001 00000002 00000000"
    "03 00000002 00000003 00000000 03 00000002 00000003 01 00 00 02 00000002 02 00005e8b"
    f"{HOST} 09{b'INTERNAL'.hex()} 0000 00 00 00 00"
)

REQUESTS = {
    ApiKey.LEADER_AND_ISR: (LEADER_AND_ISR, 4, 3, "1", Struct(
        controller_id=1, controller_epoch=1, broker_epoch=29,
        topics=[Struct(name="t", partitions=[Struct(
            index=1, controller_epoch=1, leader=3, leader_epoch=0, isr=[3, 1], partition_epoch=0, replicas=[3, 1],
            adding=[], removing=[], is_new=True,
        )])],
        live_leaders=[Struct(id=3, host="127.0.0.1", port=24203)],
    )),
    ApiKey.STOP_REPLICA: (STOP_REPLICA, 3, 15, "3", Struct(
        controller_id=3, controller_epoch=2, broker_epoch=130,
        topics=[Struct(name="t", partitions=[Struct(index=0, leader_epoch=5, delete=False)])],
    )),
    ApiKey.CONTROLLED_SHUTDOWN: (CONTROLLED_SHUTDOWN, 3, 0, "3", Struct(broker_id=3, broker_epoch=71)),
    ApiKey.UPDATE_METADATA: (UPDATE_METADATA, 6, 4, "1", Struct(
        controller_id=1, controller_epoch=1, broker_epoch=29,
        topics=[Struct(name="t", partitions=[Struct(
            index=0, controller_epoch=1, leader=2, leader_epoch=0, isr=[2, 3], partition_epoch=0, replicas=[2, 3],
            offline=[],
        )])],
        brokers=[Struct(
            id=2, endpoints=[Struct(port=24203, host="127.0.0.1", listener="INTERNAL", security_protocol=0)], rack=None,
        )],
    )),
}  # fmt: skip

_ONE = Struct(error=0, partitions=[Struct(topic="t", index=1, error=0)])
RESPONSES = {
    ApiKey.LEADER_AND_ISR: ("00000003 00 0000 02 0274 00000001 0000 00 00", 4, 3, _ONE),
    ApiKey.STOP_REPLICA: (
        "0000000f 00 0000 02 0274 00000000 0000 00 00", 3, 15,
        Struct(error=0, partitions=[Struct(topic="t", index=0, error=0)]),
    ),
    ApiKey.UPDATE_METADATA: ("00000004 00 0000 00", 6, 4, Struct(error=0)),
    ApiKey.CONTROLLED_SHUTDOWN: ("00000000 00 0000 01 00", 3, 0, Struct(error=0, remaining=[])),
}  # fmt: skip


@pytest.mark.parametrize("key", REQUESTS, ids=lambda key: key.name.lower())
def test_requests_are_the_bytes_real_brokers_send(key: ApiKey) -> None:
    """Sheet §3.3: what a real controller sent is read as what it meant, and written to the same bytes."""
    text, version, correlation, client, body = REQUESTS[key]
    frame = bytes.fromhex(text)

    assert decode_request(frame, decode_header(frame)) == body
    assert b"".join(encode_request(key, version, correlation, client, body))[4:] == frame


@pytest.mark.parametrize("key", RESPONSES, ids=lambda key: key.name.lower())
def test_answers_are_the_bytes_real_brokers_send(key: ApiKey) -> None:
    """Sheet §3.3: answers of real brokers are read, and ours are the same bytes."""
    text, version, correlation, body = RESPONSES[key]
    frame = bytes.fromhex(text)

    assert decode_response(key, version, frame) == (correlation, body)
    parts = encode_response(key, version, correlation, body)
    assert b"".join(part for part in parts if isinstance(part, bytes))[4:] == frame


@pytest.mark.parametrize("key", REQUESTS, ids=lambda key: key.name.lower())
def test_a_request_cut_short_is_refused(key: ApiKey) -> None:
    """Bad input: every prefix of a request is a named error, never a guess."""
    frame = bytes.fromhex(REQUESTS[key][0])
    for end in range(11, len(frame)):
        with pytest.raises(InvalidRequest):
            decode_request(frame[:end], decode_header(frame[:end]))
