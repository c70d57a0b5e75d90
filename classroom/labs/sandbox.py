"""A student's program in a process of its own, as the grader sees it: objects whose methods are called over there.

    with Sandbox(package, scratch, "messages") as student:
        student.encode(b"hello")                 # a function of the student's module
        log = student.Log("/…/scratch", 100)      # an object that stays in the student's process
        log.append(b"…")

Whatever goes wrong over there (an exception, a crash, no answer in time) is a ``StudentError`` here. Nothing that comes
back is run: answers are plain values, and an object of the student's is only a number.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from classroom.labs import values

_CHILD = Path(__file__).with_name("child.py")


class StudentError(Exception):
    """The student's program raised, died or did not answer."""

    def __init__(self, text: str, kinds: Sequence[str] = (), args: Sequence[Any] = ()) -> None:
        self.kinds, self.values = tuple(kinds), tuple(args)
        super().__init__(text)

    def is_a(self, kind: str) -> bool:
        """Whether it is an exception of a class of that name, or of one derived from it."""
        return kind in self.kinds


_MOST_PATIENCE = 12
"""On a busy machine a program gets at most so many times its time."""


class Overdue(StudentError):
    """The student's program did not answer in time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process of a student may use."""

    wall_s: float = 10.0
    cpu_s: int = 20
    memory_bytes: int = 512 << 20
    file_bytes: int = 64 << 20
    open_files: int = 64


