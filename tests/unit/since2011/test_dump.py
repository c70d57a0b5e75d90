"""What `kafka2011 log` shows of modern logs: the offsets topic in words, and compaction explained."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from kafka2011.cli.log import log as command
from since2011.log.settings import LogConfig
from since2011.wire.codec import Struct
from since2011.wire.group_records import GroupRecordType, encode_key, encode_value
from tests.unit.since2011.bench import Bench
from tests.unit.since2011.vectors import T


def rows(*arguments: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.output)
    return found


def test_offsets_are_shown_in_words(tmp_path: Path) -> None:
    """`log dump --deep` decodes __consumer_offsets by its name, and any file with --offsets-decoder (issue 25.7)."""
    key = encode_key(GroupRecordType.OFFSET, Struct(group="billing", topic="clicks", partition=2))
    value = encode_value(
        GroupRecordType.OFFSET, Struct(offset=42, leader_epoch=0, metadata="", commit_ms=T, expire_ms=-1)
    )
    for name in ("__consumer_offsets-7", "elsewhere-7"):
        bench = Bench(tmp_path / name)
        bench.send((key, value))
        bench.send((key, None))
        bench.send((b"\0\x63rubbish", b"x"))
        bench.log.close()

    found = rows("dump", str(tmp_path / "__consumer_offsets-7"), "--deep")
    assert [(row["offset"], row.get("type"), row["key"]) for row in found[:2]] == [
        (0, "offset", "billing clicks 2"),
        (1, "offset", "billing clicks 2"),
    ]
    assert json.loads(str(found[0]["value"]))["offset"] == 42
    assert found[1]["value"] is None
    assert "type" not in found[2], "what is no record of groups is shown as it is"
    plain = rows("dump", str(tmp_path / "elsewhere-7"), "--deep")
    assert "type" not in plain[0]
    decoded = rows("dump", str(tmp_path / "elsewhere-7"), "--offsets-decoder")
    assert [row.get("type") for row in decoded] == ["offset", "offset", None]


def test_compaction_is_explained_without_touching_anything(tmp_path: Path) -> None:
    """`log clean --explain` says of every record whether it would stay, and why (issue 25.5)."""
    bench = Bench(tmp_path / "prices-0", LogConfig(cleanup_policy=("compact",), segment_bytes=300))
    for number in range(6):
        bench.send((b"x", b"%d" % number), (b"y", b"%d" % number if number < 5 else None))
    bench.log.roll()
    bench.send((b"x", b"last"))
    bench.log.close()
    before = {file.name: file.read_bytes() for file in bench.directory.iterdir()}

    found = rows("clean", str(bench.directory), "--explain")
    told = {row["offset"]: (row["after"], row["because"]) for row in found}
    assert told[0] == ("goes", "offset 10 is later")
    assert told[10] == ("stays", "the latest of its key")
    assert told[11][0] == "stays"
    assert "tombstone" in str(told[11][1])
    assert told[12][0] == "stays"
    assert "active segment" in str(told[12][1])
    assert [row["key"] for row in found] == ["x"] * 7 + ["y"] * 6
    assert {file.name: file.read_bytes() for file in bench.directory.iterdir()} == before
