"""Where modern logs lie, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kafka2011.config import Config, load_config
from kafka2011.errors import ConfigError
from since2011.log.identity import Identity
from since2011.log.manager import LogManager
from since2011.log.metrics import ALL, PARTITIONS, PREFIX, LogCollector
from since2011.server.logs import SETTINGS, log_dirs

ROOT = Path(__file__).resolve().parents[3]


def config(**flags: str) -> Config:
    return load_config(flags={name.replace("_", "."): text for name, text in flags.items()}, extra_settings=SETTINGS)


def test_modern_logs_lie_below_log_dir_unless_told_otherwise(tmp_path: Path) -> None:
    """log.dirs names the modern logs' own directories; by default they lie below log.dir, on its volume (D16)."""
    assert log_dirs(config(log_dir=str(tmp_path))) == [tmp_path / ".modern" / "logs"]
    assert log_dirs(config(log_dir=str(tmp_path), log_dirs="/a, /b")) == [Path("/a"), Path("/b")]


@pytest.mark.parametrize("text", [",", "/a,/a", "LOG_DIR"])
def test_directories_that_cannot_be_are_refused(tmp_path: Path, text: str) -> None:
    """The directory of 2011 topics is never one of modern logs: a real broker would cut its segments.

    See docs/since-2011.md.
    """
    with pytest.raises(ConfigError, match=r"log\.dirs"):
        log_dirs(config(log_dir=str(tmp_path), log_dirs=text.replace("LOG_DIR", str(tmp_path))))


def test_every_metric_is_in_the_docs(tmp_path: Path) -> None:
    """docs/metrics.md lists every metric of modern logs by the name it is exposed under."""
    manager = LogManager([tmp_path / "a"], Identity(0, "x"))
    manager.start()
    manager.get_or_create("clicks", 0)
    registry = CollectorRegistry()
    registry.register(LogCollector(manager))
    text = generate_latest(registry).decode()
    manager.close()
    docs = (ROOT / "docs" / "metrics.md").read_text()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    assert len(names) == len(PARTITIONS) + len(ALL)
    assert [name for name in sorted(names) if f"`{name}`" not in docs] == []
    assert f'{PREFIX}log_end_offset{{partition="0",topic="clicks"}} 0.0' in text
