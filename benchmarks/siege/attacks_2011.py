"""Attacks on the 2011 port and on the admin port: the attack table (docs/reliability.md), and issue 19 B6, B10."""

from __future__ import annotations

import gzip
import http.client
import socket
import struct
import time

from benchmarks.siege.field import Broken, Field, Row
from kafka2011.wire import FetchRequest, MultiFetchRequest, ProduceRequest, crc32, encode_set

HELLO = encode_set([b"hello"])
SIZES = ("7fffffff", "80000000", "ffffffff", "00000000", "00000001")
STRANGERS = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    bytes.fromhex("1603010200010001fc0303") + bytes(500),
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b'{"a": 1}\n' * 10,
    bytes(range(255, 0, -1)) * 20,
)
NAMES = ("..", "../../x", "a/b", "a\0b", "a\nINFO fake", "…", "a" * 201, "<img src=x>", "$(id)", "%n%n", "")


def wrapper(payload: bytes, attributes: int = 1) -> bytes:
    """A compressed message of 2011 around ``payload``, whatever that is."""
    return struct.pack(">iBBI", 6 + len(payload), 1, attributes, crc32(payload)) + payload


def nothing(field: Field) -> None:
    """No attack: what a bystander waits on this machine anyway."""
    del field
    time.sleep(3)


def impossible_sizes(field: Field) -> None:
    """N1: sizes that cannot be, a hundred of each."""
    for _ in range(100):
        for size in SIZES:
            field.raw().send(bytes.fromhex(size))
        field.let_go()


def half_requests(field: Field) -> None:
    """N2, §4.1: two hundred connections that send half a request of a megabyte and stop."""
    frame = ProduceRequest("half", 0, encode_set([b"x" * 900_000])).encode()
    for _ in range(200):
        field.raw().socket.send(frame[:450_000])
    time.sleep(2)


def come_and_go(field: Field) -> None:
    """N3: two thousand connections that close or reset at once."""
    for k in range(2000):
        client = field.raw()
        if k % 2:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        if not k % 100:
            field.let_go()


def never_read(field: Field) -> None:
    """N4: twenty clients ask two thousand times for 300 KB each and read nothing."""
    writer = field.raw()
    for _ in range(3):
        writer.send(ProduceRequest("full", 0, encode_set([b"x" * 990] * 1000)).encode())
    frames = FetchRequest("full", 0, 0, 300 * 1024).encode() * 2000
    for _ in range(20):
        reader = field.raw(receive_buffer=4096)
        reader.socket.setblocking(False)
        try:
            reader.socket.send(frames)
        except BlockingIOError:
            pass
    time.sleep(2)


def strangers(field: Field) -> None:
    """N5: other protocols, and noise, two hundred times."""
    for _ in range(40):
        for data in STRANGERS:
            field.raw().send(data)
        field.let_go()


def edges(field: Field) -> None:
    """N6: keys, lengths, partitions, offsets and sizes at their edges."""
    name = struct.pack(">h", 1) + b"t"
    bodies = [struct.pack(">h", key) + name for key in (-1, 5, 32767, 0, 1, 2, 3, 4, 100)]
    bodies += [struct.pack(">hh", key, size) + b"x" * 20 for key in (0, 1, 4) for size in (-1, 0, 32767)]
    bodies += [
        struct.pack(">h", 1) + name + struct.pack(">iqi", partition, offset, size)
        for partition in (-1, 0, 2**31 - 1)
        for offset in (-1, 0, 2**63 - 1, -(2**63))
        for size in (0, -1, 10)
    ]
    for _ in range(10):
        for body in bodies:
            field.raw().send(struct.pack(">i", len(body)) + body)
        field.let_go()


def largest_multifetch(field: Field) -> None:
    """N6: 32,767 fetches in one request."""
    field.raw().produce("t", b"hello")
    client = field.raw()
    client.send(MultiFetchRequest((FetchRequest("t", 0, 0, 50),) * 32767).encode())
    client.reply()


def flipped_bits(field: Field) -> None:
    """M2: every byte of a message flipped; none may be stored."""
    for position in range(4, len(HELLO)):
        bad = bytearray(HELLO)
        bad[position] ^= 2
        field.raw().send(ProduceRequest("flipped", 0, bytes(bad)).encode())
    if field.raw().offsets("flipped") != [0]:
        raise Broken("a damaged message was stored")


