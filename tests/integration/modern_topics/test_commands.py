"""``kafka2011 produce`` and ``consume`` on modern topics, with the habits of kcat (issue 25, point 7)."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from consumers.cli.consume import consume
from kafka2011.testing import BrokerProcess
from since2011.cli.produce import produce


def run(command: object, broker: BrokerProcess, *words: str, given: str = "") -> Result:
    return CliRunner().invoke(command, [*words, "-m", f"127.0.0.1:{broker.modern_port}"], input=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_times_go_there_and_back(broker: BrokerProcess, topic: str, codec: str) -> None:
    """Issue 25, point 7: -K, -H, -T and -Z write what %k, %h, %T and %S show."""
    words = ("-K", ":", "-H", "source=web", "-H", "n=1", "-T", "1700000000123", "-Z", "--codec", codec)
    sent = run(produce, broker, topic, *words, given="a:one\nb:two:2\nc:\nwithout\n")
    shown = run(consume, broker, topic, "--from-beginning", "-n", "4", "-f", r"%o %K %k %T %h %S %s\n")

    assert sent.exit_code == 0, sent.output
    assert shown.stdout.splitlines() == [
        "0 1 a 1700000000123 source=web,n=1 3 one",
        "1 1 b 1700000000123 source=web,n=1 5 two:2",
        "2 1 c 1700000000123 source=web,n=1 -1 ",
        "3 -1  1700000000123 source=web,n=1 7 without",
    ]


def test_where_to_begin(broker: BrokerProcess, topic: str) -> None:
    """Issue 25, point 7: begin, end, an offset, so many before the end, and a time."""
    for n in range(4):
        assert run(produce, broker, topic, "-T", str(1_700_000_000_000 + n), given=f"v{n}\n").exit_code == 0
    found = {
        where: run(consume, broker, topic, "-o", where, "--timeout", "0.5").stdout.split()
        for where in ("begin", "2", "-1", "@1700000000003", "@1800000000000", "end")
    }

    assert found == {
        "begin": ["v0", "v1", "v2", "v3"], "2": ["v2", "v3"], "-1": ["v3"], "@1700000000003": ["v3"],
        "@1800000000000": [], "end": [],
    }  # fmt: skip


def test_json_has_everything(broker: BrokerProcess, topic: str) -> None:
    """Issue 25, point 7: one object per record; what is not text comes in base64."""
    run(produce, broker, topic, "-K", ":", "-H", "h=x", "-T", "5", given="k:v\n")
    (line,) = run(consume, broker, topic, "--from-beginning", "-n", "1", "--json").stdout.splitlines()

    assert json.loads(line) == {
        "topic": topic, "partition": 0, "offset": 0, "timestamp": 5, "key": "k", "value": "v",
        "headers": [{"name": "h", "value": "x"}],
    }  # fmt: skip


def test_a_key_always_goes_to_its_partition(topic: str) -> None:
    """Sheet §14: murmur2 of the key, so that the same key is read in order."""
    with BrokerProcess(options={"modern.port": 0, "num.partitions": 4}) as broker:
        lines = "".join(f"k{n % 10}:{n}\n" for n in range(100))
        assert run(produce, broker, topic, "-K", ":", given=lines).exit_code == 0
        shown = run(consume, broker, topic, "--from-beginning", "-n", "100", "-f", r"%k %p\n").stdout.split("\n")

    places = {tuple(line.split()) for line in shown if line}
    assert len(places) == 10 and len({partition for _, partition in places}) > 1


def test_a_group_goes_on_where_it_stopped(broker: BrokerProcess, topic: str) -> None:
    """With --group the offsets are the group's: the next command prints what comes after (issue 28, point 4)."""
    produced = [f"r{number}" for number in range(10)]
    run(produce, broker, topic, given="".join(f"{one}\n" for one in produced))
    first = run(consume, broker, topic, "-g", f"g-{topic}", "-n", "4").stdout.split()
    second = run(consume, broker, topic, "-g", f"g-{topic}", "-n", "6").stdout.split()

    assert len(first) == 4 and sorted(first + second) == sorted(produced)


def test_a_producers_settings(broker: BrokerProcess, topic: str) -> None:
    """Issue 28.3: -X takes every setting of today's producer by its name; what cannot be is named at once."""
    sent = run(produce, broker, topic, "-X", "acks=0", "-X", "linger.ms=0", "-X", "batch.size=0", given="a\nb\n")
    wrong = run(produce, broker, topic, "-X", "enable.idempotence=true", "-X", "acks=1", given="c\n")

    assert "2 records sent" in sent.output and "not acknowledged" in sent.output
    assert wrong.exit_code == 1 and "acks must be all" in wrong.output
    shown = run(consume, broker, topic, "--from-beginning", "-n", "2", "--timeout", "30").stdout
    assert shown.split() == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "words", "sentence"),
    [
        (produce, ("t", "-K", ":"), "-K, -H, -T, -X and -Z need --modern"),
        (produce, ("t", "--codec", "zstd"), "needs --modern"),
        (produce, ("t", "-m", "127.0.0.1:1", "-H", "x"), "NAME=VALUE"),
        (produce, ("t", "-m", "127.0.0.1:1", "--acks", "flushed"), "not with --modern"),
        (produce, ("t", "-m", "127.0.0.1:1", "-X", "linger"), "NAME=VALUE"),
        (consume, ("t", "-K", ":"), "need --modern"),
        (consume, ("t", "-g", "g", "-p", "0", "-m", "127.0.0.1:1"), "no -p and no -o with --group"),
        (consume, ("t", "-m", "127.0.0.1:1", "-f", "%y"), "means nothing"),
        (produce, ("t", "-m", "127.0.0.1:1"), "cannot reach the modern port"),
        (consume, ("t", "-m", "127.0.0.1:1"), "cannot reach the modern port"),
    ],
)
def test_wrong_use_says_what_is_right(command: object, words: tuple[str, ...], sentence: str) -> None:
    """Errors say what happened and what to do."""
    found = CliRunner().invoke(command, list(words), input="x\n")  # type: ignore[arg-type]

    assert found.exit_code != 0 and sentence in found.output
