"""The room the experiments run in: where processes come from, and one ZooKeeper for all that need one."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import cast

from classroom.claims.claim import CannotTell
from classroom.claims.harness.alterations import NOTES
from classroom.claims.harness.nursery import Forked, Nursery
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess


class ClaimBroker(BrokerProcess):
    """A broker forked from the nursery, perhaps with something about it altered (``alterations``)."""

    def __init__(
        self, nursery: Nursery, log_dir: Path, options: Mapping[str, object], alterations: Sequence[str]
    ) -> None:
        super().__init__(log_dir, options)
        self._nursery, self.alterations = nursery, tuple(alterations)
        self.notes = log_dir.with_name(f"{log_dir.name}.notes")
        """Where an altered broker leaves notes."""
        self.notes.mkdir(parents=True, exist_ok=True)
        self.environ[NOTES] = str(self.notes)

    def _spawn(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        process = self._nursery.start(
            "kafka2011.cli.main:main",
            arguments,
            self._output_path(),
            environ=self.environ,
            alterations=self.alterations,
        )
        return cast("subprocess.Popen[bytes]", process)

    def __enter__(self) -> ClaimBroker:
        super().__enter__()
        return self

    def connect(self) -> BrokerConnection:
        """A connection of one's own."""
        return BrokerConnection(self.host, self.port)

    def files(self, topic: str, partition: int = 0) -> list[Path]:
        """The segment files of a partition, oldest first."""
        return sorted((self.log_dir / f"{topic}-{partition}").glob("*.kafka"))


class Room:
    """Shared by all experiments of one run. Thread: one."""

    def __init__(self, directory: Path | None = None) -> None:
        self._made = Path(tempfile.mkdtemp(prefix="kafka2011-claims-", dir=directory))
        self._nursery: Nursery | None = None
        self._zookeeper: object | None = None

    @property
    def nursery(self) -> Nursery:
        """Where processes come from; started when first needed."""
        if self._nursery is None:
            self._nursery = Nursery()
        return self._nursery

    def directory(self, name: str) -> Path:
        """An empty directory; what an earlier experiment left there is removed."""
        path = self._made / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def zookeeper(self) -> str:
        """The connect string of an empty tree in a real ZooKeeper."""
        try:
            from zk_registry.embedded import EmbeddedZooKeeper, EmbeddedZooKeeperError
            from zk_registry.testing import fresh_chroot
        except ModuleNotFoundError as error:
            raise CannotTell(f"needs the Python package {error.name}: pip install 'kafka2011[embedded]'") from error
        if self._zookeeper is None:
            try:
                self._zookeeper = EmbeddedZooKeeper(tick_ms=400).start()
            except EmbeddedZooKeeperError as error:
                raise CannotTell(f"ZooKeeper cannot be started here: {error}") from error
        assert isinstance(self._zookeeper, EmbeddedZooKeeper)
        return fresh_chroot(self._zookeeper.connect)

    def member(self, arguments: Sequence[str], output: Path) -> Forked:
        """A consumer in a process of its own (``member``)."""
        return self.nursery.start("classroom.claims.harness.member:main", ["member", *arguments], output)

    def close(self) -> None:
        """End everything and remove all files."""
        if self._zookeeper is not None:
            self._zookeeper.stop()  # type: ignore[attr-defined]
        if self._nursery is not None:
            self._nursery.close()
        shutil.rmtree(self._made, ignore_errors=True)

    def __enter__(self) -> Room:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
