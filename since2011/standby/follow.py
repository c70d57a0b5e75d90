"""FOLLOW, key 101: what a standby asks its leader. **Not in 2011**; refused unless ``standby.member`` is set.

    request   string member | string disk | i64 epoch | i32 wait ms | i32 max bytes | i32 n | n positions
    position  string topic | i32 partition | i64 last epoch | i64 offset | i64 watermark | i64 log start
    answer    i32 size | i16 0 | i64 epoch | i32 n | n parts
    part      string topic | i32 partition | i64 parting epoch | i64 parting end | i64 watermark | i64 log start
              | i64 segment start | i64 epoch | i64 offset | i32 size | bytes of the log

One request for all partitions of the broker: ``offset`` says what the member has, which is also how the leader learns
it. A part is there only where there is something to tell. Where histories part, ``parting`` is the leader's answer to
"where did your last epoch end" (-2: they do not part), and no bytes come. ``segment start`` is of the file that the
bytes lie in: the member begins its files where the leader did. An answer waits until there is something, or for
``wait ms``. A leader of another epoch closes the connection.

Paper: §3.3, future work.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafka2011.errors import InvalidRequest
from kafka2011.types import TopicPartition
from kafka2011.wire.fields import HEADER, encode_string, frame, read_string

KEY = 101
NOT_PARTING = (-2, -2)
_ASKING = struct.Struct(">qiii")
_POSITION = struct.Struct(">iqqqq")
_ANSWER = struct.Struct(">qi")
_PART = struct.Struct(">iqqqqqqqi")


class Position(NamedTuple):
    """How far a member has come in one partition."""

    where: TopicPartition
    last_epoch: int
    offset: int
    watermark: int
    log_start: int


class FollowRequest(NamedTuple):
    """Everything a member asks for at once."""

    member: str
    disk: str
    epoch: int
    wait_ms: int
    max_bytes: int
    positions: tuple[Position, ...]

    def encode(self) -> bytes:
        """The whole frame."""
        parts = [encode_string(self.member), encode_string(self.disk)]
        parts.append(_ASKING.pack(self.epoch, self.wait_ms, self.max_bytes, len(self.positions)))
        for one in self.positions:
            numbers = _POSITION.pack(one.where.partition, one.last_epoch, one.offset, one.watermark, one.log_start)
            parts += (encode_string(one.where.topic), numbers)
        return frame(KEY, *parts)


class Part(NamedTuple):
    """What a leader tells of one partition."""

    where: TopicPartition
    parting: tuple[int, int]
    watermark: int
    log_start: int
    segment_start: int
    epoch: int
    offset: int
    size: int

    def head(self) -> bytes:
        """What stands before the bytes."""
        numbers = _PART.pack(self.where.partition, *self.parting, *self[2:])
        return encode_string(self.where.topic) + numbers


def read_follow(data: bytes, pos: int) -> FollowRequest:
    """Read the body at ``pos``."""
    member, pos = read_string(data, pos)
    disk, pos = read_string(data, pos)
    epoch, wait_ms, max_bytes, n = _ASKING.unpack_from(data, pos)
    pos += _ASKING.size
    if n < 0 or wait_ms < 0 or max_bytes < 0 or n > len(data):
        raise InvalidRequest(f"a member asks about {n} partitions, for {max_bytes} bytes within {wait_ms} ms")
    positions = []
    for _ in range(n):
        topic, pos = read_string(data, pos)
        partition, *numbers = _POSITION.unpack_from(data, pos)
        positions.append(Position(TopicPartition(topic, partition), *numbers))
        pos += _POSITION.size
    return FollowRequest(member, disk, epoch, wait_ms, max_bytes, tuple(positions))


def encode_head(epoch: int, parts: list[Part]) -> bytes:
    """What precedes the first part of an answer."""
    size = 2 + _ANSWER.size + sum(2 + len(part.where.topic.encode()) + _PART.size + part.size for part in parts)
    return HEADER.pack(size, 0) + _ANSWER.pack(epoch, len(parts))


def read_answer(body: memoryview) -> tuple[int, list[tuple[Part, memoryview]]]:
    """The leader's epoch, and its parts with their bytes; ``body`` begins with the error code."""
    epoch, n = _ANSWER.unpack_from(body, 2)
    pos = 2 + _ANSWER.size
    found = []
    for _ in range(n):
        size = int.from_bytes(body[pos : pos + 2], "big")
        topic = bytes(body[pos + 2 : pos + 2 + size]).decode()
        pos += 2 + size
        partition, parting_epoch, parting_end, *numbers = _PART.unpack_from(body, pos)
        part = Part(TopicPartition(topic, partition), (parting_epoch, parting_end), *numbers)
        pos += _PART.size
        data = body[pos : pos + part.size]
        if len(data) != part.size:
            raise InvalidRequest(f"an answer that ends {part.size - len(data)} bytes early")
        found.append((part, data))
        pos += part.size
    return epoch, found
