"""docs/etl.md from the top: commands and snippets as printed, with the exit codes they promise (issue 21-16)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.etl.snippets import PAGE, block
from zk_registry.server import free_ports

pytestmark = pytest.mark.timeout(300)

BIN = Path(sys.executable).parent


def as_here(text: str, root: Path, port: int) -> str:
    """A text of the page with this test's places instead of the page's."""
    return text.replace("9092", str(port)).replace("/tmp/k ", f"{root}/k ").replace("/tmp/warehouse", f"{root}/w")


def test_the_first_page_ends_green(tmp_path: Path) -> None:
    """The commands of the first block, in one script that stops at the first failure; then what reads the table."""
    (port,) = free_ports(1)
    script = as_here(block("kafka2011 broker start"), tmp_path, port)
    environ = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-e", "-c", f"trap 'kill %1' EXIT\n{script}"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "committed" in done.stderr
    assert "--master inline" in done.stderr, "small: no Spark, and it says so"
    assert "not audited" in done.stdout
    assert "<html" in (tmp_path / "report.html").read_text()
    # The first way to read it, as printed.
    reading = as_here(block("import duckdb"), tmp_path, port)
    shown = subprocess.run([sys.executable, "-c", reading], capture_output=True, text=True, timeout=60, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "1000" in shown.stdout


def test_the_page_lists_every_exit_code() -> None:
    """0 to 5, as the command's own help page and errors have them."""
    codes = re.findall(r"^\| (\d) \| ", PAGE.read_text(), re.MULTILINE)
    assert codes == [str(code) for code in range(6)]
