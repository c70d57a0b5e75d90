"""A real Apache Kafka 3.9 as a judge: its jars, where the machine has them or can get them.

``KAFKA39_JARS`` names a folder with the jars of kafka_2.13, kafka-tools, connect-runtime, connect-file and
kafka-streams 3.9 and what they depend on. Without it they are fetched with Maven once, into the user's cache. Without
Java or Maven the tests are skipped by name, and so are those of Connect and Streams where their jars are not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

VERSION = "3.9.1"
_ARTIFACTS = ("kafka_2.13", "kafka-tools", "connect-runtime", "connect-file", "kafka-streams")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>judge</groupId><artifactId>judge</artifactId><version>1</version><dependencies>
{dependencies}</dependencies></project>
"""
_DEPENDENCY = f"""<dependency><groupId>org.apache.kafka</groupId>
<artifactId>{{}}</artifactId><version>{VERSION}</version></dependency>
"""


@cache
def jars() -> Path:
    """The folder with the jars; skips the test where there can be none."""
    if shutil.which("java") is None:
        pytest.skip("java is not installed: real Kafka cannot be the judge")
    named = os.environ.get("KAFKA39_JARS")
    if named:
        return Path(named)
    cached = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kafka2011" / f"kafka-{VERSION}-all"
    if not (cached / "complete").exists():
        _fetch(cached)
    return cached


def jars_with(*artifacts: str) -> Path:
    """The folder, if these artifacts are among its jars; skips the test where they are not."""
    found = jars()
    for artifact in artifacts:
        if not any(found.glob(f"{artifact}-*.jar")):
            pytest.skip(f"{artifact} is not among the jars of real Kafka")
    return found


def _fetch(target: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("neither KAFKA39_JARS nor Maven: real Kafka cannot be the judge")
    target.mkdir(parents=True, exist_ok=True)
    (target / "pom.xml").write_text(_POM.format(dependencies="".join(_DEPENDENCY.format(one) for one in _ARTIFACTS)))
    command = ["mvn", "-q", "-B", "-f", str(target / "pom.xml"), "dependency:copy-dependencies"]
    try:
        ended = subprocess.run([*command, f"-DoutputDirectory={target}"], capture_output=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("Maven did not fetch real Kafka in ten minutes")
    if ended.returncode:
        pytest.skip(f"Maven could not fetch real Kafka {VERSION}")
    (target / "complete").touch()


def run_tool(name: str, *arguments: str, cwd: Path) -> str:
    """What one of Kafka's own command-line classes prints."""
    return run_java(name, *arguments, cwd=cwd)


def run_java(program: str, *arguments: str, cwd: Path) -> str:
    """What a class, or a program in one source file, prints with Kafka's jars at hand."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", program, *arguments]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=170, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
