"""One frame as the page shows it: the overview, the chosen topic and the chosen group.

The frame may hold a thousand partitions and fifty groups; the view holds what one pane can show, so the page
stays quick whatever the size of the cluster.
"""

from __future__ import annotations

from typing import Any

from classroom.observatory.frames import Film, Frame, broker_is_gone, bytes_written, is_modern
from classroom.observatory.lanes import lanes
from classroom.observatory.marks import MOST
from classroom.observatory.overview import flow
from classroom.observatory.readers import BROKER_GONE, called

WINDOW_MS = 180_000
TREE_NODES = 2_000
PARTITIONS = 200
EVENTS = 60
REBALANCES = 40
CHANGES = 80


def project(film: Film, frame: Frame, *, topic: str, group: str, pane: str) -> dict[str, Any]:
    """The view of ``frame`` for one pane. Unknown topic: the largest there is; unknown group: the first."""
    t = int(frame["t"])
    topics = sorted(frame["topics"])
    names = sorted(frame["groups"])
    topic = topic if topic in frame["topics"] else max(topics, key=lambda name: _size(name, frame), default="")
    group = group if group in frame["groups"] else (names[0] if names else "")
    window = film.between(t - WINDOW_MS, t)
    before = window[max(0, len(window) - 6)] if window else frame
    view: dict[str, Any] = {
        "t": t,
        "first": film.first,
        "last": film.last,
        "window": [max(film.first, t - WINDOW_MS), t],
        "brokers": [_broker(number, frame, before) for number in sorted(frame["brokers"], key=int)],
        "topics": topics,
        "groups": [_group_row(name, frame) for name in names],
        "chosen": {"topic": topic, "group": group},
        "topic": _topic(topic, frame) if topic and pane in ("segments", "browse") else None,
        "topic_table": [],
        "group": None,
        "lanes": [],
        "rebalances": [],
        "tree": [],
        "tree_cut": False,
        "changes": [],
        "events": [],
        "loads": frame["loads"] if pane == "load" else [],
        "marks": film.marks(MOST),
        "flow": flow(frame, before, window) if pane == "overview" else None,
    }
    if pane == "brokers":
        view["topic_table"] = [_topic_row(name, frame, before) for name in topics]
        view["events"] = _events(window)[:EVENTS]
    elif pane == "groups" and group:
        view["group"] = _group(group, frame, window)
    elif pane == "ownership":
        # The chosen group first, then one of the other kind, so that both worlds stand on one axis.
        kinds = {name: frame["groups"][name]["kind"] for name in names}
        others = [name for name in names if kinds[name] != kinds.get(group)][:1]
        view["lanes"] = [found for name in [group, *others] if name and (found := lanes(window, name))]
        view["rebalances"] = [
            event["rebalance"] | {"t": event["t"]}
            for event in _events(window)
            if "rebalance" in event and event["rebalance"]["group"] in (group, *others)
        ][:REBALANCES]
    elif pane == "zookeeper":
        view["tree"] = _tree(frame, window)[:TREE_NODES]
        view["tree_cut"] = len(frame["tree"]) > TREE_NODES or any(g.get("partial") for g in frame["groups"].values())
        view["changes"] = [
            {"t": seen["t"], "path": path, "change": change, "session": session}
            for seen in reversed(window)
            for path, change, session in seen.get("changes", [])
        ][:CHANGES]
    return view


def _counter(frame: Frame, broker: str, name: str) -> float | None:
    counters: dict[str, float] = frame["brokers"].get(broker, {}).get("counters", {})
    return counters.get(name)


def _rate(now: Frame, before: Frame, broker: str, name: str) -> float | None:
    new, old = _counter(now, broker, name), _counter(before, broker, name)
    seconds = float(now["t"] - before["t"]) / 1000
    if new is None or old is None or seconds <= 0 or new < old:
        return None
    return (new - old) / seconds


def _broker(number: str, frame: Frame, before: Frame) -> dict[str, Any]:
    known = frame["brokers"][number]
    size = sum(
        partition["size"]
        for partitions in frame["topics"].values()
        for name, partition in partitions.items()
        if name.startswith(f"{number}-")
    )
    return {
        "id": int(number),
        "host": known["host"],
        "port": known["port"],
        "alive": known["alive"],
        "connections": known.get("connections"),
        "principals": known.get("principals", {}),
        "size": size,
        "in_rate": _rate(frame, before, number, "bytes_in"),
        "out_rate": _rate(frame, before, number, "bytes_out"),
        "message_rate": _rate(frame, before, number, "messages_in"),
    }


def _topic(topic: str, frame: Frame) -> dict[str, Any]:
    stored = {
        group: known["offsets"].get(topic, {}) for group, known in frame["groups"].items() if topic in known["offsets"]
    }
    shown = sorted(frame["topics"][topic].items(), key=lambda item: _numbers(item[0]))[:PARTITIONS]
    partitions = []
    for name, known in shown:
        groups = {group: offsets[name] for group, offsets in stored.items() if name in offsets}
        broker = name.partition("-")[0]
        gone = int(broker) if broker_is_gone(frame, broker) else None
        seen = known | {"name": name, "groups": groups, "gone": gone}
        partitions.append(seen if gone is None else seen | _proved_ends(known, groups))
    return {"name": topic, "partitions": partitions}


