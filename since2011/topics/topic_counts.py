"""How many partitions a topic was created with, when an admin client said so.

In 2011 the number is a setting of the broker (``num.partitions``, ``topic.partition.count.map``). CreateTopics names
it per topic; what was named is kept in a small file, and added to the settings before the logs are opened.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kafka2011.errors import ConfigError
from kafka2011.log.directory import sync_directory
from kafka2011.log.store import LogStore


class TopicCounts:
    """Partition counts by topic, on disk and in the store's settings. Thread: any."""

    def __init__(self, path: Path, store: LogStore) -> None:
        self._path, self._store = path, store
        self._configured = store.settings.topic_partitions
        self._chosen: dict[str, int] = {}
        self._writing = threading.Lock()
        if path.exists():
            try:
                self._chosen = {str(topic): int(count) for topic, count in json.loads(path.read_text()).items()}
            except (OSError, ValueError, AttributeError) as error:
                raise ConfigError(f"{path} cannot be read ({error}); restore it: it names partition counts") from error
        self._apply()

    def choose(self, counts: Mapping[str, int]) -> None:
        """Let these topics, which are not there yet, have so many. Blocks; raises OSError, and then none has."""
        if counts:
            with self._writing:
                self._write({**self._chosen, **counts})

    def forget(self, topics: AbstractSet[str]) -> None:
        """These were not created after all."""
        if topics:
            # What is left in the file is a number for a topic that may come one day.
            with self._writing, suppress(OSError):
                self._write({topic: count for topic, count in self._chosen.items() if topic not in topics})

    def _write(self, chosen: dict[str, int]) -> None:
        fresh = self._path.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(chosen, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
        sync_directory(self._path.parent)
        self._chosen = chosen
        self._apply()

    def _apply(self) -> None:
        # What a person wrote into the configuration counts more than what a client once asked for.
        counts = {**self._chosen, **self._configured}
        self._store.settings = replace(self._store.settings, topic_partitions=counts)
