"""The consumer registry: who is in a group, and what each member subscribes to.

| subscription | text in the member's node |
|---|---|
| fixed topics | ``{ "topic1": 4,"topic2": 2 }`` |
| all topics a pattern matches | ``*4*white.*`` |
| all topics a pattern does not match | ``!2!black.*`` |

The numbers are streams. The text is written exactly as 0.7 writes it; read as JSON in any spacing, or as a bare topic
name, which the old Python client samsa writes. Anything else is no subscription; neither is a pattern that could keep
its readers busy for long (``patterns.py``).

Paper: §3.2, "the consumer registry stores the consumer group to which a consumer belongs and the set of topics that it
subscribes to".
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kafka2011.errors import ConfigError
from kafka2011.events import Journal
from kafka2011.types import is_legal_name
from zk_registry import paths
from zk_registry.events import NodeIgnored
from zk_registry.operations import Children, Create, DeleteIfMine, Get, NoNode, Registry
from zk_registry.patterns import checked

MAX_STREAMS = 1000
MAX_TEXT = 100_000
_FILTER = re.compile(r"([*!])(\d{1,4})\1(.{1,1000})\Z", re.ASCII)


@dataclass(frozen=True)
class Subscription:
    """What one consumer wants: streams of fixed topics, or ``n_streams`` over all topics that pass a filter."""

    streams: Mapping[str, int] | None = None
    pattern: str = ""
    n_streams: int = 0
    excludes: bool = False

    @classmethod
    def fixed(cls, streams: Mapping[str, int]) -> Subscription:
        """Subscribe to named topics, each with its number of streams."""
        for topic, n in streams.items():
            if not is_legal_name(topic) or not 0 < n <= MAX_STREAMS:
                raise ConfigError(f"cannot subscribe to {topic!r} with {n} streams: a legal name, 1 to {MAX_STREAMS}")
        return cls(dict(streams))

    @classmethod
    def whitelist(cls, pattern: str, n_streams: int = 1) -> Subscription:
        """Subscribe to every topic whose whole name the pattern matches; ``,`` means "or"."""
        return cls._filter(pattern, n_streams, excludes=False)

    @classmethod
    def blacklist(cls, pattern: str, n_streams: int = 1) -> Subscription:
        """Subscribe to every topic whose whole name the pattern does not match."""
        return cls._filter(pattern, n_streams, excludes=True)

    @classmethod
    def _filter(cls, pattern: str, n_streams: int, *, excludes: bool) -> Subscription:
        normal = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
        if not normal or not 0 < n_streams <= MAX_STREAMS:
            raise ConfigError(f"the topic filter {pattern!r} with {n_streams} streams is empty, or asks for too many")
        checked(normal)
        return cls(None, normal, n_streams, excludes)

    @cached_property
    def _matches(self) -> re.Pattern[str]:
        return checked(self.pattern)

    @property
    def topics(self) -> tuple[str, ...] | None:
        """The fixed topics, sorted; None for a filter."""
        return None if self.streams is None else tuple(sorted(self.streams))

    def streams_of(self, topic: str) -> int:
        """How many streams this consumer has for ``topic``; 0 if it does not want it."""
        if self.streams is not None:
            return self.streams.get(topic, 0)
        return self.n_streams if (self._matches.fullmatch(topic) is None) is self.excludes else 0

    def encode(self) -> bytes:
        """The text of the node, byte for byte as 0.7 writes it."""
        if self.streams is None:
            mark = "!" if self.excludes else "*"
            return f"{mark}{self.n_streams}{mark}{self.pattern}".encode()
        return ("{ " + ",".join(f'"{topic}": {n}' for topic, n in self.streams.items()) + " }").encode()


@lru_cache(maxsize=1024)
def parse_subscription(value: bytes) -> Subscription | None:
    """Read a member's node; None if it is not a subscription."""
    if len(value) > MAX_TEXT:
        return None
    try:
        text = value.decode("utf-8").strip()
        found = _FILTER.match(text)
        if found is not None:
            mark, n_streams, pattern = found.groups()
            return Subscription._filter(pattern, int(n_streams), excludes=mark == "!")
        if is_legal_name(text):
            return Subscription({text: 1})
        streams = json.loads(text)
        if not isinstance(streams, dict) or not all(type(n) is int for n in streams.values()):
            return None
        return Subscription.fixed(streams)
    except (ValueError, RecursionError, ConfigError):
        return None


def new_consumer_id(group: str, host: str, wall_ms: int, configured: str | None = None) -> str:
    """``<group>_<host>-<ms>-<8 hex digits>``, or ``<group>_<configured>``."""
    return f"{group}_{configured}" if configured else f"{group}_{host}-{wall_ms}-{uuid.uuid4().hex[:8]}"


class ConsumerRegistry:
    """The members of one group. Thread: as its registry."""

    def __init__(self, registry: Registry, group: str, *, journal: Journal | None = None) -> None:
        self._registry, self._group, self._journal = registry, group, journal or Journal()

    def register(self, consumer_id: str, subscription: Subscription) -> None:
        """Enter a member, for as long as the session lasts; NodeExists if the id is taken."""
        path = paths.consumer_id(self._group, consumer_id)
        self._registry.perform(Create(path, subscription.encode(), ephemeral=True, make_parents=True))

    def leave(self, consumer_id: str) -> bool:
        """Take a member of this session out; False if there was none."""
        return bool(self._registry.perform(DeleteIfMine(paths.consumer_id(self._group, consumer_id))))

    def members(self) -> dict[str, Subscription]:
        """Everyone whose subscription can be read, by consumer id."""
        found: dict[str, Subscription] = {}
        try:
            names = self._registry.perform(Children(paths.consumer_ids(self._group)))
        except NoNode:
            return found
        for name in names:
            path = f"{paths.consumer_ids(self._group)}/{name}"
            try:
                subscription = parse_subscription(self._registry.perform(Get(path)).value)
            except NoNode:
                continue
            if subscription is None:
                self._journal.emit(NodeIgnored(path=path, reason="not a subscription"))
            else:
                found[name] = subscription
        return found


def groups(registry: Registry) -> list[str]:
    """Every group that ever registered or stored an offset."""
    try:
        return [name for name in registry.perform(Children(paths.CONSUMERS)) if is_legal_name(name)]
    except NoNode:
        return []
