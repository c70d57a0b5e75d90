"""The broker's commands as people get them wrong: one clear line, exit code 1 or 2, never a stack (§3, §3.1)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, encode_set
from tests.waiting import PATIENCE_S, until

COMMAND = [sys.executable, "-m", "kafka2011"]
MANY = 100_000
BYTES = b"\xff\xfe"
"""Not UTF-8: a word nobody can type, and every script can pass."""


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """Two partitions per topic; ``few`` holds three messages, ``many`` more than a pipe does."""
    options = {"log.flush.interval": 1, "num.partitions": 2, "produce.acks.enable": True}
    with BrokerProcess(options=options) as process:
        with BrokerConnection(process.host, process.port) as connection:
            connection.produce_acked("few", 0, encode_set([b"one", b"\x00\xff", b"three"]), AckLevel.FLUSHED)
            data = encode_set([b"%08d" % n for n in range(MANY)])
            connection.produce_acked("many", 0, data, AckLevel.FLUSHED)
        yield process


def run(*words: str | bytes | Path, stdin: bytes = b"", **more: object) -> subprocess.CompletedProcess[bytes]:
    options = {"input": stdin, "capture_output": True} | more
    return subprocess.run([*COMMAND, *words], timeout=2 * PATIENCE_S, check=False, **options)  # type: ignore[call-overload,no-any-return]


def failed(done: subprocess.CompletedProcess[bytes], code: int, sentence: str) -> None:
    """It said so in its last line, and nothing else went wrong."""
    text = done.stderr.decode(errors="replace")
    assert "Traceback" not in text
    assert done.returncode == code, text
    assert sentence in text.splitlines()[-1]
    if code == 1:
        assert text.splitlines()[-1].startswith("kafka2011: ")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["few", "-o", "5"], 1, "no message begins at offset 5 of few-0"),
        (["few", "-o", "999"], 1, "which holds 0 up to 40; start from 0 (smallest) or 40 (largest)"),
        (["few", "-o", "9" * 25], 2, "an offset has at most 19 digits"),
        (["few", "-o", "-" + "9" * 25], 2, "an offset has at most 19 digits"),
        (["few", "-o", "@" + "9" * 25], 2, "is neither ISO time"),
        (["few", "-o", "@yesterday"], 2, "is neither ISO time"),
        (["few", "-p", "9"], 1, "few-9: the broker has no such partition"),
        (["few", "-p", "9", "-o", "0"], 1, "few-9: the broker has no such partition"),
        (["few", "-p", "-1"], 2, "is not in the range"),
        (["few", "-p", "99999999999"], 2, "is not in the range"),
        (["few", "--max-bytes", "99999999999"], 2, "is not in the range"),
        (["a/b"], 1, "'a/b' cannot be a topic"),
        ([BYTES], 1, "cannot be a topic"),
        (["x" * 40_000], 1, "cannot be a topic"),
        (["few", "-b", "nohost.invalid"], 1, "cannot connect to a broker at nohost.invalid:9092"),
        (["few", "-b", "127.0.0.1:0"], 2, "is not HOST:PORT"),
        (["few", "-b", "[::1]:1"], 1, "cannot connect to a broker at ::1:1"),
    ],
)
def test_fetch_says_what_is_wrong(broker: BrokerProcess, words: list[str], code: int, sentence: str) -> None:
    """A bad offset, partition, topic or address is named, with what would be right where that is known (§3.1)."""
    failed(run("fetch", "-b", broker.address, "-e", *words), code, sentence)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["few", "--offset", "5"], 1, "no message can be read at offset 5 of few-0"),
        (["few", "--offset", "9" * 25], 2, "an offset has at most 19 digits"),
        (["few", "--offset", "begin", "-p", "9"], 1, "few-9: the broker has no such partition"),
        (["few", "--offset", "begin", "--timeout", "-1"], 2, "is not in the range"),
        (["a/b", "--offset", "begin"], 1, "'a/b' cannot be a topic"),
    ],
)
def test_consume_by_offset_says_what_is_wrong(
    broker: BrokerProcess, words: list[str], code: int, sentence: str
) -> None:
    """Reading by offset with the other command fails as clearly (§3.1)."""
    failed(run("consume", "-b", broker.address, "--timeout", "60", *words), code, sentence)


def test_a_fetch_smaller_than_a_message_grows(broker: BrokerProcess) -> None:
    """--max-bytes below a message's length, or below its very head, still reads it."""
    for size in ("1", "3", "4", "11"):
        done = run("fetch", "few", "-b", broker.address, "-n", "1", "--max-bytes", size)
        assert (done.returncode, done.stdout) == (0, b"one\n")