def bombs(field: Field) -> None:
    """M3: bombs in bombs, cut and padded wrappers, a million nothings, twenty times."""
    bomb = gzip.compress(encode_set([bytes(1 << 19)] * 64), 9)
    payloads = (bomb, gzip.compress(wrapper(bomb), 9), bomb[:-20], gzip.compress(HELLO) + b"x", b"\x1f\x8b\x08", b"",
                gzip.compress(encode_set([b""] * 600_000), 1))  # fmt: skip
    for _ in range(20):
        for payload in payloads:
            field.raw().send(ProduceRequest("bombs", 0, wrapper(payload)).encode())
        field.let_go()


def many_bombs_in_one_request(field: Field) -> None:
    """B1, on this port: eight hundred wrappers of a kilobyte, each a megabyte inside, in one request."""
    one = wrapper(gzip.compress(encode_set([bytes(900_000)]), 9))
    for _ in range(3):
        field.raw().send(ProduceRequest("bombs", 0, one * 800).encode())
    field.raw().offsets("bombs")


def empty_messages(field: Field) -> None:
    """M5: a million empty messages in ten requests."""
    client = field.raw()
    for _ in range(10):
        client.send(ProduceRequest("empty", 0, encode_set([b""] * 100_000)).encode())
    client.offsets("empty")


def harmful_names(field: Field) -> None:
    """T1, T2: names that could leave the directory or be taken for code never become a file."""
    before = sorted(path.name for path in field.broker.log_dir.iterdir())
    for name in NAMES:
        field.raw().send(ProduceRequest(name, 0, HELLO).encode())
        field.raw().fetch(name)
    if sorted(path.name for path in field.broker.log_dir.iterdir()) != before:
        raise Broken("a file was made")


def topics_without_end(field: Field) -> None:
    """T4, B3, on this port: three thousand topics by produce."""
    client = field.raw()
    for k in range(3000):
        client.send(ProduceRequest(f"t{k}", 0, HELLO).encode())
    client.offsets("t0")


def lock_out(field: Field) -> None:
    """B6: 998 quiet connections from three addresses, on both ports; newcomers must be served all the while."""
    quiet = []
    for k in range(998):
        port = field.broker.port if k % 2 else field.broker.modern_port
        try:
            quiet.append(socket.create_connection((field.broker.host, port or 0), 5, (f"127.0.0.{2 + k % 3}", 0)))
        except OSError:
            pass  # refused: that is what limits are for
    time.sleep(3)
    for connection in quiet:
        connection.close()


def bad_event_numbers(field: Field) -> None:
    """B10: /events?since= with five thousand digits or bytes that are no text is answered, not with 500."""
    for since in (b"9" * 5000, b"%ff%fe", b"\xff", b"-1", b"1e9", b""):
        connection = http.client.HTTPConnection("127.0.0.1", field.broker.admin_port or 0, timeout=30)
        connection.putrequest("GET", "/events?once=1")
        connection.putheader("Last-Event-ID", since.decode("latin-1"))
        connection.endheaders()
        statuses = [connection.getresponse().status]
        connection.close()
        with socket.create_connection(("127.0.0.1", field.broker.admin_port or 0), 30) as plain:
            plain.sendall(b"GET /events?once=1&since=" + since + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            statuses.append(int(plain.recv(64).split()[1]))
        if max(statuses) >= 500:
            raise Broken(f"since={since[:8]!r} was answered {statuses}")


ROWS = (
    Row("nothing is done", "for comparison", nothing),
    Row("N1 sizes that cannot be", "attack table", impossible_sizes),
    Row("N2 two hundred half requests", "attack table", half_requests),
    Row("N3 two thousand connections come and go", "attack table", come_and_go),
    Row("N4 twenty who ask and never read", "attack table", never_read),
    Row("N5 other protocols", "attack table", strangers),
    Row("N6 values at the edges", "attack table", edges),
    Row("N6 the largest multi-fetch", "attack table", largest_multifetch),
    Row("M2 flipped bits", "attack table", flipped_bits),
    Row("M3 bombs and cut wrappers", "attack table", bombs),
    Row("B1 many bombs in one 2011 request", "issue 19 B1", many_bombs_in_one_request),
    Row("M5 a million empty messages", "attack table", empty_messages),
    Row("T1 names that could do harm", "attack table", harmful_names),
    Row("T4 three thousand topics by produce", "attack table", topics_without_end),
    Row("B6 998 quiet connections", "issue 19 B6", lock_out),
    Row("B10 event numbers that are none", "issue 19 B10", bad_event_numbers),
)
