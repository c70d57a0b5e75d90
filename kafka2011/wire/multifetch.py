"""MULTIFETCH, key 2: several FETCH bodies in one request, answered in one piece.

    request   i16 count | count x FETCH body
    answer    i32 size | i16 0 | count x (i32 size | i16 error | message set)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka2011.errors import InvalidRequest, Kafka2011Error
from kafka2011.wire.fetch import Bytes, FetchRequest, decode_fetch_response, read_fetch
from kafka2011.wire.fields import HEADER, I16, I32, error_of, frame

KEY = 2


@dataclass(frozen=True, slots=True)
class MultiFetchRequest:
    """Read from several partitions of one broker."""

    fetches: tuple[FetchRequest, ...]

    def encode(self) -> bytes:
        """The whole frame."""
        return frame(KEY, I16.pack(len(self.fetches)), *(one.body() for one in self.fetches))


def read_multifetch(data: bytes, pos: int) -> MultiFetchRequest:
    """Read the body at ``pos``."""
    (count,) = I16.unpack_from(data, pos)
    if count < 0:
        raise InvalidRequest(f"a multi-fetch of {count} requests")
    pos += 2
    fetches = []
    for _ in range(count):
        one, pos = read_fetch(data, pos)
        fetches.append(one)
    return MultiFetchRequest(tuple(fetches))


def encode_multifetch_header(sizes: Iterable[int]) -> bytes:
    """The head of the whole answer, for sub-answers that carry ``sizes`` bytes of messages each."""
    return HEADER.pack(2 + sum(6 + size for size in sizes), 0)


def decode_multifetch_response(body: Bytes, fetches: Sequence[FetchRequest]) -> list[Bytes | Kafka2011Error]:
    """The sub-answers in order, each its bytes or its error; one bad partition leaves the others readable."""
    if len(body) < 2:
        raise InvalidRequest(f"a multi-fetch answer of {len(body)} bytes")
    (code,) = I16.unpack_from(body)
    if code:
        raise error_of(code, "multi-fetch")
    answers: list[Bytes | Kafka2011Error] = []
    pos = 2
    for fetch in fetches:
        size = I32.unpack_from(body, pos)[0] if pos + 4 <= len(body) else -1
        if size < 2 or pos + 4 + size > len(body):
            raise InvalidRequest(f"a multi-fetch answer whose part {len(answers)} overruns it")
        try:
            answers.append(decode_fetch_response(body[pos + 4 : pos + 4 + size], fetch))
        except Kafka2011Error as error:
            answers.append(error)
        pos += 4 + size
    return answers
