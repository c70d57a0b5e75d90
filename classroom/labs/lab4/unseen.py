"""The tests of lab 4 that only the grader runs."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from classroom.labs.entries import message
from classroom.labs.lab import Bench, Failed, Tests, check, expect
from classroom.labs.lab4.seen import Server, fetch, partition
from consumers.simple import SimpleConsumer
from kafka2011.errors import WrongPartition
from kafka2011.wire.fetch import FetchRequest
from zk_registry.java import JavaNotFound, find_java

UNSEEN = Tests(seen=False)
_JAVA_S = 25.0
_LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%m%n
"""
_BIG = 24 << 20
_GROWTH = 12 << 20
"""How much more memory a server may take while it sends a file twice as large."""


@UNSEEN.add(points=10)
def any_fetch_from_a_log_that_grows(bench: Bench) -> None:
    """Whatever is asked for while files grow and new ones come, the answer is what the files hold."""
    directory, random = bench.directory(), bench.random
    log = [message(random.randbytes(random.randint(0, 40))) for _ in range(5)]
    whole = partition(directory, "a-topic-3", *log)
    bases = [sum(map(len, log[:i])) for i in range(len(log))]
    server = Server(bench, directory)
    with server.connect() as client:
        for _ in range(80):
            if random.random() < 0.3:
                data = message(random.randbytes(random.randint(0, 40)))
                if random.random() < 0.4:
                    bases.append(len(whole))
                with (directory / "a-topic-3" / f"{bases[-1]:020}.kafka").open("ab") as file:
                    file.write(data)
                whole += data
            offset, size = random.randint(0, len(whole)), random.choice((0, 1, 10, 100, 10_000))
            end = min([base for base in bases if base > offset] + [len(whole), offset + size])
            client.sendall(fetch("a-topic", 3, offset, size))
            expect(
                server.answer(client),
                (0, whole[offset:end]),
                f"a fetch of {size} bytes from {offset}, files at {bases}",
            )
        client.sendall(fetch("a-topic", 3, len(whole) + 1, 10) + fetch("a-topic", 3, -1, 10))
        expect(
            [server.answer(client) for _ in range(2)], [(1, b"")] * 2, "fetches behind the end and before the beginning"
        )
    (directory / "a-topic-3" / f"{0:020}.kafka").unlink()
    expect(server.ask("a-topic", 3, 0, 10), (1, b""), "a fetch of what retention has deleted")


@UNSEEN.add(points=8)
def requests_in_pieces(bench: Bench) -> None:
    """A request that comes byte by byte, or one and a half in one piece, is answered like any other."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", message(b"one") + message(b"two"))
    server = Server(bench, directory)
    with server.connect() as client:
        for byte in fetch("clicks", 0, 0, 100):
            client.sendall(bytes([byte]))
            time.sleep(0.002)  # so that the bytes arrive one by one
        expect(server.answer(client), (0, data), "a fetch that arrives byte by byte")
        three = fetch("clicks", 0, 12, 100) * 3
        cut = bench.random.randint(1, len(three) - 1)
        client.sendall(three[:cut])
        time.sleep(0.02)
        client.sendall(three[cut:])
        expect([server.answer(client) for _ in range(3)], [(0, data[12:])] * 3, f"three fetches cut after {cut} bytes")


@UNSEEN.add(points=10, limit_s=20.0)
def forty_readers(bench: Bench) -> None:
    """Forty connections at once, one silent, one that asks for much and does not read: the others are served."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", message(bench.random.randbytes(8 << 20)))
    small = partition(directory, "small-0", message(b"hello"))
    server = Server(bench, directory)
    clients = [server.connect() for _ in range(40)]
    clients[0].sendall(fetch("clicks", 0, 0, 10)[:7])
    clients[1].sendall(fetch("clicks", 0, 0, len(data)) * 2)
    for turn in range(3):
        for client in clients[2:]:
            client.sendall(fetch("small", 0, 0, 100))
        for client in clients[2:]:
            expect(server.answer(client), (0, small), f"a fetch of one of forty readers, turn {turn}")
    got = [server.answer(clients[1]) for _ in range(2)]
    check(got == [(0, data)] * 2, "the reader that did not read at first got other bytes than the file's")
    for client in clients:
        client.close()


