"""Settings: where they come from, what is refused, and that the manual is true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka2011.broker.plugins import SWITCHES, all_settings
from kafka2011.cli.main import kafka2011
from kafka2011.config import BROKER_SETTINGS, Setting, load_config, manual_row, read_properties, sample
from kafka2011.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]


def test_flags_over_environment_over_file(tmp_path: Path) -> None:
    """A flag beats the environment, which beats the file, which beats the default; each value knows its origin."""
    file = tmp_path / "server.properties"
    file.write_text("# a comment\nlog.flush.interval=1\nnum.partitions=2\nport=1111\n")

    config = load_config(
        file,
        {"KAFKA2011_NUM_PARTITIONS": "3", "KAFKA2011_PORT": "2222", "HOME": "/root"},
        {"port": "3333"},
    )

    assert [config[n] for n in ("log.flush.interval", "num.partitions", "port", "brokerid")] == [1, 3, 3333, 0]
    assert config.origin("log.flush.interval") == f"{file}:2"
    assert config.origin("num.partitions") == "KAFKA2011_NUM_PARTITIONS"
    assert config.origin("port") == "flag"
    assert config.origin("brokerid") == "default"


def test_the_file_shipped_with_0_7_is_accepted(tmp_path: Path) -> None:
    """The keys of a 0.7 server.properties are known here, those without effect are said (docs/configuration.md)."""
    file = tmp_path / "server.properties"
    file.write_text(
        "brokerid=0\nhostname=host1\nport=9092\nnum.threads=8\nsocket.send.buffer=1048576\n"
        "socket.receive.buffer=1048576\nmax.socket.request.bytes=104857600\nlog.dir=/tmp/kafka-logs\n"
        "num.partitions=1\ntopic.partition.count.map=a:3, b:4\nlog.flush.interval=10000\n"
        "log.default.flush.interval.ms=1000\nlog.default.flush.scheduler.interval.ms=1000\nlog.retention.hours=168\n"
        "log.retention.size=1073741824\nlog.file.size=536870912\nlog.cleanup.interval.mins=1\nenable.zookeeper=true\n"
        "zk.connect=localhost:2181\nmonitoring.period.secs=600\nmax.message.size=1000000\n"
        "topic.flush.intervals.ms=a:1000\ntopic.log.retention.hours=a:1\nlog.roll.hours=168\n"
    )

    config = load_config(file)

    assert config["topic.partition.count.map"] == {"a": 3, "b": 4}
    assert config["log.default.flush.interval.ms"] == 1000
    assert config.notices == (
        f"monitoring.period.secs ({file}:20) has no effect: rates are computed by whoever reads /metrics",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("log.flush.intervall=1", [":1:", "no setting 'log.flush.intervall'", "did you mean log.flush.interval?"]),
        ("\n\nnum.partitons=1", [":3:", "did you mean num.partitions?"]),
        ("port=70000", ["port=70000", "at most 65535"]),
        ("port=ninety", ["whole number"]),
        ("log.flush.interval=0", ["at least 1"]),
        ("enable.zookeeper=yes", ["true or false"]),
        ("topic.partition.count.map=a", ["'a' is not topic:number"]),
        ("topic.partition.count.map=a:0", ["at least 1"]),
        ("log.corrupt.policy=ignore", ["offline, truncate"]),
        ("log.dir=", ["must not be empty"]),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    """An unknown name is refused with the nearest one, an impossible value with what is possible, and where."""
    file = tmp_path / "f"
    file.write_text(text + "\n")

    with pytest.raises(ConfigError) as error:
        load_config(file)

    assert all(word in str(error.value) for word in [str(file), *words]), str(error.value)


def test_a_slip_in_a_variable_is_refused_and_strangers_are_not() -> None:
    """A variable that nearly names a setting is refused; others with the prefix are somebody else's."""
    load_config(None, {"KAFKA2011_BROKER": "x:1", "KAFKA2011_SOMETHING": "1", "KAFKA2011_FAILPOINTS": ""})

    with pytest.raises(ConfigError, match="did you mean KAFKA2011_LOG_FLUSH_INTERVAL"):
        load_config(None, {"KAFKA2011_LOG_FLUSH_INTREVAL": "1"})


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    """A configuration file that cannot be read is an error that names it."""
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*nowhere"):
        load_config(tmp_path / "nowhere")


