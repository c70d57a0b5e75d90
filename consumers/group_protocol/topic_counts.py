"""How many partitions a topic was created with, when an admin client said so.

In 2011 the number is a setting of the broker (``num.partitions``, ``topic.partition.count.map``). CreateTopics names
it per topic; what was named is kept in a small file, and added to the settings before the logs are opened.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from kafka2011.errors import ConfigError
from kafka2011.log.directory import sync_directory
from kafka2011.log.store import LogStore


class TopicCounts:
    """Partition counts by topic, on disk and in the store's settings. Thread: reactor."""

    def __init__(self, path: Path, store: LogStore) -> None:
        self._path, self._store = path, store
        self._configured = store.settings.topic_partitions
        self._chosen: dict[str, int] = {}
        if path.exists():
            try:
                self._chosen = {str(topic): int(count) for topic, count in json.loads(path.read_text()).items()}
            except (OSError, ValueError, AttributeError) as error:
                raise ConfigError(f"{path} cannot be read ({error}); restore it: it names partition counts") from error
        self._apply()

    def choose(self, topic: str, n_partitions: int) -> None:
        """Let ``topic``, which is not there yet, have this many."""
        self._chosen[topic] = n_partitions
        fresh = self._path.with_suffix(".new")
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(self._chosen, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._path)
        sync_directory(self._path.parent)
        self._apply()

    def _apply(self) -> None:
        # What a person wrote into the configuration counts more than what a client once asked for.
        counts = {**self._chosen, **self._configured}
        self._store.settings = replace(self._store.settings, topic_partitions=counts)
