"""The tests of lab 1 that students see. They run in the grader's process and call your program."""

from __future__ import annotations

import struct
import zlib

from classroom.labs.lab import Bench, Tests, expect, refused

SEEN = Tests(seen=True)
_WORDS = [b"one", b"two", b"three"]


def message(payload: bytes) -> bytes:
    """A message of magic 0, as the hand-out describes it."""
    return struct.pack(">IBI", 5 + len(payload), 0, zlib.crc32(payload)) + payload


@SEEN.add(points=8, hint="struct.pack('>I', n) gives four bytes, the most significant first. CRC-32 is zlib.crc32.")
def one_message_by_hand(bench: Bench) -> None:
    """encode(b"hello") gives these 14 bytes: size 10, magic 0, CRC 3610a686, the payload."""
    with bench.student() as student:
        expect(student.encode(b"hello"), bytes.fromhex("0000000a 00 3610a686 68656c6c6f"), "encode(b'hello')")


@SEEN.add(points=8, hint="b''.join(...) of the encoded messages; no count in front, no separator.")
def a_set_is_its_messages_end_to_end(bench: Bench) -> None:
    """encode_set() puts the messages one after the other, with nothing in between."""
    with bench.student() as student:
        expect(student.encode_set([]), b"", "encode_set([])")
        expect(student.encode_set(_WORDS), b"".join(map(message, _WORDS)), f"encode_set({_WORDS})")


@SEEN.add(points=10, hint="next = offset + 4 + size. The first message of data is at offset start, not at 0.")
def offsets_by_arithmetic(bench: Bench) -> None:
    """decode_set() gives each payload with the offset of the next message: this one's plus its length."""
    data = b"".join(map(message, _WORDS))
    with bench.student() as student:
        expect(
            student.decode_set(data, 0), [[b"one", 12], [b"two", 24], [b"three", 38]], "decode_set of three messages"
        )
        expect(
            student.decode_set(data, 1000)[-1],
            [b"three", 1038],
            "the last of the same, when data begins at offset 1000",
        )


@SEEN.add(
    points=10,
    hint="Before reading a field, ask whether all its bytes are there. A missing byte ends the walk; it is no damage.",
)
def a_torn_tail_is_left_out(bench: Bench) -> None:
    """A fetch ends anywhere: what is not whole is left out by decode_set() and not counted by intact()."""
    data = b"".join(map(message, _WORDS))
    with bench.student() as student:
        expect(
            student.decode_set(data[:-1], 0), [[b"one", 12], [b"two", 24]], "decode_set of data without its last byte"
        )
        expect(student.intact(data[:-1]), 24, "intact(data without its last byte)")
        expect(student.intact(data), 38, "intact(data)")


@SEEN.add(
    points=10, hint="Compare zlib.crc32(payload) with the field. Damaged takes the offset of the message that is wrong."
)
def a_flipped_bit_is_found(bench: Bench) -> None:
    """A payload that does not fit its CRC raises Damaged with the offset of that message; intact() ends before it."""
    data = bytearray(b"".join(map(message, _WORDS)))
    data[22] ^= 1
    with bench.student() as student:
        error = refused(
            lambda: student.decode_set(bytes(data), 100), "Damaged", "decode_set with a changed bit in 'two'"
        )
        expect(error.values, (112,), "the offset in Damaged")
        expect(student.intact(bytes(data)), 12, "intact(data with a changed bit in 'two')")