def test_properties_as_java_reads_them() -> None:
    """Comments, separators, continuation lines and escapes of a Java properties file."""
    text = "# c\n! c\na=1\nb : 2\nc 3\n  d  =  x \\\n    y\ne\nf=\\u0041\\t\\\\\ng\\=h=i\n"

    assert list(read_properties(text)) == [
        (3, "a", "1"),
        (4, "b", "2"),
        (5, "c", "3"),
        (6, "d", "x y"),
        (8, "e", ""),
        (9, "f", "A\t\\"),
        (10, "g=h", "i"),
    ]


def test_one_setting_may_follow_another() -> None:
    """log.default.flush.interval.ms is the scheduler's interval unless set (docs/log.md)."""
    config = load_config(flags={"log.default.flush.scheduler.interval.ms": "250"})

    assert config.integer("log.default.flush.interval.ms") == 250


def test_settings_of_plug_ins_are_settings() -> None:
    """A plug-in's settings are loaded, checked and shown like the broker's own."""
    extra = Setting("zk.sessiontimeout.ms", int, 6000, "ms", "Session timeout.", "zookeeper", minimum=1)

    config = load_config(flags={"zk.sessiontimeout.ms": "500"}, extra_settings=[extra])

    assert config["zk.sessiontimeout.ms"] == 500
    with pytest.raises(ConfigError, match="at least 1 ms"):
        load_config(flags={"zk.sessiontimeout.ms": "0"}, extra_settings=[extra])


def test_the_sample_is_a_legal_file_of_defaults(tmp_path: Path) -> None:
    """The sample file, with every # before a name removed, is read back as exactly the defaults."""
    file = tmp_path / "sample"
    text = sample()
    file.write_text("\n".join(line[1:] if line[1:2].isalpha() else line for line in text.split("\n")))

    config = load_config(file)

    assert {s.name: config[s.name] for s in BROKER_SETTINGS if s.inherit is None} == {
        s.name: load_config()[s.name] for s in BROKER_SETTINGS if s.inherit is None
    }
    assert all(f"#{s.name}=" in text for s in BROKER_SETTINGS)


def test_the_manual_holds_every_setting_as_it_is() -> None:
    """docs/configuration.md has the row of every setting, the broker's own word for word (make docs)."""
    page = (ROOT / "docs" / "configuration.md").read_text().splitlines()
    switches = {name for name, _ in SWITCHES.values()} | {"enable.zookeeper"}
    own = [setting for setting in BROKER_SETTINGS if setting.name not in switches]

    assert [setting.name for setting in own if manual_row(setting) not in page] == []
    assert [s.name for s in all_settings() if not any(line.startswith(f"| `{s.name}` |") for line in page)] == []


def test_config_show_prints_value_and_origin(tmp_path: Path) -> None:
    """kafka2011 config show tells the value in force and where it was set."""
    file = tmp_path / "f"
    file.write_text("num.partitions=7\n")

    result = CliRunner().invoke(
        kafka2011,
        ["config", "show", "--config", str(file), "--set", "port=1", "--changed", "--json"],
        env={"KAFKA2011_LOG_FLUSH_INTERVAL": "9"},
    )

    rows = {row["name"]: (row["value"], row["origin"]) for row in json.loads(result.stdout)}
    assert rows == {
        "num.partitions": (7, f"{file}:1"),
        "port": (1, "flag"),
        "log.flush.interval": (9, "KAFKA2011_LOG_FLUSH_INTERVAL"),
    }