def _proved_ends(known: dict[str, Any], groups: dict[str, int]) -> dict[str, Any]:
    """The ends of a log whose broker is gone, seen at the last look.

    It grew after that look: what a group has stored was readable.
    """
    flushed = max([known["flushed"], *groups.values()])
    *files, (start, size, flushed_size) = known["segments"] or [[known["first"], 0, 0]]
    grown = [start, max(size, flushed - start), max(flushed_size, flushed - start)]
    return {"flushed": flushed, "end": max(known["end"], flushed), "segments": [*files, grown]}


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("-"))


def _topic_row(topic: str, frame: Frame, before: Frame) -> dict[str, Any]:
    partitions = frame["topics"][topic]
    ends = sum(map(bytes_written, partitions.values()))
    earlier = sum(map(bytes_written, before["topics"].get(topic, {}).values()))
    seconds = (frame["t"] - before["t"]) / 1000
    return {
        "name": topic,
        "partitions": len(partitions),
        "segments": sum(len(partition["segments"]) for partition in partitions.values()),
        "size": _size(topic, frame),
        "rate": (ends - earlier) / seconds if seconds > 0 and ends >= earlier else None,
    }


def places(group: str, frame: Frame) -> list[dict[str, Any]]:
    """Every partition of the group's topics with owner, stored offset, end and lag in bytes."""
    known = frame["groups"][group]
    rows = []
    for topic in sorted(set(known["owners"]) | set(known["offsets"])):
        names = set(known["owners"].get(topic, {})) | set(known["offsets"].get(topic, {}))
        names |= set(frame["topics"].get(topic, {}))
        for name in sorted(names, key=_numbers):
            end = frame["topics"].get(topic, {}).get(name, {}).get("flushed")
            offset = known["offsets"].get(topic, {}).get(name)
            rows.append(
                {
                    "topic": topic,
                    "partition": name,
                    "owner": known["owners"].get(topic, {}).get(name),
                    "offset": offset,
                    "end": end,
                    "lag": max(end - offset, 0) if end is not None and offset is not None else None,
                    "in_records": is_modern(frame["topics"].get(topic, {}).get(name, {})),
                }
            )
    return rows


def _lag(group: str, frame: Frame) -> int:
    """The sum of ``places``' lags, without making the rows: it is wanted of every group at every look."""
    lag = 0
    for topic, offsets in frame["groups"][group]["offsets"].items():
        logs = frame["topics"].get(topic, {})
        for name, offset in offsets.items():
            if name in logs and not is_modern(logs[name]):
                lag += max(logs[name]["flushed"] - offset, 0)
    return lag


def _group_row(group: str, frame: Frame) -> dict[str, Any]:
    known = frame["groups"][group]
    topics = known["owners"].keys() | known["offsets"].keys()
    partial = bool(known.get("partial"))
    return {
        "name": group,
        "kind": known["kind"],
        "state": known["state"],
        "members": len(known["members"]),
        "partitions": None if partial else sum(len(frame["topics"].get(topic, {})) for topic in topics),
        "lag": None if partial else _lag(group, frame),
    }


def _size(topic: str, frame: Frame) -> int:
    return sum(partition["size"] for partition in frame["topics"][topic].values())


def _group(group: str, frame: Frame, window: list[Frame]) -> dict[str, Any]:
    rows = places(group, frame)[:PARTITIONS]
    names = frame.get("names", {})
    for row in rows:
        row["behind_ms"] = _behind_ms(row, frame, window)
        row["name"] = called(row["owner"], names) if row["owner"] else None
        away = BROKER_GONE if broker_is_gone(frame, row["partition"].partition("-")[0]) else ""
        row["state"] = frame.get("not_reading", {}).get(row["owner"]) or away
    steps = window[:: max(1, len(window) // 60)]
    return {
        "name": group,
        "kind": frame["groups"][group]["kind"],
        "partitions": rows,
        "trend": [[seen["t"], _lag(group, seen)] for seen in steps if group in seen["groups"]],
    }


def _behind_ms(row: dict[str, Any], frame: Frame, window: list[Frame]) -> int | None:
    """How long ago the log's end was where the group's offset is now; None if longer than we remember."""
    if row["lag"] is None:
        return None
    if row["lag"] == 0:
        return 0
    for seen in reversed(window):
        end = seen["topics"].get(row["topic"], {}).get(row["partition"], {}).get("flushed")
        if end is not None and end <= row["offset"]:
            return int(frame["t"] - seen["t"])
    return None


def _events(window: list[Frame]) -> list[dict[str, Any]]:
    return [event for frame in reversed(window) for event in reversed(frame["events"])]


def _tree(frame: Frame, window: list[Frame]) -> list[dict[str, Any]]:
    """The nodes now, those new in the last five seconds marked, and those gone since then."""
    recent: dict[str, list[Any]] = {}
    for seen in window:
        if seen["t"] >= frame["t"] - 5_000:
            recent |= {change[0]: change for change in seen.get("changes", [])}
    nodes = [
        {
            "path": path,
            "value": value,
            "session": session,
            "watched": watched,
            "change": "new" if path in recent else None,
            # The bell rings when a child of a watched node came or went.
            "rings": watched and any(changed.rpartition("/")[0] == path for changed in recent),
        }
        for path, value, session, watched in frame["tree"]
    ]
    present = {node["path"] for node in nodes}
    nodes += [
        {"path": path, "value": "", "session": session, "watched": False, "change": "gone", "rings": False}
        for path, _, session in recent.values()
        if path not in present
    ]
    return sorted(nodes, key=lambda node: str(node["path"]))
