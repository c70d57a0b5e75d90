"""Read settings: file < environment < flags, each value with the place it came from.

Files are Java properties, as 0.7's were. ``log.flush.interval`` in the environment is
``KAFKA2011_LOG_FLUSH_INTERVAL``. A name nobody knows is refused with the nearest one; so is a value that cannot be.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kafka2011.errors import ConfigError
from kafka2011.settings import BROKER_SETTINGS, WITHOUT_EFFECT, Setting, TopicMap, Value

__all__ = [
    "BROKER_SETTINGS", "Config", "Setting", "TopicMap", "Value",
    "load_config", "manual", "manual_row", "read_properties", "sample", "written",
]  # fmt: skip

PREFIX = "KAFKA2011_"
_NOT_SETTINGS = {"KAFKA2011_BROKER", "KAFKA2011_ADMIN", "KAFKA2011_ZOOKEEPER", "KAFKA2011_FAILPOINTS", "KAFKA2011_PURE"}
"""Variables of the commands and the tests that share the prefix."""

DATA_HOME = Path("~/.local/share")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Given:
    name: str
    text: str
    origin: str


class Config:
    """The settings in force. ``config["log.flush.interval"]``; ``config.origin(...)`` says where it was set."""

    def __init__(self, settings: Mapping[str, Setting], values: Mapping[str, Value], origins: Mapping[str, str],
                 notices: Iterable[str] = ()) -> None:
        self.settings = settings
        self.notices = tuple(notices)
        """What the person should be told: settings accepted without effect."""
        self._values = values
        self._origins = origins

    def __getitem__(self, name: str) -> Value:
        value = self._values[name]
        inherit = self.settings[name].inherit
        return self[inherit] if value is None and inherit is not None else value

    def __contains__(self, name: str) -> bool:
        return name in self.settings

    def get(self, name: str, kind: type[T]) -> T:
        """The value of a setting that is certainly set, as ``kind``."""
        value = self[name]
        if not isinstance(value, kind):
            raise ConfigError(f"{name} is needed here and is not set")
        return value

    def integer(self, name: str) -> int:
        """The value of a number that is certainly set."""
        return self.get(name, int)

    def topic_map(self, name: str) -> TopicMap:
        """The value of a per-topic setting."""
        value = self[name]
        assert isinstance(value, Mapping)
        return value

    def origin(self, name: str) -> str:
        """Where the value came from: ``default``, ``<file>:<line>``, a variable's name or ``--set``."""
        return self._origins.get(name, "default")

    def __iter__(self) -> Iterator[str]:
        return iter(self.settings)


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    extra_settings: Iterable[Setting] = (),
    *,
    settings: Iterable[Setting] = BROKER_SETTINGS,
) -> Config:
    """Merge file, environment and flags over the defaults; raise ConfigError at the first wrong one.

    ``extra_settings`` are the plug-ins' own; one that carries a broker setting's name takes its place.
    """
    known = {s.name: s for s in (*settings, *extra_settings)}
    values: dict[str, Value] = {s.name: _default(s, environ or {}) for s in known.values()}
    origins: dict[str, str] = {}
    notices: list[str] = []
    given = [
        *(_from_file(file) if file is not None else ()),
        *_from_environment(environ or {}, known),
        *(_Given(name, text, "flag") for name, text in (flags or {}).items()),
    ]
    for item in given:
        if item.name in WITHOUT_EFFECT:
            notices.append(f"{item.name} ({item.origin}) has no effect: {WITHOUT_EFFECT[item.name]}")
            continue
        setting = known.get(item.name)
        if setting is None:
            raise ConfigError(_unknown(item, known))
        values[item.name] = _parse(setting, item)
        origins[item.name] = item.origin
    return Config(known, values, origins, notices)


def _default(setting: Setting, environ: Mapping[str, str]) -> Value:
    """A setting's default; a path in the user's data directory is where the user has that directory."""
    path, home = setting.default, environ.get("XDG_DATA_HOME", "")
    if not isinstance(path, Path):
        return path
    if path.is_relative_to(DATA_HOME) and Path(home).is_absolute():
        return Path(home) / path.relative_to(DATA_HOME)
    return path.expanduser()


