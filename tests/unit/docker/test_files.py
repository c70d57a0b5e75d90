"""What the container files promise without an engine to run them."""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCKER = Path(__file__).resolve().parents[3] / "docker"
COMPOSE_FILES = ("compose.yaml", "compose.spark.yaml", "compose.standby.yaml")


def services(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((DOCKER / name).read_text())["services"]
    return found


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_every_service_runs_without_privileges(name: str) -> None:
    """No service asks for more than an ordinary engine gives: no privilege, no capability, no limit raised."""
    for service, settings in services(name).items():
        assert settings["cap_drop"] == ["ALL"], service
        assert "no-new-privileges:true" in settings["security_opt"], service
        assert not {"privileged", "cap_add", "ulimits", "oom_score_adj", "pid"} & set(settings), service
        assert settings.get("network_mode") is None, service


@pytest.mark.parametrize("name", COMPOSE_FILES)
def test_every_image_is_built_here(name: str) -> None:
    """Nothing but the base image is pulled: each image named is a target of our Dockerfile."""
    targets = set(re.findall(r"^FROM \S+ AS (\S+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE))
    for service, settings in services(name).items():
        assert settings["image"] == f"kafka2011/{settings['build']['target']}", service
        assert settings["build"]["target"] in targets, service


def test_the_cluster_is_the_one_of_the_paper() -> None:
    """Three ZooKeeper servers, three brokers with different ids, a producer, two consumers and the page (§3.2)."""
    found = services("compose.yaml")
    brokers = {name: s for name, s in found.items() if name.startswith("broker")}

    assert set(found) == {*(f"zk{n}" for n in (1, 2, 3)), *brokers, "producer", "consumer1", "consumer2", "observatory"}
    assert len({broker["environment"]["KAFKA2011_BROKERID"] for broker in brokers.values()}) == 3
    # ZooKeeper is reached over one network only, so a broker can be cut off from it and still serve its clients.
    assert all(found[f"zk{n}"]["networks"] == ["coordination"] for n in (1, 2, 3))
    assert all(broker["networks"] == ["coordination", "data"] for broker in brokers.values())


def test_only_the_page_is_published_and_only_on_loopback() -> None:
    """No port but the page's is reachable from outside the engine's networks."""
    everything = [item for name in COMPOSE_FILES for item in services(name).items()]
    published = {f"{service}: {port}" for service, settings in everything for port in settings.get("ports", [])}

    assert published == {"observatory: 127.0.0.1:${KAFKA2011_PAGE_PORT:-8011}:8011"}


def test_the_dockerfile_needs_no_registry_but_for_its_base() -> None:
    """Any BuildKit builds it: no frontend is fetched, no here-documents; what runs does not run as root."""
    text = (DOCKER / "Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]

    assert "syntax=" not in text
    assert "<<" not in text
    assert {stage.split()[0] for stage in stages} <= {"${BUILD_IMAGE}", "${RUN_IMAGE}", "kafka2011", "jvm"}
    assert re.findall(r"^ARG \w+=(\S+?)(?:@\S+)?$", text, re.M) == ["python:3.11-bookworm", "python:3.11-slim-bookworm"]
    for stage in stages:
        if (name := stage.split()[2]) in ("kafka2011", "spark", "zookeeper"):
            assert re.findall(r"^USER (\S+)", stage, re.MULTILINE)[-1] == "kafka", name


def test_the_engine_gets_all_the_wheel_is_made_of() -> None:
    """Every package of setup.cfg, and the build files themselves, pass .dockerignore."""
    root = DOCKER.parent
    setup = configparser.ConfigParser()
    setup.read(root / "setup.cfg")
    packages = {name.split(".")[0] for name in setup["options"]["packages"].split()}
    let_in = {line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert packages | {"setup.cfg", "setup.py", "pyproject.toml"} <= let_in


DIGEST = f"sha256:{'0123456789abcdef' * 4}"


def pin(place: Path, docker: str, *args: str) -> tuple[int, str, str]:
    """Run the command on a copy of the Dockerfile, with a Docker client that does what ``docker`` says."""
    client, copy = place / "bin" / "docker", place / "Dockerfile"
    client.parent.mkdir(exist_ok=True)
    client.write_text(f"#!/bin/sh\n{docker}\n")
    client.chmod(0o755)
    if not copy.exists():
        copy.write_text((DOCKER / "Dockerfile").read_text())
    command = [sys.executable, str(DOCKER / "pin.py"), "--file", str(copy), *args]
    environ = os.environ | {"PATH": f"{client.parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    return done.returncode, copy.read_text(), done.stderr


def test_base_images_are_pinned_to_what_the_registry_says(tmp_path: Path) -> None:
    """``make pin-images`` writes the digest behind each tag, again after a change, and takes it away (SECURITY.md)."""
    before = (DOCKER / "Dockerfile").read_text()
    code, after, _ = pin(tmp_path, f"echo {DIGEST}")
    assert code == 0
    assert f"ARG BUILD_IMAGE=python:3.11-bookworm@{DIGEST}\n" in after
    assert f"ARG RUN_IMAGE=python:3.11-slim-bookworm@{DIGEST}\n" in after
    other = DIGEST.replace("0", "f")
    assert pin(tmp_path, f"echo {other}")[1] == after.replace(DIGEST, other)
    assert pin(tmp_path, "exit 1", "--undo")[:2] == (0, before)


@pytest.mark.parametrize("docker", ["echo 'no such host' >&2; exit 1", "echo '<html>'", "exit 0"])
def test_without_a_registry_nothing_is_pinned(tmp_path: Path, docker: str) -> None:
    """What is not a digest is never written; the exit code says that nobody could tell (SECURITY.md)."""
    code, after, said = pin(tmp_path, docker)
    assert (code, after) == (3, (DOCKER / "Dockerfile").read_text())
    assert "nothing was changed" in said
