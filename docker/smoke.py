"""``make docker``: build the images, bring the cluster up, check that messages flow, tear it down.

Where something is missing (the client, the engine, compose, the base image) it says which and ends with code 2.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

FILE = Path(__file__).with_name("compose.yaml")
COMPOSE = ["docker", "compose", "-f", str(FILE)]
BASE_IMAGE = "python:3.11-slim-bookworm"
PAGE = f"http://127.0.0.1:{os.environ.get('KAFKA2011_PAGE_PORT', '8011')}"


def run(*command: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command; its output goes to the terminal unless ``quiet``."""
    return subprocess.run(command, check=False, text=True, capture_output=quiet)


def missing() -> str | None:
    """What this machine lacks, as a sentence, or None."""
    try:
        version = run("docker", "version", "--format", "{{.Server.Version}}", quiet=True)
    except FileNotFoundError:
        return "the command `docker` is not installed"
    if version.returncode != 0:
        return "no Docker engine answers; start one (the client alone is not enough)"
    if run("docker", "compose", "version", quiet=True).returncode != 0:
        return "the compose plug-in is missing: install docker-compose v2"
    if run("docker", "image", "inspect", BASE_IMAGE, quiet=True).returncode == 0:
        return None
    if run("docker", "pull", "--quiet", BASE_IMAGE, quiet=True).returncode != 0:
        return f"the base image {BASE_IMAGE} is not here and cannot be pulled"
    return None


def view(pane: str) -> dict[str, object]:
    """What the page shows."""
    with urllib.request.urlopen(f"{PAGE}/api/view?pane={pane}", timeout=5) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def check(deadline_s: float = 120.0) -> None:
    """Wait until three brokers are registered and the group has read something."""
    deadline = time.monotonic() + deadline_s
    last = ""
    while time.monotonic() < deadline:
        try:
            seen = view("groups")
            brokers = [broker for broker in seen["brokers"] if broker["alive"]]  # type: ignore[attr-defined]
            group = seen["group"] or {"partitions": []}
            read = sum(row["offset"] or 0 for row in group["partitions"])  # type: ignore[index]
            last = f"{len(brokers)} brokers registered, the group has read {read} bytes"
            if len(brokers) == 3 and read > 0:
                print(f"smoke check passed: {last}")
                return
        except (OSError, KeyError, ValueError) as error:
            last = str(error)
        time.sleep(1)
    raise SystemExit(f"smoke check failed after {deadline_s:.0f} s: {last}")


def main() -> None:
    """Build, up, check, down."""
    lacking = missing()
    if lacking is not None:
        print(f"make docker: {lacking}", file=sys.stderr)
        raise SystemExit(2)
    # One service per image: compose would build the same image once for each service otherwise.
    for service in ("zk1", "broker1"):
        if run(*COMPOSE, "build", service).returncode != 0:
            raise SystemExit(f"building {service} failed")
    try:
        if run(*COMPOSE, "up", "-d", "--wait", "--no-build").returncode != 0:
            run(*COMPOSE, "logs", "--tail", "30")
            raise SystemExit("the cluster did not become healthy")
        check()
    finally:
        if "--keep" not in sys.argv:
            run(*COMPOSE, "down", "-v", "-t", "5")


if __name__ == "__main__":
    main()
