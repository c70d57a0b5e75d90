"""Small frames for the tests of the page."""

from __future__ import annotations

from classroom.observatory.frames import Film, Frame


def frame(t: int, owners: dict[str, str] | None = None, **more: object) -> Frame:
    """A frame at ``t`` with one broker, one topic of two partitions and one group."""
    owned = {"ada": ["0-0", "0-1"]} if owners is None else {}
    held = owners if owners is not None else {name: member for member, names in owned.items() for name in names}
    members = sorted(set(held.values()))
    partition = {"first": 0, "flushed": 900, "end": 1000, "size": 1000, "segments": [[0, 600, 600], [600, 400, 300]]}
    made: Frame = {
        "t": t,
        "brokers": {"0": {"host": "h", "port": 1, "alive": True, "connections": 2, "counters": {"bytes_in": t}}},
        "topics": {"clicks": {"0-0": partition, "0-1": partition}},
        "groups": {
            "g": {
                "kind": "algorithm1",
                "state": "reading",
                "members": members,
                "owners": {"clicks": held},
                "offsets": {"clicks": {"0-0": 400, "0-1": 900}},
            }
        },
        "tree": [["/consumers", "", None, False], ["/consumers/g/ids/ada", "x", "0x1", False]],
        "events": [],
        "loads": [],
    }
    return made | more


def film(*frames: Frame) -> Film:
    return Film(frames)
