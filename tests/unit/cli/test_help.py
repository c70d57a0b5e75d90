"""The command line as a whole: what every command promises, whoever wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kafka2011.cli.main import GROUP, kafka2011


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group under this one, with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


ALL = list(commands(kafka2011))
LEAVES = [(path, command) for path, command in ALL if not isinstance(command, click.Group)]
GROUPS = [(path, command) for path, command in ALL if isinstance(command, click.Group)]

# What these print is not a table: a stream, a file, a page, or one line.
NOT_A_TABLE = {
    "broker start",
    "cluster up",
    "cluster down",
    "cluster kill",
    "config sample",
    "etl report",
    "log accept",
    "log salvage",
    "observatory",
    "offsets export",
    "offsets import",
    "produce",
    "sim run",
    "sim shrink",
    "sim transcript",
    "claims report",
    "figures",
    "lab hint",
    "lab start",
    "offsets adopt",
    "completion",
    "topics alter",
    "topics create",
    "topics delete",
    "transactions abort",
    "zk start",
}

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def called(words: tuple[str, ...]) -> str:
    return " ".join(words) or "kafka2011"


@pytest.mark.parametrize(("path", "command"), ALL, ids=[called(path) for path, _ in ALL])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(path: tuple[str, ...], command: click.Command, flag: str) -> None:
    """-h and --help work everywhere, exit with 0, and say what the command does."""
    result = CliRunner().invoke(kafka2011, [*path, flag], prog_name="kafka2011")

    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"Usage: {' '.join(('kafka2011', *path))}")
    assert command.get_short_help_str()


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[called(path) for path, _ in LEAVES])
def test_help_begins_with_two_examples(path: tuple[str, ...], command: click.Command) -> None:
    """A help page shows at least two commands to try, before the options, one of them of its own."""
    text = CliRunner().invoke(kafka2011, [*path, "--help"], prog_name="kafka2011").output.split("Options:")[0]
    examples = [line for line in text.splitlines()[1:] if "kafka2011 " in line]

    assert len(examples) >= 2, text
    assert any(f"kafka2011 {called(path)}" in example for example in examples)


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[called(path) for path, _ in LEAVES])
def test_every_option_in_an_example_exists(path: tuple[str, ...], command: click.Command) -> None:
    """Examples can be typed as they stand: every option they use is one the command has."""
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    text = CliRunner().invoke(kafka2011, [*path, "--help"], prog_name="kafka2011").output.split("Options:")[0]

    for line in text.splitlines()[1:]:
        _, found, rest = line.partition(f"kafka2011 {called(path)} ")
        words = rest.split("|")[0].split() if found else []
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, line


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[called(path) for path, _ in LEAVES])
def test_every_listing_has_json(path: tuple[str, ...], command: click.Command) -> None:
    """What people read as a table, programs read with --json."""
    has = any("--json" in parameter.opts for parameter in command.params)

    assert has != (called(path) in NOT_A_TABLE)


@pytest.mark.parametrize(("path", "command"), GROUPS, ids=[called(path) for path, _ in GROUPS])
def test_an_unknown_command_exits_with_2_and_suggests(path: tuple[str, ...], command: click.Group) -> None:
    """A misspelt command, on every level, names the nearest one and exits with 2."""
    name = command.list_commands(click.Context(command))[-1]
    result = CliRunner().invoke(kafka2011, [*path, name + "x"], prog_name="kafka2011")

    assert result.exit_code == 2
    assert "Did you mean" in result.output
    assert f"'{name}'" in result.output.split("Did you mean")[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_pages_exist(page: Path) -> None:
    """Every kafka2011 command line in the documentation names a command and options there are."""
    leaves = dict(LEAVES)
    for line in re.findall(r"(?:^ *|\| )(kafka2011 [a-z].*)$", page.read_text(), re.MULTILINE):
        words = tuple(re.split(r"\s#|[|;&<>]", line)[0].split()[1:])
        command = leaves.get(words[:2]) or leaves.get(words[:1])
        assert command is not None, line
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0].rstrip(",.;:)`") for word in words if word.startswith("--")}
        assert used <= known | {"--help"}, line


def test_every_registered_command_can_be_loaded() -> None:
    """The command lists what is installed, and all of it imports."""
    assert {path[0] for path, _ in ALL if path} == {plugin.name for plugin in entry_points(group=GROUP)}


def test_json_is_json(tmp_path: Path) -> None:
    """--json prints one JSON document on stdout, also when there is nothing to show."""
    for arguments in (["topics", "list", "--log-dir", str(tmp_path)], ["config", "show", "--changed"]):
        result = CliRunner().invoke(kafka2011, [*arguments, "--json"])

        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["fetch", "clicks", "-b", "127.0.0.1:1", "-e"],
        ["produce", "clicks", "-b", "127.0.0.1:1", "-p", "0", "--file", "/dev/null"],
        ["topics", "list", "--admin", "127.0.0.1:1"],
        ["log", "dump", "/nowhere"],
        ["log", "verify", "/nowhere"],
        ["config", "show", "--set", "log.flush.intervall=1"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_errors_are_one_line(arguments: list[str]) -> None:
    """What goes wrong is said in words, never as a stack."""
    result = CliRunner().invoke(kafka2011, arguments)

    assert "Traceback" not in result.output
    assert result.exit_code in (0, 1, 2)


def test_help_shows_whole_sentences() -> None:
    """The list of commands is not cut off with dots (issue 22 C2)."""
    for path in ((), ("etl",), ("group",)):
        shown = CliRunner().invoke(kafka2011, [*path, "--help"]).stdout

        assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_learns_the_commands(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``completion --install`` writes where the shell looks, and what it wrote completes commands (issue 22 C2)."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CliRunner().invoke(kafka2011, ["completion", shell, "--install"]).exit_code == 0
    (written,) = [path for path in tmp_path.rglob("*kafka2011*") if path.is_file()]
    assert f"_KAFKA2011_COMPLETE={shell}_complete" in written.read_text()

    words = {"COMP_WORDS": "kafka2011 top", "COMP_CWORD": "1", "_KAFKA2011_COMPLETE": "bash_complete"}
    completed = CliRunner().invoke(kafka2011, [], env=words, prog_name="kafka2011")
    assert completed.stdout.split() == ["plain,topics"]
