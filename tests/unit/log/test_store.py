"""The data directory: names, creation, one process at a time.

See docs/log.md, docs/protocol.md; reliability T1, T3, §4.1.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import FrameType
from unittest.mock import patch

import pytest

from kafka2011.clock import ManualClock
from kafka2011.errors import IllegalTopicName, LogCorrupt, LogDirectoryInUse, LogFull, TooManyTopics, WrongPartition
from kafka2011.failpoints import activate
from kafka2011.log import LogSettings, LogStore
from kafka2011.log.descriptors import WRITING
from kafka2011.log.events import StrayEntry, TopicCreated
from tests.unit.log.conftest import ENTRY, OpenStore


def test_reading_creates_nothing_and_writing_does(open_store: OpenStore, tmp_path: Path) -> None:
    """``get`` of an unknown topic is None and leaves no trace; ``get_or_create`` makes the directory.

    See docs/paper-vs-code.md.
    """
    store = open_store(num_partitions=2)
    created: list[tuple[str, int]] = []
    store.on_topic_created(lambda topic, n: created.append((topic, n)))
    assert store.get("t", 1) is None
    assert not (tmp_path / "data" / "t-1").exists()
    log = store.get_or_create("t", 1)
    assert store.get("t", 1) is store.get_or_create("t", 1) is log
    store.get_or_create("t", 0)
    assert created == [("t", 2)]
    assert store.topics() == {"t": [0, 1]}
    assert len([e for e in store.journal.since() if isinstance(e.event, TopicCreated)]) == 1


def test_configured_partition_counts(open_store: OpenStore) -> None:
    """The number of partitions is configuration, per topic; partition 2 of 2 is refused.

    See docs/protocol.md, docs/paper-vs-code.md.
    """
    store = open_store(num_partitions=2, topic_partitions={"big": 5})
    assert (store.partition_count("t"), store.partition_count("big")) == (2, 5)
    store.get_or_create("big", 4)
    for topic, partition in (("t", 2), ("t", -1), ("t", -2), ("big", 5), ("t", 2**31 - 1)):
        with pytest.raises(WrongPartition):
            store.get(topic, partition)
        with pytest.raises(WrongPartition):
            store.get_or_create(topic, partition)


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "a" * 256, "a" * 201, "../../x", "a/b", "/etc/x", "a\0b", "a\nINFO fake", "…", "a%2fb",
        "e\u0301", "\x01", "\x18", "\x1f", "\x8f", "\ud805", "\ufffa", "<img src=x>", "{{7*7}}", "=cmd()", "$(id)",
    ],
)  # fmt: skip
def test_names_that_cannot_be_topics(open_store: OpenStore, tmp_path: Path, name: str) -> None:
    """A topic becomes a directory: names that could leave it are refused.

    See docs/paper-vs-code.md, reliability T1, T2.
    """
    store = open_store()
    with pytest.raises(IllegalTopicName):
        store.get_or_create(name, 0)
    with pytest.raises(IllegalTopicName):
        store.get(name, 0)
    assert [entry for entry in os.listdir(tmp_path / "data") if not entry.startswith(".kafka")] == []


def test_names_with_dashes_are_unambiguous(open_store: OpenStore) -> None:
    """The partition is after the last dash: ``x-0`` partition 1 is not ``x`` partition 0-1 (docs/log.md, T1)."""
    for topic in ("x", "x-0", "x-0-1", "-", "a.b_c-d", "CON", "...", ".hidden"):
        store = open_store(num_partitions=2)
        store.get_or_create(topic, 1).append(ENTRY, 1)
        store.close()
        store = open_store(num_partitions=2)
        assert store.topics()[topic] == [1]
        store.close()


def test_partitions_beyond_the_count_are_loaded_but_unreachable(open_store: OpenStore) -> None:
    """Lowering the count hides partitions, it does not delete them (docs/protocol.md)."""
    store = open_store(num_partitions=3)
    store.get_or_create("t", 2).append(ENTRY, 1)
    store.close()
    store = open_store(num_partitions=1)
    assert store.topics() == {"t": [2]}
    with pytest.raises(WrongPartition):
        store.get("t", 2)


def test_one_process_per_directory(open_store: OpenStore, tmp_path: Path, clock: ManualClock) -> None:
    """A second broker on the same directory is refused, and told who has it (docs/reliability.md)."""
    store = open_store()
    second = LogStore(tmp_path / "data", LogSettings(), clock=clock)
    with pytest.raises(LogDirectoryInUse, match=f"process {os.getpid()}"):
        second.open()
    store.close()
    second.open()
    second.close()
    second.close()


def test_files_are_private(open_store: OpenStore, tmp_path: Path) -> None:
    """Directories are 0700 and files 0600 (docs/reliability.md)."""
    store = open_store()
    store.get_or_create("t", 0).append(ENTRY, 1)
    store.close()
    for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_symbolic_links_are_refused(open_store: OpenStore, tmp_path: Path) -> None:
    """A link in place of a partition or a segment is not followed (reliability T3)."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").write_bytes(ENTRY)
    (tmp_path / "data" / "u-0").mkdir(parents=True)
    (tmp_path / "data" / "t-0").symlink_to(elsewhere)
    (tmp_path / "data" / "u-0" / f"{0:020d}.kafka").symlink_to(elsewhere / "secret")
    store = open_store()
    with pytest.raises(LogCorrupt, match="symbolic link"):
        store.get_or_create("t", 0)
    with pytest.raises(LogCorrupt, match="not a plain file"):
        store.get("u", 0)
    assert os.listdir(elsewhere) == ["secret"]


