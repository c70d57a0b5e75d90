"""Named places where a test may make the program fail, one dict lookup when off.

``fail_point("log.flush.before_fsync")`` stands at each durable step. Switch one on from a test with
``activate`` or from outside with the environment:

    KAFKA2011_FAILPOINTS="log.roll.after_create=kill; log.flush.before_fsync=raise:EIO@3"

Actions: ``kill`` (SIGKILL oneself), ``exit`` (exit code 70), ``raise:ERRNO``, ``sleep:SECONDS``, ``off``; ``@n``
strikes at the n-th hit only. Where a place has a content, ``kill:TEXT`` strikes only if that contains TEXT.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "KAFKA2011_FAILPOINTS"

Content = Callable[[], bytes]

_active: dict[str, _Action] = {}
_lock = threading.Lock()


class _Action:
    def __init__(self, text: str) -> None:
        what, at, hit = text.partition("@")
        self.verb, _, self.argument = what.strip().partition(":")
        if self.verb not in ("kill", "exit", "raise", "sleep", "off"):
            raise ValueError(f"failpoint action {text!r}: use kill, exit, raise:ERRNO, sleep:SECONDS or off")
        if self.verb == "raise" and not hasattr(errno, self.argument):
            raise ValueError(f"failpoint action {text!r}: {self.argument!r} is not the name of an errno")
        self.hit = int(hit) if at else None
        self.seen = 0

    def strike(self, name: str, content: Content | None) -> None:
        if self.verb == "kill" and self.argument and self.argument.encode() not in (content() if content else b""):
            return
        with _lock:
            self.seen += 1
            if self.hit is not None and self.seen != self.hit:
                return
        if self.verb == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.verb == "exit":
            os._exit(70)
        elif self.verb == "raise":
            number: int = getattr(errno, self.argument)
            raise OSError(number, f"{os.strerror(number)} (failpoint {name})")
        elif self.verb == "sleep":
            time.sleep(float(self.argument))


def fail_point(name: str, content: Content | None = None) -> None:
    """Do nothing, unless this place was switched on; ``content`` is what is being worked on here."""
    action = _active.get(name)
    if action is not None:
        action.strike(name, content)


@contextmanager
def activate(name: str, action: str) -> Iterator[None]:
    """Switch one failpoint on for the length of a ``with`` block."""
    _active[name] = _Action(action)
    try:
        yield
    finally:
        _active.pop(name, None)


def load(text: str | None = None) -> None:
    """Switch on what ``text`` (default: the environment) names."""
    for part in (os.environ.get(VARIABLE, "") if text is None else text).split(";"):
        if part.strip():
            name, _, action = part.partition("=")
            _active[name.strip()] = _Action(action.strip())


load()
