"""What the brokers' ``/state`` say, in the words of a frame."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

State = dict[str, Any]


def broker_view(known: Mapping[str, Any], state: State | None) -> dict[str, Any]:
    """One broker: where it is, whether it is registered, and its counters."""
    counters = (state or {}).get("counters", {})
    return {
        "host": known["host"],
        "port": known["port"],
        "alive": known["alive"],
        "connections": (state or {}).get("connections"),
        "principals": (state or {}).get("principals", {}),
        "modern": _modern_address(state or {}),
        **_members(state or {}),
        "counters": {
            "bytes_in": counters.get("appended_bytes", 0),
            "bytes_out": sum(counters.get("fetched_bytes", {}).values()),
            "messages_in": counters.get("appended_messages", 0),
        },
    }


def _members(state: State) -> dict[str, Any]:
    """Of a broker with standbys: which member leads, in which epoch, and who is in sync."""
    standby = state.get("plugins", {}).get("standby", {})
    if "in_sync" not in standby:
        return {}
    return {"standby": {name: standby[name] for name in ("member", "epoch", "in_sync")}}


def _held(state: State, partition: str) -> dict[str, Any]:
    """Of a partition with standbys: what readers may see, how far each member has come, where each epoch began."""
    standby = state.get("plugins", {}).get("standby", {})
    known = standby.get("partitions", {}).get(partition)
    if known is None:
        return {}
    ends = standby.get("ends", {}).get(partition, {})
    in_sync = standby.get("in_sync", [])
    leader = standby["member"]
    return {"flushed": known["watermark"],
            "held": {"leader": leader, "in_sync": in_sync, "ends": ends, "epochs": known["epochs"]}}  # fmt: skip


def _modern_address(state: State) -> list[Any] | None:
    modern = state.get("plugins", {}).get("modern", {})
    return [modern["host"], modern["port"]] if modern.get("port") else None


def _modern_log(log: Mapping[str, Any]) -> dict[str, Any]:
    """A modern log in the words of a frame. Its offsets count records; what is below the high watermark can be read."""
    readable = log["high_watermark"]
    return {
        "era": "modern",
        "first": log["start"],
        "flushed": readable,
        "end": log["end"],
        "size": sum(segment["size"] for segment in log["segments"]),
        "segments": [
            [s["start"], s["end"] - s["start"], max(min(s["end"], readable) - s["start"], 0)] for s in log["segments"]
        ],
        "files": [[s["start"], s["size"], s["index"], s["time_index"]] for s in log["segments"]],
        "cleanup": log["cleanup"],
        "missing": [],
    }


def topics_view(states: Mapping[str, State], before: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every partition's files; a partition that is as it was in ``before`` is the same object."""
    topics: dict[str, dict[str, Any]] = {}
    for number, state in states.items():
        for topic, known in state.get("topics", {}).items():
            if topic.startswith("__"):
                continue
            for partition, log in known["partitions"].items():
                name = f"{number}-{partition}"
                seen = {
                    "first": log["first_offset"],
                    "flushed": log["flushed_offset"],
                    "end": log["end_offset"],
                    "size": log["size"],
                    "segments": [[s["start"], s["size"], s["flushed_size"]] for s in log["segments"]],
                    "missing": state.get("missing", {}).get(f"{topic}-{partition}", []),
                } | _held(state, f"{topic}-{partition}")
                old = before.get(topic, {}).get(name)
                topics.setdefault(topic, {})[name] = old if old == seen else seen
        for topic, logs in state.get("plugins", {}).get("modern", {}).get("logs", {}).items():
            if topic.startswith("__"):
                continue
            for partition, log in logs.items():
                name, seen = f"{number}-{partition}", _modern_log(log)
                old = before.get(topic, {}).get(name)
                topics.setdefault(topic, {})[name] = old if old == seen else seen
    return topics


def readable_ends(topics: Mapping[str, Mapping[str, Any]], alive: Set[str]) -> dict[str, dict[str, int]]:
    """Topic -> partition -> end of what can be read, of the partitions whose broker is registered."""
    return {
        topic: {name: log["flushed"] for name, log in logs.items() if name.partition("-")[0] in alive}
        for topic, logs in topics.items()
    }


def modern_groups(states: Mapping[str, State], alive: Set[str]) -> dict[str, dict[str, Any]]:
    """The groups of today's protocol. The broker that has members coordinates; another may remember only offsets.

    What a broker said before it went is believed only where no broker that is there knows the group.
    """
    gone: dict[str, dict[str, Any]] = {}
    here: dict[str, dict[str, Any]] = {}
    for number, state in states.items():
        groups = here if number in alive else gone
        away = {} if number in alive else {"state": f"broker {number}, its coordinator, is gone"}
        for name, known in state.get("plugins", {}).get("modern", {}).get("groups", {}).items():
            if name not in groups or known["members"]:
                groups[name] = {"kind": "modern"} | known | away
    return gone | here