def test_bytes_of_any_kind_come_back(broker: BrokerProcess) -> None:
    """Payloads and formats that are not UTF-8 are written as they are, in JSON as base64."""
    there = ("fetch", "few", "-b", broker.address, "-e")
    assert run(*there).stdout == b"one\n\x00\xff\nthree\n"
    assert run(*there, "-n", "1", "-f", BYTES + b"%s\\n").stdout == BYTES + b"one\n"
    assert b'"payload_base64": "AP8="' in run(*there, "--json").stdout


@pytest.mark.parametrize(
    ("words", "stdin", "code", "sentence"),
    [
        (["a b"], b"x\n", 1, "'a b' cannot be a topic"),
        ([BYTES], b"x\n", 1, "cannot be a topic"),
        (["t", "-p", "99999999999"], b"x\n", 2, "is not in the range"),
        (["t", "--file", "no-such-file"], b"", 2, "No such file or directory"),
        (["t", "--file", "/"], b"", 2, "Is a directory"),
        (["t", "-b", "bad"], b"x\n", 1, "neither HOST:PORT"),
    ],
)
def test_produce_says_what_is_wrong(
    broker: BrokerProcess, words: list[str], stdin: bytes, code: int, sentence: str
) -> None:
    """What cannot be published is said, with the reason, and is a failure (§3)."""
    failed(run("produce", "-b", broker.address, *words, stdin=stdin), code, sentence)


def test_produce_waits_with_a_word_and_says_what_it_gave_up() -> None:
    """Issue 22 A1: a broker that is away is named at once, not after the last try; what is given up is counted."""
    done = run("produce", "t", "-b", "127.0.0.1:1", stdin=b"x\n")

    words = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert words[0] == "broker 0 at 127.0.0.1:1 cannot be reached; trying again for some seconds"
    assert words[-1].startswith("kafka2011: 1 of 1 message not delivered: cannot connect to a broker")


def test_a_line_too_long_is_named_and_those_before_it_are_sent(broker: BrokerProcess, tmp_path: Path) -> None:
    """A line over the largest message stops the input at its number; no line is cut, none before it is lost."""
    source = tmp_path / "lines"
    source.write_bytes(b"a\nb\n" + b"x" * 1_000_001 + b"\nc\n")
    there = ("-b", broker.address, "--acks", "flushed", "-p", "0")
    failed(run("produce", "long", *there, "--file", source), 1, f"line 3 of {source} is longer than max.message.size")
    failed(run("produce", "long", *there, stdin=b"x" * 3_000_000), 1, "line 1 of standard input is longer")
    whole = run("produce", "long", *there, stdin=b"y" * 1_000_000)

    assert whole.returncode == 0, whole.stderr
    assert run("fetch", "long", "-b", broker.address, "-e").stdout == b"a\nb\n" + b"y" * 1_000_000 + b"\n"


def test_nothing_to_publish_is_no_failure(broker: BrokerProcess) -> None:
    """Empty and closed standard input publish nothing, successfully."""
    closed = run("produce", "none", "-b", broker.address, preexec_fn=lambda: os.close(0), input=None)
    for done in (run("produce", "none", "-b", broker.address), closed):
        assert (done.returncode, b"0 messages sent" in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "fetch many",
        "fetch few",
        "log dump many-0",
        "log dump many-0 --hex",
        "log dump many-0 --json",
        "log salvage many-0 --lines -o -",
    ],
)
def test_a_reader_that_has_enough_ends_the_command(broker: BrokerProcess, words: str) -> None:
    """`… | head` is a normal end, with exit code 0 and no complaint, whatever is printed."""
    there = ["-b", broker.address] if words.startswith("fetch") else []
    command = [*COMMAND, *words.split(), *there]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=broker.log_dir) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() in (b"", b"3 messages of few-0\n")


