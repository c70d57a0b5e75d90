"""The tests of lab 1 that only the grader runs."""

from __future__ import annotations

import gzip
import struct
import zlib

from classroom.labs.lab import Bench, Tests, check, chunks, expect, refused, shown
from classroom.labs.lab1.seen import message
from classroom.labs.sandbox import Sandbox, StudentError

UNSEEN = Tests(seen=False)
_LIMIT = 1 << 20


def newer(payload: bytes, attributes: int = 0) -> bytes:
    """A message of magic 1."""
    return struct.pack(">IBBI", 6 + len(payload), 1, attributes, zlib.crc32(payload)) + payload


def wrapper(data: bytes) -> bytes:
    """A gzip wrapper around a message set."""
    return newer(gzip.compress(data, mtime=0), 1)


@UNSEEN.add(points=8)
def any_payload(bench: Bench) -> None:
    """Empty, large and arbitrary payloads go in and come out as they were."""
    payloads = [b"", bytes(range(256)), bench.random.randbytes(100_000), *chunks(bench.random, range(40), 30)]
    with bench.student() as student:
        data = student.encode_set(payloads)
        expect(data, b"".join(map(message, payloads)), "encode_set of an empty, a large and 31 other payloads")
        expect(
            [payload for payload, _ in student.decode_set(data, 7)], payloads, "the payloads that decode_set gives back"
        )


@UNSEEN.add(points=10)
def cut_at_every_byte(bench: Bench) -> None:
    """Wherever a fetch ends, the whole messages before that place come out, and nothing else."""
    payloads = list(chunks(bench.random, range(20), 8))
    data = b"".join(map(message, payloads))
    ends = [0]
    for payload in payloads:
        ends.append(ends[-1] + 9 + len(payload))
    with bench.student() as student:
        for cut in range(len(data) + 1):
            whole = max(i for i, end in enumerate(ends) if end <= cut)
            expect(student.intact(data[:cut]), ends[whole], f"intact of a set cut after {cut} bytes")
            wanted = [[payload, 50 + end] for payload, end in zip(payloads, ends[1:], strict=True)][:whole]
            expect(student.decode_set(data[:cut], 50), wanted, f"decode_set of a set cut after {cut} bytes")


@UNSEEN.add(points=12)
def every_bit_flipped(bench: Bench) -> None:
    """Whichever bit is flipped, no wrong payload comes out: Damaged, or (in a size) the message is left out."""
    before, payload, after = (bench.random.randbytes(n) for n in (5, bench.random.randint(6, 12), 3))
    data = message(before) + message(payload) + message(after)
    at, size = 14, 9 + len(payload)
    with bench.student() as student:
        for bit in range(8 * size):
            spoilt = bytearray(data)
            spoilt[at + bit // 8] ^= 1 << bit % 8
            where = f"bit {bit % 8} of byte {bit // 8} of a message"
            expect(student.intact(bytes(spoilt)), at, f"intact with {where} flipped")
            _no_lies(student, bytes(spoilt), where, before, in_size=bit < 32)


def _no_lies(student: Sandbox, spoilt: bytes, where: str, before: bytes, *, in_size: bool) -> None:
    try:
        got = student.decode_set(spoilt, 0)
    except StudentError as error:
        check(error.is_a("Damaged"), f"decode_set with {where} flipped should raise Damaged; it raised {error}")
        expect(error.values, (14,), f"the offset in Damaged with {where} flipped")
        return
    check(in_size, f"decode_set with {where} flipped should raise Damaged; it gave {shown(got)}")
    expect(got, [[before, 14]], f"decode_set with {where} flipped (a size that is too large leaves the rest out)")


@UNSEEN.add(points=8)
def both_magics(bench: Bench) -> None:
    """Messages of magic 0 and 1 stand in one set; any other magic, and unknown attributes, are damage."""
    payloads = list(chunks(bench.random, range(1, 30), 12))
    made = [bench.random.choice((message, newer))(payload) for payload in payloads[:-2]]
    made += [newer(payloads[-2]), message(payloads[-1])]
    data, at, wanted = b"".join(made), 0, []
    for payload, entry in zip(payloads, made, strict=True):
        at += len(entry)
        wanted.append([payload, at])
    with bench.student() as student:
        expect(student.decode_set(data, 0), wanted, "decode_set of a set with messages of magic 0 and magic 1")
        for name, odd in (("magic 2", b"\0\0\0\6\2" + bytes(5)), ("attributes 9", newer(b"x", 9))):
            error = refused(lambda odd=odd: student.decode_set(data + odd, 0), "Damaged", f"decode_set with {name}")  # type: ignore[misc]
            expect(error.values, (len(data),), f"the offset in Damaged for {name}")
            expect(student.intact(data + odd), len(data), f"intact with {name} at the end")


@UNSEEN.add(points=8)
def sizes_that_cannot_be(bench: Bench) -> None:
    """A size too small for its own fields is damage; one that is larger than the data is an unfinished message."""
    good = message(bench.random.randbytes(4))
    with bench.student() as student:
        for size in (0, 1, 4, 0xFFFFFFFF, 0x80000000):
            data = good + struct.pack(">I", size) + bytes(40)
            what = f"a message whose size field is {size:#010x}"
            if size < 5:
                refused(lambda data=data: student.decode_set(data, 0), "Damaged", f"decode_set with {what}")  # type: ignore[misc]
            expect(student.intact(data), len(good), f"intact with {what}")
        five_of_magic_1 = good + struct.pack(">IB", 5, 1) + bytes(40)
        refused(lambda: student.decode_set(five_of_magic_1, 0), "Damaged", "decode_set with size 5 and magic 1")
        huge = good + struct.pack(">I", 0x7FFFFFFF) + bytes(40)
        expect(len(student.decode_set(huge, 0)), 1, "how many messages decode_set finds before a size of 2 GB")


@UNSEEN.add(points=5)
def a_compressed_set(bench: Bench) -> None:
    """The messages of a gzip wrapper come out with the wrapper's next offset; a wrapper around rubbish is damage."""
    inner = list(chunks(bench.random, range(30), 5))
    packed = wrapper(b"".join(map(message, inner)))
    data = message(b"a") + packed + message(b"z")
    with bench.student() as student:
        wanted = [[b"a", 10], *[[payload, 10 + len(packed)] for payload in inner], [b"z", 20 + len(packed)]]
        expect(student.decode_set(data, 0), wanted, "decode_set with a compressed set between two messages")
        for name, odd in (
            ("not gzip", newer(b"no gzip at all", 1)),
            ("around half a message", wrapper(message(b"half")[:-2])),
            ("around a damaged message", wrapper(message(b"half")[:-1] + b"F")),
        ):
            refused(lambda odd=odd: student.decode_set(odd, 0), "Damaged", f"decode_set of a wrapper {name}")  # type: ignore[misc]
            expect(student.intact(odd), 0, f"intact of a wrapper {name}")


def _bomb(megabytes: int) -> bytes:
    """A gzip stream of that many megabytes of zeros: one flushed block of it, again and again."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    first, again = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * (megabytes - 1) + packer.flush()


@UNSEEN.add(points=3)
def a_bomb(bench: Bench) -> None:
    """A wrapper that inflates beyond a megabyte is damage, found without inflating all of it."""
    fits, bomb = wrapper(message(bytes(_LIMIT - 9))), newer(_bomb(600), 1)
    with bench.student() as student:
        expect(len(student.decode_set(fits, 0)), 1, "messages in a wrapper of exactly one megabyte")
        refused(lambda: student.decode_set(bomb, 0), "Damaged", "decode_set of 600 KB that inflate to 600 MB")