@UNSEEN.add(points=12, limit_s=20.0)
def the_kernel_moves_the_bytes(bench: Bench) -> None:
    """By the kernel's own account the bytes went by sendfile: not through the process, and not through its memory."""
    directory = bench.directory()
    data = partition(directory, "clicks-0", message(bench.random.randbytes(_BIG)))
    server = Server(bench, directory)
    expect(server.ask("clicks", 0, 0, 1000), (0, data[:1000]), "a first fetch")
    before, peak = _account(server.student.pid), _peak_bytes(server.student.pid)
    error, got = server.ask("clicks", 0, 0, _BIG)
    check(
        (error, len(got)) == (0, _BIG) and data.startswith(got),
        f"a fetch of 24 MB gave error {error} and {len(got)} bytes",
    )
    after = _account(server.student.pid)
    if before is None or after is None:
        return  # no /proc on this system: the kernel does not tell
    moved, calls = after["wchar"] - before["wchar"], after["syscr"] - before["syscr"]
    check(
        moved >= _BIG,
        f"of {_BIG} bytes the kernel moved {moved} from the file to the socket; "
        "the others went through your program's memory",
    )
    check(calls < 600, f"{calls} calls for 24 MB; sendfile takes a range, not a piece")
    grown = _peak_bytes(server.student.pid) - peak
    check(grown < _GROWTH, f"your program took {grown >> 20} MB more memory while it sent a file of 24 MB")


def _account(pid: int) -> dict[str, int] | None:
    """What the kernel counted for a process. ``wchar`` grows with sendfile and write, not with send."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def _peak_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


@UNSEEN.add(points=6)
def rubbish_ends_one_connection(bench: Bench) -> None:
    """What is no fetch ends its connection without an answer; the others and the server live on."""
    scratch = bench.directory()
    directory = scratch / "data"
    directory.mkdir()
    data = partition(directory, "clicks-0", message(b"one"))
    partition(scratch, "secret-0", b"not yours")
    server = Server(bench, directory, scratch)
    good = server.connect()
    rubbish = {
        "kind 99": struct.pack(">IH", 20, 99) + bytes(18),
        "a size of 2 GB": b"\x7f\xff\xff\xff" + bytes(40),
        "a size of 3": b"\0\0\0\3\0\1\0",
        "a name longer than the request": struct.pack(">IHH", 20, 1, 500) + bytes(16),
        "a name that leads out of the directory": fetch("../secret", 0, 0, 100),
        "half a request": b"\0\0\0\x18\0\1",
    }
    for what, sent in rubbish.items():
        with server.connect() as client:
            client.sendall(sent)
            if what == "half a request":
                client.shutdown(socket.SHUT_WR)
            try:
                got = client.recv(100)
            except ConnectionResetError:
                got = b""
            except TimeoutError:
                raise Failed(f"{what}: the connection is still open") from None
            check(got == b"", f"{what} was answered with {got!r}; the connection should end")
        good.sendall(fetch("clicks", 0, 0, 100))
        expect(server.answer(good), (0, data), f"a fetch of another connection after {what}")
    good.close()


@UNSEEN.add(points=6, limit_s=40.0)
def a_client_of_2012(bench: Bench) -> None:
    """A consumer of Kafka 0.7 (its own code where that is installed, ours of the same bytes otherwise) reads it all."""
    directory = bench.directory()
    words = [f"message {bench.random.randint(0, 10**9)}" for _ in range(50)]
    half = [b"".join(message(word.encode()) for word in words[part : part + 25]) for part in (0, 25)]
    partition(directory, "clicks-0", *half)
    server = Server(bench, directory)
    library = os.environ.get("KAFKA07_LIB")
    try:
        got = _as_kafka07_reads(server, library, words[-1], directory) if library else _as_we_read(server)
    except JavaNotFound:
        got = _as_we_read(server)
    check(words == got, f"the client read {len(got)} of 50 messages, or other ones")


def _as_we_read(server: Server) -> list[str]:
    with SimpleConsumer("127.0.0.1", server.port, timeout_s=5.0) as consumer:
        got: list[str] = []
        offset = 0
        while True:
            asked = FetchRequest("clicks", 0, offset, 1 << 20)
            found, nothing = consumer.multifetch([asked, FetchRequest("views", 0, 0, 100)])
            check(isinstance(nothing, WrongPartition), f"a multifetch of an unknown topic gave {nothing!r}")
            if isinstance(found, Exception):
                raise found
            if not found:
                return got
            got += [one.payload.decode() for one in found]
            offset = found[-1].next_offset


def _as_kafka07_reads(server: Server, library: str, last: str, directory: Path) -> list[str]:
    """The simple consumer's shell of 0.7: it logs what it reads, for ever, so it is stopped after the last message."""
    settings = directory / "log4j.properties"
    settings.write_text(_LOG4J)
    command = [str(find_java()), "-Xmx96m", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{settings}"]
    command += ["-cp", f"{library}/*", "kafka.tools.SimpleConsumerShell", "--topic", "clicks", "--offset", "0"]
    command += ["--server", f"kafka://127.0.0.1:{server.port}", "--print-messages"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as shell:
        stop = threading.Timer(_JAVA_S, shell.kill)
        stop.start()
        try:
            found = []
            for line in shell.stdout or ():
                if line.startswith("consumed: "):
                    found.append(line.strip().removeprefix("consumed: "))
                if found[-1:] == [last]:
                    break
            return found
        finally:
            stop.cancel()
            shell.kill()