def test_output_that_cannot_be_written_is_a_failure(broker: BrokerProcess) -> None:
    """A full disk behind standard output, or behind --out, is one line and exit code 1."""
    with open("/dev/full", "wb") as full:
        for words in (("fetch", "few", "-e", "-b", broker.address), ("log", "dump", "many-0")):
            done = run(*words, cwd=broker.log_dir, stdout=full, stderr=subprocess.PIPE, capture_output=False)
            failed(done, 1, "No space left on device")
    failed(run("log", "salvage", broker.log_dir / "many-0", "-o", "/dev/full"), 1, "No space left on device")
    failed(run("log", "salvage", broker.log_dir / "many-0", "-o", "/no/where"), 1, "/no/where: No such file")
    closed = run("fetch", "few", "-n", "1", "-b", broker.address, preexec_fn=lambda: os.close(1))
    assert (closed.returncode, closed.stderr) == (0, b"1 message of few-0\n")


def interrupted(words: list[str], ready: Callable[[], bool], stdin: bytes = b"") -> tuple[int, str]:
    """Exit code and stderr of a command that gets Ctrl-C when ``ready``."""
    with subprocess.Popen(
        [*COMMAND, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(stdin)
        process.stdin.flush()
        until(ready, "the command is at work")
        process.send_signal(signal.SIGINT)
        code = process.wait(PATIENCE_S)
        return code, process.stderr.read().decode()


def test_ctrl_c_ends_a_command_with_what_it_did(broker: BrokerProcess) -> None:
    """Ctrl-C: a fetch that waits ends well and counts; a produce sends what it has read, and says it was cut short."""

    def asked() -> int:
        requests = broker.state()["counters"]["requests"]
        return int(requests.get("fetch", 0))

    before = asked()
    code, text = interrupted(["fetch", "few", "-b", broker.address], lambda: asked() > before + 1)
    assert (code, text.split("\n", 1)[1]) == (0, "3 messages of few-0\n")

    words = ["produce", "cut", "-p", "0", "-b", broker.address]
    code, text = interrupted(words, lambda: "cut" in broker.state()["topics"], b"one\ntwo\nhalf a li")
    assert (code, text) == (
        1, "2 messages sent to cut in 1 request, 0 dropped\nkafka2011: interrupted before the end of the input\n"
    )  # fmt: skip


def test_salvage_never_writes_over_what_it_saves(broker: BrokerProcess, tmp_path: Path) -> None:
    """--out naming one of the partition's files, also through a link, is refused, and not a byte is changed."""
    segment = broker.log_dir / "many-0" / f"{0:020d}.kafka"
    before = segment.read_bytes()
    (tmp_path / "link").symlink_to(segment)
    for path, out in (
        (segment, segment),
        (segment.parent, segment),
        (segment.parent, tmp_path / "link"),
        (segment, segment.with_name(f"{7:020d}.kafka")),
    ):
        failed(run("log", "salvage", path, "-o", out), 2, "is, or looks like, one of the files to be saved")
    assert segment.read_bytes() == before
    assert os.listdir(segment.parent) == [segment.name]


def test_lines_that_were_one_message_are_told(tmp_path: Path) -> None:
    """salvage --lines says how many messages it had to break, since they come back as several."""
    (tmp_path / "0.kafka").write_bytes(encode_set([b"one", b"two\nlines"]))
    done = run("log", "salvage", tmp_path, "--lines", "-o", "-")

    assert done.stdout == b"one\ntwo\nlines\n"
    assert b"1 message with line breaks became several lines; without --lines they stay whole" in done.stderr
    assert b"line breaks" not in run("log", "salvage", tmp_path, "-o", tmp_path / "out").stderr


def test_files_that_are_no_segments_are_named(tmp_path: Path) -> None:
    """A device, a directory or a dangling link in place of a segment is one line; other partitions are still listed."""
    good, bad, link = (tmp_path / f"{name}-0" for name in ("good", "bad", "link"))
    for directory in (good, bad, link):
        directory.mkdir()
    (good / f"{0:020d}.kafka").write_bytes(encode_set([b"x"]))
    (bad / f"{0:020d}.kafka").mkdir()
    (link / f"{0:020d}.kafka").symlink_to("nowhere")

    failed(run("log", "dump", "/dev/null"), 1, "/dev/null is neither a segment file nor a partition's directory")
    failed(run("log", "verify", bad), 1, "Is a directory")
    failed(run("log", "dump", link), 1, "No such file or directory")
    failed(run("log", "dump", good, "--offset", "-1"), 2, "is not in the range")
    failed(run("log", "dump", tmp_path), 1, "name a partition's directory")
    listed = run("topics", "list", "--log-dir", tmp_path)
    assert listed.stdout.splitlines()[1:] == [b"good            1         1     11"]


def test_topics_say_who_does_not_answer(broker: BrokerProcess) -> None:
    """No broker, the wrong port, no such host: the address and the setting to look at."""
    for where, why in (
        ("127.0.0.1:1", "Connection refused"),
        (broker.address, "Remote end closed connection"),
        ("nohost.invalid:1", "not known"),
        ("[::1]:1", "http://[::1]:1/state"),
    ):
        done = run("topics", "list", "--admin", where)
        failed(done, 1, "was it started with --set admin.port=")
        assert why in done.stderr.decode()


def test_a_broker_that_cannot_start_says_which_setting(tmp_path: Path) -> None:
    """An address that is not ours, a file for a directory, a ready file nowhere: one line each, exit code 1."""
    (tmp_path / "file").touch()
    data = tmp_path / "data"
    for words, sentence in (
        (["--log-dir", data, "--set", "bind.address=192.0.2.1"], "no such address; see bind.address"),
        (["--log-dir", data, "--set", "bind.address=nohost.invalid"], "no such address; see bind.address"),
        (["--log-dir", tmp_path / "file"], "not a directory; choose another"),
        (["--log-dir", data, "--ready-file", tmp_path / "no" / "ready"], "cannot write the ready file"),
        (["--config", tmp_path], "cannot read the configuration file"),
        (["--set", "log.flush.intervall=1"], "there is no setting"),
    ):
        done = run("broker", "start", "--port", "0", "--log-level", "error", *words)
        failed(done, 1, sentence)
        assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def root_s_own() -> Iterator[Path]:
    """A directory that only root may enter, where everybody can see it."""
    with tempfile.TemporaryDirectory(prefix="kafka2011-rights-") as made:
        os.chmod(made, 0o755)
        data = Path(made) / "data"
        data.mkdir(mode=0o700)
        yield data


def become_nobody() -> None:
    os.setgid(65534)
    os.setuid(65534)


def test_missing_rights_are_named(root_s_own: Path) -> None:
    """Without the right to a directory or a port the command says which, and that is all."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody without rights")
    try:
        subprocess.run([*COMMAND, "--version"], preexec_fn=become_nobody, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"the user nobody may not run {sys.executable}: a Python below a directory closed to others")
    for words, code, sentence in (
        (["broker", "start", "--port", "0", "--log-dir", root_s_own], 2, "is not readable"),
        (["broker", "start", "--port", "0", "--log-dir", root_s_own / "new"], 1, "Permission denied; choose another"),
        (["broker", "start", "--port", "0", "--log-dir", root_s_own.parent / "new"], 1, "Permission denied"),
        (["log", "dump", root_s_own], 2, "is not readable"),
        (["topics", "list", "--log-dir", root_s_own], 2, "is not readable"),
    ):
        failed(run(*words, preexec_fn=become_nobody, cwd="/"), code, sentence)