def test_strays_are_left_alone(open_store: OpenStore, tmp_path: Path) -> None:
    """Files and directories that are no partitions are named and skipped (docs/log.md)."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "notes.txt").write_text("mine")
    for name in ("lost+found", "t-x", "t-01", "t-"):
        (data / name).mkdir()
    store = open_store()
    assert store.topics() == {}
    strays = [e.event for e in store.journal.since() if isinstance(e.event, StrayEntry)]
    assert sorted(Path(e.path).name for e in strays) == ["lost+found", "notes.txt", "t-", "t-01", "t-x"]
    assert (data / "notes.txt").read_text() == "mine"


def test_topic_quota(open_store: OpenStore) -> None:
    """No more topics than allowed are created; known ones go on (reliability T4)."""
    store = open_store(max_topics=2)
    store.get_or_create("a", 0)
    store.get_or_create("b", 0)
    with pytest.raises(LogFull, match=r"max\.topics is 2"):
        store.get_or_create("c", 0)
    assert store.get_or_create("a", 0).append(ENTRY, 1) == (0, 12)


def test_partition_quota(open_store: OpenStore, tmp_path: Path) -> None:
    """Partitions are counted as configured, not as written to; a topic that is refused leaves nothing (issue 20 C2)."""
    store = open_store(max_partitions=5, num_partitions=2)
    store.get_or_create("a", 0)
    store.get_or_create("b", 1)
    with pytest.raises(TooManyTopics, match=r"max\.partitions is 5"):
        store.get_or_create("c", 0)
    assert sorted(path.name for path in (tmp_path / "data").glob("*-*")) == ["a-0", "b-1"]
    assert store.get_or_create("b", 0).append(ENTRY, 1) == (0, 12)


def test_creating_topics_is_linear(open_store: OpenStore) -> None:
    """The thousandth topic costs what the first did: no step of it looks at all the others (issue 19 B3)."""
    store = open_store()
    steps = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += event == "call"

    def cost_of(name: str) -> int:
        nonlocal steps
        steps = 0
        sys.setprofile(counted)
        try:
            store.get_or_create(name, 0)
        finally:
            sys.setprofile(None)
        return steps

    with patch.object(LogStore, "topics", side_effect=AssertionError("every topic was looked at")):
        first = cost_of("first")
        for n in range(500):
            store.get_or_create(f"t{n}", 0)
        assert cost_of("last") <= first


def test_a_thousand_topics_written_to_keep_few_files_open(open_store: OpenStore) -> None:
    """Issue 19 B3: 1,005 topics exhausted a limit of 1,024 files, and then nobody could connect."""
    store = open_store()
    before = len(os.listdir("/proc/self/fd"))
    with patch.object(WRITING, "most", 20):
        for n in range(100):
            store.get_or_create(f"t{n}", 0).append(ENTRY, 1)
        assert len(os.listdir("/proc/self/fd")) <= before + 20
        for log in store.logs():
            assert log.flush() == len(ENTRY)  # through a descriptor opened anew
            assert log.append(ENTRY, 1) == (12, 24)
        assert len(os.listdir("/proc/self/fd")) <= before + 20
    store.close()
    assert len(os.listdir("/proc/self/fd")) < before


def test_a_topic_whose_creation_failed_can_be_created_later(open_store: OpenStore) -> None:
    """A full disk refuses a new topic without leaving it half made (docs/reliability.md)."""
    store = open_store()
    for step in ("log.roll.before_create", "log.roll.after_create"):
        with activate(step, "raise:ENOSPC"), pytest.raises(LogFull):
            store.get_or_create("t", 0)
    assert store.topics() == {}
    assert store.get_or_create("t", 0).append(ENTRY, 1) == (0, 12)


def test_ten_thousand_segments_open_cheaply(open_store: OpenStore, tmp_path: Path) -> None:
    """Opening reads names and sizes only: no descriptor is held and no byte of a message is read.

    See docs/reliability.md.
    """
    directory = tmp_path / "data" / "t-0"
    directory.mkdir(parents=True)
    for start in range(0, 120_000, 12):
        (directory / f"{start:020d}.kafka").write_bytes(ENTRY)
    before = len(os.listdir("/proc/self/fd"))
    store = open_store()
    log = store.get("t", 0)
    assert log is not None
    assert len(log.segments()) == 10_000
    assert len(os.listdir("/proc/self/fd")) <= before + 2
    with log.read(60_000, 100) as piece:
        assert piece.read() == ENTRY
