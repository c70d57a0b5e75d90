"""``kafka2011 log dump``, ``verify``, ``salvage`` on good and on damaged files (§3.1, §3.3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka2011.cli.log import log as command
from kafka2011.wire import Codec, decode_set, encode_set

PAYLOADS = [b"hello", b"there", b"\x00\xff", b"x" * 100]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments: plain, old and compressed messages."""
    directory = tmp_path / "clicks-0"
    directory.mkdir()
    first = encode_set(PAYLOADS) + encode_set([b"old"], magic=0)
    (directory / f"{0:020d}.kafka").write_bytes(first)
    (directory / f"{len(first):020d}.kafka").write_bytes(encode_set([b"in", b"side"], codec=Codec.GZIP))
    return directory


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments])


def test_dump_shows_every_entry(partition: Path) -> None:
    """Offset, size, magic, codec, CRC and a preview of each entry, in order."""
    result = run("dump", partition, "--json")
    rows = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [row["payload"] for row in rows[:2]] == ["hello", "there"]
    assert [row["offset"] for row in rows] == [0, 15, 30, 42, 152, 164]
    assert [row["magic"] for row in rows] == [1, 1, 1, 1, 0, 1]
    assert [row["codec"] for row in rows] == ["none"] * 5 + ["gzip"]
    assert rows[0]["crc"] == "3610a686"
    table = run("dump", partition).stdout
    assert table.splitlines()[0].split()[0] == "OFFSET"
    assert len(table.splitlines()) == 7


def test_dump_of_something_else_says_so(tmp_path: Path) -> None:
    """A file without a single message is named as no segment, exit 1; salvaged messages are still shown (22 C2)."""
    other = tmp_path / "README.md"
    other.write_bytes(b"# not a log\n" * 100)
    refused = run("dump", other)
    salvaged = tmp_path / "salvaged"
    salvaged.write_bytes(b"xx" + encode_set(PAYLOADS))

    assert refused.exit_code == 1
    assert "is no segment: not one message is in its 1200 bytes" in str(refused.exception)
    assert run("dump", salvaged).exit_code == 0


def test_dump_deep_opens_wrappers(partition: Path) -> None:
    """With --deep the messages inside a wrapper are shown at the wrapper's offset."""
    rows = json.loads(run("dump", partition, "--deep", "--json", "--offset", 164).stdout)
    assert [(row["offset"], row["payload"]) for row in rows] == [(164, "in"), (164, "side")]


def test_dump_hex(partition: Path) -> None:
    """With --hex the bytes themselves are shown, addressed by offset."""
    lines = run("dump", partition / f"{0:020d}.kafka", "--hex", "-n", 2).stdout.splitlines()
    assert lines[1].startswith("  000000000000  00 00 00 0b 01 00 36 10 a6 86 68 65 6c 6c 6f  ")
    assert lines[1].endswith("hello")
    assert len([line for line in lines if line.startswith("offset")]) == 2


def test_verify_intact(partition: Path) -> None:
    """An intact partition is exit code 0, with counts of entries and of messages."""
    result = run("verify", partition, "--json")
    rows = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [(row["entries"], row["messages"], row["verdict"]) for row in rows] == [(5, 5, "intact"), (1, 2, "intact")]


def test_verify_names_what_is_wrong(partition: Path) -> None:
    """Damage, an unfinished write and a gap are each named, exit code 1."""
    first, second = sorted(partition.iterdir())
    good = first.read_bytes()
    first.write_bytes(good[:25] + b"!" + good[26:])
    result = run("verify", partition, "--json")
    assert result.exit_code == 1
    assert [row["verdict"] for row in json.loads(result.stdout)] == ["damage at 15, 15 bytes", "intact"]
    first.write_bytes(good)
    second.write_bytes(second.read_bytes() + b"\0\0\0\x20torn")
    assert "unfinished write at" in run("verify", second).stdout
    first.write_bytes(good[:-12])
    assert "gap: the segment before it ends at 152" in run("verify", partition).stdout


def test_salvage_gets_the_rest_out(partition: Path, tmp_path: Path) -> None:
    """Every intact message comes out, every skipped stretch is named, the damaged file is not touched."""
    first = min(partition.iterdir())
    good = first.read_bytes()
    bad = good[:25] + b"!" + good[26:] + b"torn"
    corrupt = first.rename(first.with_name(first.name + ".corrupt"))
    corrupt.write_bytes(bad)
    out = tmp_path / "out.set"
    result = run("salvage", corrupt, "-o", out)
    assert result.exit_code == 0
    assert [m.payload for m in decode_set(out.read_bytes())] == [b"hello", b"\x00\xff", b"x" * 100, b"old"]
    assert "damage at offset 15, 15 bytes" in result.stderr
    assert "4 messages written, 19 bytes skipped" in result.stderr
    assert corrupt.read_bytes() == bad
    lines = run("salvage", partition, "--lines", "-o", "-").stdout_bytes
    assert lines == b"hello\n\x00\xff\n" + b"x" * 100 + b"\nold\nin\nside\n"


def test_salvage_of_nothing_fails(tmp_path: Path) -> None:
    """A file without a single message is exit code 1."""
    path = tmp_path / "0.kafka"
    path.write_bytes(b"\xff" * 100)
    assert run("salvage", path, "-o", tmp_path / "out").exit_code == 1


def test_wrong_paths_are_usage_errors(tmp_path: Path) -> None:
    """A path that is not there is exit code 2; a directory without segments says what to name."""
    assert run("dump", tmp_path / "no").exit_code == 2
    result = run("dump", tmp_path)
    assert "holds no segment" in str(result.exception)


def test_an_empty_segment_is_fine(tmp_path: Path) -> None:
    """A partition that was created and never written verifies."""
    (tmp_path / f"{0:020d}.kafka").touch()
    assert run("verify", tmp_path).exit_code == 0
    assert run("dump", tmp_path).exit_code == 0
