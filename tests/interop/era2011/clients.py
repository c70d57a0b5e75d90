"""Clients written for Kafka 0.7, installed from their registries into the checkout's cache, once.

Each is driven through a small program in ``drivers/`` (``publish``, ``read``). A client whose runtime or registry is
missing is skipped by name.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka2011.child import die_with_parent
from kafka2011.client import BrokerConnection
from kafka2011.testing import BrokerProcess
from kafka2011.wire import MessageAndOffset, decode_set
from tests.waiting import until

DRIVERS = Path(__file__).parent / "drivers"
CACHE = Path(__file__).parents[3] / ".cache" / "era2011"
INSTALL_PATIENCE_S = 120
RUN_PATIENCE_S = 60

NODE = {"prozess": "prozess.js", "franz-kafka": "franz.js", "kafka": "kafka.js"}
PYTHON_2 = {"brod": "brod_driver.py", "samsa": "samsa_driver.py"}
PYTHON_2_PACKAGES = ["brod==0.4.3", "samsa==0.3.11", "kazoo==2.8.0", "six==1.16.0"]

WRITES_MAGIC = {"prozess": 1, "franz-kafka": 1, "kafka": 0, "samsa": 0, "brod": 0}
READS_MAGIC = {"prozess": {1}, "franz-kafka": {1}, "kafka": {0}, "samsa": {0, 1}, "brod": {0}}
"""Several messages in a reply, that is; see the fact sheet of 0.7's clients (docs/paper-vs-code.md)."""


@dataclass(frozen=True, slots=True)
class OldClient:
    """A client that can be run."""

    name: str
    command: list[str]
    environ: dict[str, str]

    def run(self, verb: str, broker: BrokerProcess, topic: str, *words: str) -> str:
        """Run its driver; fail with what it printed."""
        done = subprocess.run(
            [*self.command, verb, broker.host, str(broker.port), topic, *words],
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            timeout=RUN_PATIENCE_S,
            check=False,
            preexec_fn=die_with_parent,
        )
        assert done.returncode == 0, f"{self.name} {verb}: {done.stderr or done.stdout}\nbroker: {broker.output[-500:]}"
        return done.stdout

    def publish(self, broker: BrokerProcess, topic: str, *messages: str, verb: str = "publish") -> None:
        """Publish, and return when the broker has everything; nothing acknowledges a produce, so we look."""
        before = len(stored(broker, topic))
        command = [*self.command, verb, broker.host, str(broker.port), topic, *messages]
        output = subprocess.PIPE
        with subprocess.Popen(
            command, env=os.environ | self.environ, stderr=output, text=True, preexec_fn=die_with_parent
        ) as process:
            try:
                until(
                    lambda: len(stored(broker, topic)) >= before + len(messages) or process.poll(),
                    f"{self.name} published {len(messages)} messages",
                )
                assert not process.poll(), f"{self.name}: {process.stderr.read() if process.stderr else ''}"
            finally:
                process.kill()

    def read(self, broker: BrokerProcess, topic: str, count: int) -> list[str]:
        found: list[str] = json.loads(self.run("read", broker, topic, str(count)))
        return found


def stored(broker: BrokerProcess, topic: str) -> list[MessageAndOffset]:
    """What our own client reads of a small topic."""
    with BrokerConnection(broker.host, broker.port) as connection:
        return decode_set(connection.fetch(topic, 0, 0))


def old_client(name: str) -> OldClient:
    """The client, installed if need be; skips the test if that cannot be."""
    if name in NODE:
        node, npm = shutil.which("node"), shutil.which("npm")
        if node is None or npm is None:
            pytest.skip(f"{name} needs node and npm, which are not here")
        home = CACHE / "node"
        install = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"]
        _install(name, home, install, DRIVERS / "package.json")
        return OldClient(name, [node, str(DRIVERS / NODE[name])], {"NODE_PATH": str(home / "node_modules")})
    python = _python_2()
    if python is None:
        pytest.skip(f"{name} needs Python 2.7, which is neither on PATH nor in pyenv")
    home = CACHE / "python2"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    _install(name, home, [*install, "--target", "packages", *PYTHON_2_PACKAGES])
    environ = {"PYTHONPATH": str(home / "packages"), "PYTHONDONTWRITEBYTECODE": "1"}
    return OldClient(name, [python, str(DRIVERS / PYTHON_2[name])], environ)


def _install(name: str, home: Path, command: list[str], *files: Path) -> None:
    """Run ``command`` in ``home`` once; several test runs may want it at the same time."""
    home.mkdir(parents=True, exist_ok=True)
    with open(home.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (home / "installed").exists():
            return
        for file in files:
            shutil.copy(file, home)
        try:
            done = subprocess.run(
                command, cwd=home, capture_output=True, text=True, timeout=INSTALL_PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name} could not be installed within {INSTALL_PATIENCE_S} s")
        if done.returncode:
            pytest.skip(f"{name} could not be installed: {(done.stderr or done.stdout).strip()[-300:]}")
        (home / "installed").touch()


def _python_2() -> str | None:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which("python2.7"), shutil.which("python2"), *map(str, root.glob("2.7.*/bin/python2.7"))]
    for candidate in filter(None, candidates):
        # A pyenv shim is on PATH also where no version is chosen; then it cannot run.
        probe = subprocess.run([candidate, "-m", "pip", "--version"], capture_output=True, timeout=60, check=False)
        if probe.returncode == 0:
            return candidate
    return None
