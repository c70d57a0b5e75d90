"""A page of docs/walks as a script: its ``sh`` blocks in order, each with the ``text`` block that shows its output.

In a ``text`` block an ellipsis stands for whatever varies: inside a line for any characters, alone on a line for any
lines. Everything else must be printed exactly.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "==== block"
PATIENCE_S = 150


@dataclass(frozen=True)
class Block:
    """Commands, and what they print; ``None`` where the page does not say."""

    line: int
    commands: str
    shown: str | None


def blocks(page: str) -> list[Block]:
    """The ``sh`` blocks of a page, each with the ``text`` block that comes before the next ``sh`` block."""
    found: list[Block] = []
    for fence in FENCE.finditer(page):
        kind, body = fence.groups()
        if kind == "sh":
            found.append(Block(page.count("\n", 0, fence.start()) + 2, body, None))
        elif kind == "text" and found and found[-1].shown is None:
            found[-1] = Block(found[-1].line, found[-1].commands, body)
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether what was printed is what the page shows."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed) is not None


def script(page_blocks: list[Block]) -> str:
    """One script; a mark before each block tells afterwards which output belongs to which."""
    parts = [f"printf '\\n{MARK} {number}\\n'\n{block.commands}" for number, block in enumerate(page_blocks)]
    return "set -euo pipefail\n" + "\n".join(parts) + f"\nprintf '\\n{MARK} end\\n'\n"


def run(page: str, directory: Path) -> list[str]:
    """Run the page in ``directory``; the output of each block. Nothing it started is left running."""
    output = directory.with_suffix(".out")
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("KAFKA2011_", "PYTHON", "PYTEST_"))
    }
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    environ["PYTHONUNBUFFERED"] = "1"  # results and notes in the order in which a terminal shows them
    with output.open("wb") as sink:
        shell = subprocess.Popen(
            ["bash", "-c", script(blocks(page))],
            cwd=directory,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the page has ended everything it started
            shell.wait()
    printed = output.read_text(errors="replace")
    if code != 0:
        logs = "".join(f"\n--- {log.name}\n{log.read_text()}" for log in sorted(directory.glob("*.log")))
        why = f"did not end within {PATIENCE_S} s" if code is None else f"ended with {code}"
        raise AssertionError(f"the page {why}; it printed\n{printed}{logs}")
    pieces = re.split(rf"\n?{MARK} \w+\n", printed)
    return [piece if piece.endswith("\n") or not piece else piece + "\n" for piece in pieces[1:-1]]