def _unknown(item: _Given, settings: Mapping[str, Setting]) -> str:
    near = difflib.get_close_matches(item.name, settings, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{item.origin}: there is no setting {item.name!r}{hint} (kafka2011 config show lists all)"


def _from_file(file: Path) -> Iterator[_Given]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration file {file}: {error}") from error
    for line, name, value in read_properties(text):
        yield _Given(name, value, f"{file}:{line}")


def _from_environment(environ: Mapping[str, str], settings: Mapping[str, Setting]) -> Iterator[_Given]:
    names = {variable(name): name for name in [*settings, *WITHOUT_EFFECT]}
    for name, text in sorted(environ.items()):
        if name in names:
            yield _Given(names[name], text, name)
        elif name.startswith(PREFIX) and name not in _NOT_SETTINGS and not name.startswith(f"{PREFIX}CLIENT_"):
            # The prefix is shared with variables that are no settings, so only what is clearly a slip is refused.
            short = {known.removeprefix(PREFIX): known for known in names}
            near = difflib.get_close_matches(name.removeprefix(PREFIX), short, n=1, cutoff=0.9)
            if near:
                raise ConfigError(f"environment: there is no setting {name}; did you mean {short[near[0]]}?")


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", "_").upper()


_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*?(\s*[=:]\s*|\s+)")


def read_properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Split a Java properties text into (line number, name, value)."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        line = line.lstrip()
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, (0, ""))[1].lstrip()
        found = _SEPARATOR.search(line)
        name, value = (line[: found.start(1)], line[found.end(1) :]) if found else (line, "")
        yield number, _unescape(name), _unescape(value).strip()


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    named = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else named.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replace, text)


def _parse(setting: Setting, item: _Given) -> Value:
    text = item.text.strip()
    if not text and setting.default is None:
        return None
    try:
        return _checked(setting, _typed(setting, text))
    except ValueError as error:
        raise ConfigError(f"{item.origin}: {setting.name}={text}: {error}") from None


def _typed(setting: Setting, text: str) -> Value:
    if setting.type is bool:
        if text not in ("true", "false"):
            raise ValueError("must be true or false")
        return text == "true"
    if setting.type is int:
        return _integer(text)
    if setting.type is float:
        try:
            return float(text)
        except ValueError:
            raise ValueError("must be a number") from None
    if setting.type is Mapping:
        return _topic_map(text)
    if not text:
        raise ValueError("must not be empty")
    return Path(text).expanduser() if setting.type is Path else text


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError("must be a whole number")
    return int(text)


def _topic_map(text: str) -> TopicMap:
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        topic, colon, number = part.rpartition(":")
        if not colon or not topic.strip():
            raise ValueError(f"{part!r} is not topic:number")
        found[topic.strip()] = _integer(number.strip())
    return found


def _checked(setting: Setting, value: Value) -> Value:
    numbers = list(value.values()) if isinstance(value, Mapping) else [value]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if setting.minimum is not None and number < setting.minimum:
            raise ValueError(f"must be at least {setting.minimum}{' ' + setting.unit if setting.unit else ''}")
        if setting.maximum is not None and number > setting.maximum:
            raise ValueError(f"must be at most {setting.maximum}{' ' + setting.unit if setting.unit else ''}")
    if setting.choices and value not in setting.choices:
        raise ValueError(f"must be one of {', '.join(setting.choices)}")
    return value


def written(value: Value) -> str:
    """A value as it would stand in a file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{topic}:{number}" for topic, number in value.items())
    return "" if value is None else str(value)


def sample(settings: Iterable[Setting] = BROKER_SETTINGS) -> str:
    """A commented configuration file with every setting at its default, as a manual."""
    lines = ["# kafka2011 broker. Every setting with its default; remove the # before a name to change it.",
             "# Environment variables (KAFKA2011_LOG_FLUSH_INTERVAL) come before this file, flags before both."]
    section = None
    for setting in settings:
        if setting.section != section:
            section = setting.section
            lines += ["", f"# ---- {section} ----"]
        unit = f" [{setting.unit}]" if setting.unit else ""
        inherit = f" Unset: {setting.inherit}." if setting.inherit else ""
        lines += ["", *(f"# {line}" for line in textwrap.wrap(f"{setting.help}{inherit}{unit}", 108))]
        lines.append(f"#{setting.name}={written(setting.default)}")
    return "\n".join(lines) + "\n"


def manual_row(setting: Setting) -> str:
    """One setting as a row of ``docs/configuration.md``."""
    default = f"`{written(setting.default)}`" if written(setting.default) else "unset"
    if setting.inherit:
        default = f"that of `{setting.inherit}`"
    return f"| `{setting.name}` | {default} | {setting.unit} | {setting.help} |"


def manual(settings: Iterable[Setting] = BROKER_SETTINGS) -> str:
    """The tables of ``docs/configuration.md``, one per section."""
    sections: dict[str, list[str]] = {}
    for setting in settings:
        sections.setdefault(setting.section, []).append(manual_row(setting))
    head = ["| name | default | unit | meaning |", "|---|---|---|---|"]
    tables = ["\n".join([f"## {section}", "", *head, *rows]) for section, rows in sections.items()]
    return "\n\n".join(tables) + "\n"