def starved_s(process: str) -> float:
    """How long a process of /proc (its main thread), or the ``thread-self``, was ready to run and got no processor."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class Handle:
    """An object in the student's process. Calling a method here calls it there."""

    def __init__(self, sandbox: Sandbox, number: int, kind: str) -> None:
        self._sandbox, self._number, self._kind = sandbox, number, kind

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("__"):
            raise AttributeError(method)
        return lambda *args: self._sandbox.demand({"on": self._number, "call": method}, args)

    def __repr__(self) -> str:
        return f"<the student's {self._kind}>"


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket to hand over."""

    fd: int


class Sandbox:
    """One student's process. Thread: one. Start it with ``with``; it is gone afterwards, whatever happened."""

    def __init__(
        self,
        package: Path,
        scratch: Path,
        module: str,
        *,
        given: Sequence[str] = (),
        objects: Mapping[str, Any] | None = None,
        made: Mapping[str, Callable[..., Any]] | None = None,
        errors: tuple[type[Exception], ...] = (OSError,),
        limits: Limits | None = None,
        keep: Sequence[int] = (),
    ) -> None:
        """``objects``: what the student may ask, by name. ``made``: dataclasses of given modules, rebuilt here.
        ``errors``: exceptions of those objects that the student is told of; any other is a fault of the grader's."""
        self._package, self._scratch, self._module, self._given = package, scratch, module, tuple(given)
        self._objects, self._made, self._errors = objects or {}, made or {}, errors
        self._limits, self._keep = limits or Limits(), tuple(keep)
        self._process: subprocess.Popen[bytes] | None = None
        self._said: BinaryIO | None = None

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair()
        self._line = ours
        self._said = (self._scratch.parent / f"{self._scratch.name}.said").open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(_CHILD), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            cwd=self._scratch,
            env={"HOME": str(self._scratch), "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"},
            pass_fds=(theirs.fileno(), *self._keep),
            start_new_session=True,
        )
        theirs.close()
        self._began, self._starved_before = time.monotonic(), starved_s("thread-self")
        bounds = {name: getattr(self._limits, name) for name in ("cpu_s", "memory_bytes", "file_bytes", "open_files")}
        values.send(ours, {"package": str(self._package), "scratch": str(self._scratch), "limits": bounds})
        try:
            self._exchange({"load": self._module, "given": list(self._given)})
        except StudentError:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The process id of the student's program."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """kill -9, as in a crash; what the program wrote to its files stays."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._line.close()

    def said(self) -> str:
        """The end of what the program printed. It is for the student to read and counts for nothing."""
        if self._said is None:
            return ""
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - 2000))
        return self._said.read().decode(errors="replace")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args: self.demand({"call": name}, args)

    def demand(self, what: dict[str, Any], args: Sequence[Any] = ()) -> Any:
        """Call something over there and wait for its value."""
        return self._value(self._exchange({**what, "args": self._pack(list(args))}))

    def fresh(self, name: str, *args: Any) -> Any:
        """Call something in a copy of the student's module that shares nothing with other copies."""
        return self.demand({"fresh": True, "call": name}, args)

    def begin(self, name: str, *args: Any) -> None:
        """Call a function that is not expected to return."""
        values.send(self._line, {"call": name, "args": self._pack(list(args))})

    def fileno(self) -> int:
        """The line to the process, for ``select``: readable when a function that was begun has ended."""
        return self._line.fileno()

    def ended(self) -> None:
        """Say why a function that was begun has ended; call it when the line is readable."""
        self._line.settimeout(1.0)
        try:
            answer = values.receive(self._line)
        except (OSError, ValueError):
            answer = None
        if answer is None:
            raise StudentError(f"your program ended: {self._end()}")
        if "error" in answer:
            raise _raised(answer["error"])
        raise StudentError("your function returned; it should go on until it is stopped")

    def resume(self, generator: Handle, value: Any = None, error: tuple[str, Sequence[Any]] | None = None) -> Any:
        """Give a generator of the student's its answer: ``(True, what it yields next)`` or ``(False, result)``."""
        frame: dict[str, Any] = {"resume": generator._number}
        frame |= {"value": self._pack(value)} if error is None else {"error": [error[0], list(error[1])]}
        answer = self._exchange(frame)
        return ("yielded" in answer, self._unpack(answer.get("yielded", answer.get("returned"))))

    def _left_s(self) -> float:
        """What is left of the time; while the machine had no processor for either side the clock stood still."""
        assert self._process is not None
        starved = starved_s(str(self._process.pid)) + starved_s("thread-self") - self._starved_before
        allowed = min(self._limits.wall_s + max(starved, 0.0), self._limits.wall_s * _MOST_PATIENCE)
        return self._began + allowed - time.monotonic()

    def _await_word(self) -> None:
        """Wait until the student's program says something; TimeoutError if its time is over before."""
        ready = select.poll()
        ready.register(self._line, select.POLLIN)
        while not ready.poll(1000 * max(self._left_s(), 0.0)):
            if self._left_s() <= 0:
                raise TimeoutError
        self._line.settimeout(self._limits.wall_s)

    # -- the line ------------------------------------------------------------------------------------------------

    def _exchange(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Send a frame; serve what the student's program asks meanwhile; its answer, or a StudentError."""
        try:
            values.send(self._line, frame)
            while True:
                self._await_word()
                answer = values.receive(self._line)
                if answer is None:
                    raise StudentError(f"your program ended: {self._end()}")
                if "ask" not in answer:
                    break
                values.send(self._line, self._serve(answer))
        except TimeoutError:
            self.kill()
            raise Overdue(f"your program did not answer within {self._limits.wall_s:g} s") from None
        except (OSError, ValueError) as error:
            raise StudentError(f"your program ended: {self._end()} ({error})") from None
        if "error" in answer:
            raise _raised(answer["error"])
        return answer

    def _serve(self, asked: dict[str, Any]) -> dict[str, Any]:
        target = self._objects.get(str(asked["ask"]))
        method = getattr(target, str(asked["call"]), None)
        if method is None or str(asked["call"]).startswith("_"):
            return {"error": ["RuntimeError", [f"there is no {asked['ask']}.{asked['call']}"]]}
        try:
            return {"value": self._pack(method(*self._unpack(asked["args"])))}
        except self._errors as error:
            args = [arg for arg in error.args if isinstance(arg, int | str)]
            return {"error": [type(error).__name__, args]}
        except TypeError as error:
            return {"error": ["RuntimeError", [f"{asked['ask']}.{asked['call']}: {error}"]]}

    def _value(self, answer: dict[str, Any]) -> Any:
        return self._unpack(answer.get("value"))

    def _pack(self, value: Any) -> Any:
        return values.pack(value, self._named)

    def _named(self, value: Any) -> Any:
        if isinstance(value, Handle):
            return {"h": value._number}
        if isinstance(value, Listener):
            return {"l": value.fd}
        if isinstance(value, Path):
            return str(value)
        for name, known in self._objects.items():
            if known is value:
                return {"p": name}
        fields = getattr(type(value), "__dataclass_fields__", None)
        if fields is not None:
            return {"d": type(value).__name__, "f": {name: self._pack(getattr(value, name)) for name in fields}}
        raise TypeError(f"{value!r} cannot be sent to a student's process")

    def _unpack(self, packed: Any) -> Any:
        return values.unpack(packed, self._meant)

    def _meant(self, packed: dict[str, Any]) -> Any:
        if "d" in packed:
            make = self._made.get(str(packed["d"]))
            if make is None:
                raise StudentError(f"your program gave a {packed['d']}, which nobody asked for")
            try:
                return make(**{name: self._unpack(value) for name, value in packed["f"].items()})
            except TypeError as error:
                raise StudentError(f"your program gave a {packed['d']} that is not one: {error}") from None
        return Handle(self, int(packed["h"]), str(packed.get("t", "object")))

    def _end(self) -> str:
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(1.0)
            if code == -signal.SIGXCPU:
                return f"more than {self._limits.cpu_s} s of processor time"
            if code == -signal.SIGXFSZ:
                return f"a file larger than {self._limits.file_bytes} bytes"
            return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return "no answer"


def _raised(error: dict[str, Any]) -> StudentError:
    kinds = [str(kind) for kind in error["kinds"]]
    text = f"{kinds[0]}: {error['text']}" if error["text"] else kinds[0]
    if error["lines"]:
        text += f" ({' > '.join(map(str, error['lines']))})"
    return StudentError(text, kinds, error["args"])
