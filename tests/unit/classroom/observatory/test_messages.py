"""Messages on the page: whatever a payload holds, its neighbours are shown (issue 20 A3)."""

from __future__ import annotations

import json

import pytest

from classroom.observatory.messages import anatomy, json_or_nothing
from kafka2011.wire import encode_set


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"[" * 20_000, id="nested, and not closed"),
        pytest.param(b'{"a":' * 900 + b"1" + b"}" * 900, id="nested 900 deep"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b'{"a": [Infinity]}', id="infinity inside"),
        pytest.param(b'"\\ud800"', id="half a letter"),
        pytest.param(b"9" * 5000, id="5,000 digits"),
    ],
)
def test_what_no_browser_reads_is_shown_as_bytes(payload: bytes) -> None:
    """The answer is JSON by the book, whatever is in the payload; the message is there with its bytes."""
    shown = anatomy(0, encode_set([payload]), json_or_nothing)
    assert shown["decoded"] is None
    text = json.dumps(shown, allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(text)["size"] == 10 + len(payload)


def test_ordinary_json_is_shown_as_such() -> None:
    """Nesting people use stays readable."""
    event = {"a": {"b": [1, {"c": None}]}}
    shown = anatomy(0, encode_set([json.dumps(event).encode()]), json_or_nothing)
    assert (shown["decoded"], shown["format"]) == (event, "JSON")


def test_a_damaged_message_says_so() -> None:
    """Issue 22 B10: a message whose CRC fails is marked, so that list and detail can show it in red (§3.3)."""
    entry = bytearray(encode_set([b"hello"]))
    assert anatomy(7, bytes(entry), json_or_nothing)["bad"] is None
    entry[-1] ^= 1
    shown = anatomy(7, bytes(entry), json_or_nothing)

    assert shown["bad"].startswith("the CRC does not match: 3610a686 written")
    assert (shown["offset"], shown["next_offset"]) == (7, 7 + len(entry))
