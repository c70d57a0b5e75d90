"""The command's frame: sub-commands are found, misspellings are helped, errors are one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kafka2011.cli import main as main_module
from kafka2011.cli.main import kafka2011
from kafka2011.cli.output import host_and_port, show


def test_a_misspelt_command_is_helped() -> None:
    """An unknown sub-command names the nearest one and exits with 2."""
    result = CliRunner().invoke(kafka2011, ["brokr"])

    assert result.exit_code == 2
    assert "Did you mean 'broker" in result.output


def test_a_command_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in that cannot be imported is still listed and names the package."""

    class Missing:
        name = "etl"

        def load(self) -> object:
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr(main_module, "_plugins", lambda: {"etl": Missing()})

    result = CliRunner().invoke(kafka2011, ["etl"])

    assert result.exit_code == 1
    assert "needs the Python package 'pyspark'" in result.output


def test_tables_and_json_hold_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """show() prints an aligned table for people and JSON for programs; control characters never reach a terminal."""
    rows = [{"topic": "a\x1b[31m", "bytes": 5}, {"topic": "bb", "bytes": None}]
    show(rows, as_json=False)
    table = capsys.readouterr().out
    show(rows, as_json=True)

    assert table.splitlines() == ["TOPIC      BYTES", "a\\x1b[31m      5", "bb             -"]
    assert '"bytes": null' in capsys.readouterr().out


def test_many_rows_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    """A listing of any length costs the memory of a thousand rows: the first are out before the last are made."""
    seen: list[int] = []

    def rows() -> Iterator[dict[str, int]]:
        for n in range(2500):
            seen.append(len(capsys.readouterr().out.splitlines()) if n == 2000 else 0)
            yield {"n": n * 1000}

    show(rows(), as_json=False)
    assert seen[2000] == 2001
    assert capsys.readouterr().out.splitlines()[-1] == "2499000"
    some = [{"n": n, "inner": {"a": [n]}} for n in range(2500)]
    for wanted in (some, some[:1], []):
        show(iter(wanted), as_json=True)
        assert capsys.readouterr().out == json.dumps(wanted, indent=2) + "\n"


def test_addresses_may_be_of_both_kinds() -> None:
    """HOST, HOST:PORT and an address of IP 6 in brackets are read; without a port the usual one is meant."""
    texts = ("h", "h:1", "[::1]:1", "[::1]")
    assert [host_and_port(text) for text in texts] == [("h", 9092), ("h", 1), ("::1", 1), ("::1", 9092)]


@pytest.mark.parametrize("text", [":9092", "h:", "h:0", "h:70000", "h:x"])
def test_an_address_that_cannot_be_is_a_usage_error(text: str) -> None:
    """--broker takes HOST:PORT and nothing else."""
    with pytest.raises(click.UsageError):
        host_and_port(text)


def test_topics_are_read_from_a_directory(tmp_path: Path) -> None:
    """kafka2011 topics describe --log-dir reads sizes and offsets without a broker."""
    partition = tmp_path / "my-topic-1"
    partition.mkdir()
    (partition / f"{100:020d}.kafka").write_bytes(b"x" * 50)
    (partition / f"{150:020d}.kafka").write_bytes(b"x" * 7)
    (tmp_path / ".lock").write_text("")

    result = CliRunner().invoke(kafka2011, ["topics", "describe", "my-topic", "--log-dir", str(tmp_path)])
    listed = CliRunner().invoke(kafka2011, ["topics", "list", "--log-dir", str(tmp_path)])
    unknown = CliRunner().invoke(kafka2011, ["topics", "describe", "other", "--log-dir", str(tmp_path)])
    nowhere = CliRunner().invoke(kafka2011, ["topics", "list"])

    assert result.output.splitlines()[1].split() == ["my-topic", "1", "100", "-", "157", "57", "2"]
    assert listed.output.splitlines()[1].split() == ["my-topic", "1", "2", "57"]
    assert (unknown.exit_code, nowhere.exit_code) == (1, 2)
    assert "there are: my-topic" in unknown.output
