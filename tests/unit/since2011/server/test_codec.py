"""The codec by itself: headers, versions, limits, and the traps of the format."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from kafka2011.errors import InvalidRequest
from since2011.wire.codec import (
    APIS,
    NO_UUID,
    ApiKey,
    Struct,
    UnsupportedVersion,
    decode_header,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from since2011.wire.codec.primitives import MAX_ITEMS, Part, Reader
from since2011.wire.codec.schema import parse_fields
from tests.unit.since2011.server.values import OFFERED, named, random_body


def _decode(frame: bytes) -> Struct:
    return decode_request(frame, decode_header(frame))


def test_the_page_tells_what_is_offered() -> None:
    """docs/modern-port.md names every request with its versions, and no other."""
    page = (Path(__file__).parents[4] / "docs" / "modern-port.md").read_text()
    told = set(re.findall(r"^\| (\w+) \| (\d+)–(\d+) \|", page, re.MULTILINE))

    assert told == {
        ("".join(word.capitalize() for word in key.name.split("_")), str(api.first), str(api.last))
        for key, api in APIS.items()
    }


def test_a_tagged_field_is_written_only_where_it_is_set() -> None:
    """Sheet §11.3: tagged fields come after the others with number and size; unknown ones are passed over."""
    bare = Struct(topics=[Struct(topic_id=NO_UUID, partitions=[Struct(index=1, error=0, aborted=None, records=b"")])])
    told = Struct(topics=[Struct(topic_id=NO_UUID, partitions=[
        Struct(index=1, error=0, aborted=None, records=b"", diverging_epoch=Struct(epoch=5, end_offset=77))
    ])])  # fmt: skip
    plain, tagged = (b"".join(_bytes(encode_response(ApiKey.FETCH, 13, 1, body))) for body in (bare, told))

    assert plain[-3:] == bytes(3) and tagged[-18:] == bytes.fromhex("01 00 0d 00000005 000000000000004d 00 00 00")
    found = decode_response(ApiKey.FETCH, 13, tagged[4:])[1].topics[0].partitions[0]
    assert found.diverging_epoch == Struct(epoch=5, end_offset=77)
    unknown = tagged[4:-18] + bytes.fromhex("01 09 02 abcd 00 00")
    assert decode_response(ApiKey.FETCH, 13, unknown)[1].topics[0].partitions[0].diverging_epoch is None


def _bytes(parts: list[Part]) -> list[bytes]:
    assert all(isinstance(part, bytes) for part in parts)
    return [part for part in parts if isinstance(part, bytes)]


@pytest.mark.parametrize("case", OFFERED, ids=named)
def test_round_trip(case: tuple[ApiKey, int]) -> None:
    """What is written is read back, as request and as answer, in every version offered (docs/modern-port.md)."""
    key, version = case
    rng = random.Random(f"{key} {version}")
    for _ in range(5):
        request = random_body(rng, APIS[key].request, version)
        response = random_body(rng, APIS[key].response, version)

        assert request == _decode(b"".join(encode_request(key, version, 5, None, request))[4:])
        answer = b"".join(encode_response(key, version, 5, response))
        assert (5, response) == decode_response(key, version, answer[4:])
        assert len(answer) - 4 == int.from_bytes(answer[:4], "big")


def test_flexible_api_versions_answer_has_a_plain_header() -> None:
    """ApiVersions 3 answers with a flexible body behind a plain header, so that old clients can read it.

    See docs/group-protocol.md.
    """
    answer = b"".join(encode_response(ApiKey.API_VERSIONS, 3, 9, Struct(error=0, apis=[])))

    assert answer[4:].hex() == "00000009" + "0000" + "01" + "00000000" + "00"


def test_unknown_requests_and_versions_are_named() -> None:
    """A request that is not offered is told apart from one that cannot be read (docs/modern-port.md)."""
    for key, version in ((99, 0), (-1, 0), (ApiKey.PRODUCE, 2), (ApiKey.PRODUCE, 12), (ApiKey.FETCH, 18)):
        frame = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
        with pytest.raises(UnsupportedVersion):
            _decode(frame)


def test_array_length_is_held_against_the_frame() -> None:
    """Twenty bytes that promise a billion items are refused before anything is allocated (docs/modern-port.md)."""
    head = bytes.fromhex("0003 0001 00000000 ffff".replace(" ", ""))
    with pytest.raises(InvalidRequest, match="bytes left"):
        _decode(head + (2**31 - 1).to_bytes(4, "big") + b"\0\0")
    flexible = bytes.fromhex("0003 000c 00000000 ffff 00".replace(" ", "")) + b"\xff\xff\xff\xff\x0f"
    with pytest.raises(InvalidRequest, match="bytes left"):
        _decode(flexible)


def test_items_of_one_frame_are_bounded() -> None:
    """A frame of tiny items does not turn into gigabytes of values (research/docs/reliability.md)."""
    n = MAX_ITEMS + 1
    head = bytes.fromhex("0003 0001 00000000 ffff".replace(" ", ""))
    with pytest.raises(InvalidRequest, match="items"):
        _decode(head + n.to_bytes(4, "big") + b"\0\0" * n)


def test_null_is_refused_where_the_version_has_none() -> None:
    """Metadata 0 has no null list of topics; version 1 has, and it means all (docs/group-protocol.md)."""
    null = b"\xff\xff\xff\xff"
    with pytest.raises(InvalidRequest, match="null"):
        _decode(bytes.fromhex("0003000000000000ffff") + null)

    assert _decode(bytes.fromhex("0003000100000000ffff") + null).topics is None


def test_bytes_after_the_end_are_passed_over() -> None:
    """librdkafka asks for all topics with a null list four bytes wide where one is due; brokers read on.

    See docs/modern-port.md.
    """
    asked = _decode(bytes.fromhex("0003000c00000001ffff00" + "00000000" + "000000"))

    assert asked.topics is None and not asked.auto_create


def test_tagged_fields_are_skipped() -> None:
    """Fields a newer client adds behind a tag are passed over (spec, head of the sheet)."""
    body = Struct(software_name="n", software_version="v")
    frame = b"".join(encode_request(ApiKey.API_VERSIONS, 3, 1, None, body))[4:]

    tagged = frame[:-1] + bytes.fromhex("02 00 03 616263 7f 00".replace(" ", ""))

    assert body == _decode(tagged)


def test_long_varints_are_refused() -> None:
    """A varint ends within five bytes and holds at most 32 bits."""
    for data in (b"\xff" * 6, b"\xff\xff\xff\xff\x7f"):
        with pytest.raises(InvalidRequest):
            Reader(data).varint()

    assert Reader(b"\xff\xff\xff\xff\x0f").varint() == 0xFFFF_FFFF


def test_a_slip_in_the_table_is_found_at_import() -> None:
    """The table is read strictly: unknown types and stray signs are errors, not fields."""
    for text in ("a:i24", "a:[i32", "a i32", "a:i32}"):
        with pytest.raises(ValueError, match="field table"):
            parse_fields(text)


def test_values_that_do_not_fit_are_not_written() -> None:
    """The writer refuses what the wire cannot hold, naming the field."""
    with pytest.raises(ValueError, match="generation"):
        encode_request(ApiKey.HEARTBEAT, 0, 1, None, Struct(group="g", generation=2**31, member="m"))
    with pytest.raises(ValueError, match="group"):
        encode_request(ApiKey.HEARTBEAT, 0, 1, None, Struct(group=None, generation=1, member="m"))
