"""The student's process: load the package, then do what the grader asks, one frame at a time.

Started by ``sandbox.py`` as ``python -I -S -B child.py FD``; needs the standard library only. The grader keeps all
tests and all expected answers: this process only computes.

| frame | answer |
|---|---|
| ``{"load": module}`` | its public names |
| ``{"new": name, "args": [...]}``, ``{"call": name, ...}`` | the value, or a handle of an object that stays here |
| ``{"on": handle, "call": name, "args": [...]}`` | the same, of a method |
| ``{"fresh": true, "call": ...}`` | the same, in a new copy of the module, which shares nothing with others |
| ``{"on": handle, "get": name}`` | an attribute |
| ``{"resume": handle, "value": v}`` or ``"error": [class, args]`` | ``{"yielded": v}`` or ``{"returned": v}`` |

While it works the program may turn to the grader's own objects (a disk, a registry): ``{"ask": name, "call": ...}``
goes the other way and is answered before anything else happens.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_HERE = os.path.dirname(os.path.realpath(__file__))


def _sibling(name: str) -> ModuleType:
    """A module beside this one, which is not on the search path."""
    spec = importlib.util.spec_from_file_location(f"_lab_{name}", os.path.join(_HERE, f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Remote:
    """An object of the grader, as the student's program sees it: calling a method asks the grader."""

    def __init__(self, worker: Worker, name: str) -> None:
        self.__worker, self.__name = worker, name

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)
        return lambda *args: self.__worker.ask(self.__name, method, args)

    def __repr__(self) -> str:
        return f"<{self.__name}>"


class Worker:
    """Answers the grader's frames. Threads: the student's own may ask only while a call is being answered."""

    def __init__(self, line: socket.socket, values: ModuleType) -> None:
        self._line, self._values = line, values
        self._module: ModuleType | None = None
        self._given: list[ModuleType] = []
        self._kept: dict[int, Any] = {}

    def serve(self) -> None:
        """Answer until the grader hangs up."""
        while (frame := self._values.receive(self._line)) is not None:
            self._values.send(self._line, self._answer(frame))

    def ask(self, name: str, method: str, args: tuple[Any, ...]) -> Any:
        """Call a method of an object of the grader's."""
        self._values.send(self._line, {"ask": name, "call": method, "args": self._pack(list(args))})
        answer = self._values.receive(self._line)
        if answer is None:
            raise SystemExit
        if "error" in answer:
            raise self._error(answer["error"])
        return self._unpack(answer["value"])

    def _answer(self, frame: dict[str, Any]) -> dict[str, Any]:
        try:
            if "load" in frame:
                self._given = [importlib.import_module(name) for name in frame["given"]]
                self._module = importlib.import_module(frame["load"])
                return {"value": sorted(name for name in vars(self._module) if not name.startswith("_"))}
            if "resume" in frame:
                return self._resume(self._kept[frame["resume"]], frame)
            owner = self._kept[frame["on"]] if "on" in frame else self._module
            if "fresh" in frame:
                owner = self._copy()
            if "get" in frame:
                return {"value": self._pack(getattr(owner, frame["get"]))}
            function = getattr(owner, frame["call"])
            return {"value": self._pack(function(*self._unpack(frame["args"])))}
        except BaseException as error:
            return {"error": _described(error)}

    def _copy(self) -> ModuleType:
        """The student's module, run once more: two objects of different copies share nothing."""
        assert self._module is not None and self._module.__spec__ is not None
        copy = importlib.util.module_from_spec(self._module.__spec__)
        assert self._module.__spec__.loader is not None
        self._module.__spec__.loader.exec_module(copy)
        return copy

    def _resume(self, generator: Any, frame: dict[str, Any]) -> dict[str, Any]:
        try:
            if "error" in frame:
                step = generator.throw(self._error(frame["error"]))
            else:
                step = generator.send(self._unpack(frame["value"]))
        except StopIteration as end:
            return {"returned": self._pack(end.value)}
        return {"yielded": self._pack(step)}

    def _error(self, packed: list[Any]) -> BaseException:
        kind, args = packed
        for module in self._given:
            if isinstance(found := getattr(module, kind, None), type) and issubclass(found, BaseException):
                return found(*args)
        builtin = {"OSError": OSError, "ValueError": ValueError, "KeyError": KeyError}.get(kind, RuntimeError)
        return builtin(*args)

    def _pack(self, value: Any) -> Any:
        return self._values.pack(value, self._keep)

    def _keep(self, value: Any) -> Any:
        given = {module.__name__ for module in self._given}
        fields = getattr(type(value), "__dataclass_fields__", None)
        if fields is not None and type(value).__module__ in given:
            return {"d": type(value).__name__, "f": {name: self._pack(getattr(value, name)) for name in fields}}
        if isinstance(value, int | float | str):  # a subclass, such as an enum
            return self._values.pack(value.real if isinstance(value, int) else str(value), self._keep)
        if isinstance(value, tuple):
            return [self._pack(item) for item in value]
        number = len(self._kept) + 1
        self._kept[number] = value
        return {"h": number, "t": type(value).__name__}

    def _unpack(self, packed: Any) -> Any:
        return self._values.unpack(packed, self._meant)

    def _meant(self, packed: dict[str, Any]) -> Any:
        if "l" in packed:
            return socket.socket(fileno=packed["l"])
        if "p" in packed:
            return Remote(self, packed["p"])
        if "h" in packed:
            return self._kept[packed["h"]]
        for module in self._given:
            if (made := getattr(module, packed["d"], None)) is not None:
                return made(**{name: self._unpack(value) for name, value in packed["f"].items()})
        raise ValueError(f"nobody knows {packed['d']!r}")


def _described(error: BaseException) -> dict[str, Any]:
    """An exception for the report: its kind, what it says, and the student's lines it passed."""
    lines, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith((_HERE, "<frozen")):
            lines.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    kinds = [kind.__name__ for kind in type(error).__mro__]
    plain = [arg for arg in error.args if isinstance(arg, int | str)]
    return {"kinds": kinds, "text": str(error)[:500], "args": plain, "lines": lines[-4:]}


def main() -> None:
    """Put the fences up and serve."""
    line = socket.socket(fileno=int(sys.argv[1]))
    values, fence = _sibling("values"), _sibling("fence")
    order = values.receive(line)
    assert order is not None
    os.chdir(order["scratch"])
    worker = Worker(line, values)
    fence.limit(**order["limits"])
    fence.close(order["package"], order["scratch"])
    worker.serve()


if __name__ == "__main__":
    main()
