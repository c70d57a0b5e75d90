"""Write constraints.txt: every package a release is installed with, its version and the SHA-256 of its file.

``make lock`` asks pip what it would install for this Python on this machine, and installs nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HEAD = "# Made by `make lock`; installed by `make locked`. Versions and hashes of one platform: {platform}.\n"


def resolved(report: Path) -> dict[str, Any]:
    """What pip would install."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--no-build-isolation", "--report", str(report), f"{ROOT}[dev,java]"]
    subprocess.run(command, check=True, cwd=report.parent)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def lines(found: dict[str, Any]) -> list[str]:
    """One line for each package that comes from an index."""
    made = []
    for item in found["install"]:
        hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" in hashes:
            made.append(f"{item['metadata']['name']}=={item['metadata']['version']} --hash=sha256:{hashes['sha256']}")
    return sorted(made, key=str.lower)


def main() -> None:
    """Ask pip, write the file."""
    with tempfile.TemporaryDirectory() as directory:
        found = resolved(Path(directory) / "report.json")
    here = found["environment"]
    platform = f"{here['sys_platform']} {here['platform_machine']}, Python {here['python_version']}"
    text = HEAD.format(platform=platform) + "\n".join(lines(found)) + "\n"
    (ROOT / "constraints.txt").write_text(text)
    print(f"wrote constraints.txt, {len(text.splitlines()) - 1} packages")


if __name__ == "__main__":
    main()
