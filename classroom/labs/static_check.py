"""Read a student's files before they are run: what no lab needs is refused with its line.

The fences around the process (``fence.py``) refuse the same at run time; here the student is told sooner, and code that
tries to get around them is not run at all.
"""

from __future__ import annotations

import ast
from pathlib import Path

from classroom.labs.fence import DANGEROUS, PRODUCT

MAX_FILES = 20
MAX_BYTES = 200_000
_CALLS = frozenset({"eval", "exec", "compile", "__import__", "breakpoint", "globals", "vars"})
_MODULES = DANGEROUS | {"importlib", "imp", "runpy", "pkgutil", "inspect", "gc", "code", "signal", "resource", "pickle"}
_ATTRIBUTES = frozenset(
    {"modules", "meta_path", "path_hooks", "settrace", "setprofile", "_getframe", "addaudithook", "_current_frames"}
)
_UNDER = frozenset(
    {"__subclasses__", "__globals__", "__builtins__", "__code__", "__closure__", "__loader__", "__spec__"}
)


def objections(package: Path, refuses: frozenset[str] = frozenset()) -> list[str]:
    """Why this package is not run, with file and line; empty if it is. ``refuses``: what this lab does not allow."""
    files = sorted(package.rglob("*.py"))
    if len(files) > MAX_FILES:
        return [f"{len(files)} files; a lab has at most {MAX_FILES}"]
    found: list[str] = []
    for path in files:
        name = str(path.relative_to(package))
        if path.is_symlink() or not path.is_file():
            found.append(f"{name}: not a plain file")
        elif path.stat().st_size > MAX_BYTES:
            found.append(f"{name}: larger than {MAX_BYTES} bytes")
        else:
            found += [f"{name}{text}" for text in _of_text(path.read_bytes(), refuses)]
    return found


def _of_text(source: bytes, refuses: frozenset[str]) -> list[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return [f":{getattr(error, 'lineno', None) or 1}: {type(error).__name__}: {error}"]
    except RecursionError:
        return [":1: nested too deeply"]
    return [f":{line}: {why}" for line, why in sorted(_of_tree(tree, refuses))]


def _of_tree(tree: ast.AST, refuses: frozenset[str]) -> set[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()) if name in imported:
                found.add((node.lineno, f"changes {name}, which is not yours"))
            case ast.Import(names):
                found |= {(node.lineno, why) for alias in names if (why := _import(alias.name))}
            case ast.ImportFrom(module=module, names=names, level=0) if module is not None:
                whole = [module, *(f"{module}.{alias.name}" for alias in names)]
                found |= {(node.lineno, why) for name in whole if (why := _import(name))}
                if refused := refuses & set(whole):
                    found.add((node.lineno, f"uses {min(refused)}, which this lab does not allow"))
            case ast.Attribute(value=ast.Name(id=module), attr=name) if f"{module}.{name}" in refuses:
                found.add((node.lineno, f"uses {module}.{name}, which this lab does not allow"))
            case ast.Name(id=name) if name in _CALLS or name in _UNDER:
                found.add((node.lineno, f"uses {name}, which no lab needs"))
            case ast.Attribute(value=ast.Name(id="sys"), attr=name) if name in _ATTRIBUTES:
                found.add((node.lineno, f"uses sys.{name}, which no lab needs"))
            case ast.Attribute(attr=name) if name in _UNDER:
                found.add((node.lineno, f"uses {name}, which no lab needs"))
            case _:
                pass
    return found


def _import(name: str) -> str | None:
    top = name.partition(".")[0]
    if top in PRODUCT:
        return f"imports {top}: a lab is written with the standard library only"
    if top in _MODULES:
        return f"imports {top}, which no lab needs"
    return None
