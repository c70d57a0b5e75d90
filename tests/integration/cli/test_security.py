"""Commands against a broker that speaks TLS and asks who is there. Issue 20 B4."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from classroom.cluster.processes import Process, Processes
from kafka2011.testing import BrokerProcess
from tests.certificates import issue
from tests.waiting import until
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.testing import fresh_chroot


@dataclass(frozen=True)
class Secured:
    """A broker with client certificates on both ports and logins on the modern one; a client's files."""

    broker: BrokerProcess
    config: Path
    ca: Path
    zookeeper: str


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, zookeeper: EmbeddedZooKeeper) -> Iterator[Secured]:
    directory: Path = tmp_path_factory.mktemp("secured")
    root = issue("root")
    ca, _ = root.write(directory, "root")
    certificate, key = issue("broker", root, authority=False).write(directory, "broker")
    mine, my_key = issue("ann", root, authority=False).write(directory, "ann")
    for name, text in (("users", "ann:secret\n"), ("password", "secret\n")):
        (directory / name).touch(mode=0o600)
        (directory / name).write_text(text)
    config = directory / "client.properties"
    config.write_text(
        f"client.tls.ca={ca}\nclient.tls.certificate={mine}\nclient.tls.key={my_key}\n"
        f"client.sasl.user=ann\nclient.sasl.password.file={directory / 'password'}\n"
    )
    connect = fresh_chroot(zookeeper.connect)
    options = {
        "zk.connect": connect, "tls.certificate": certificate, "tls.key": key, "tls.client.ca": ca, "modern.port": 0,
        "modern.sasl.users": directory / "users", "log.flush.interval": 1, "group.initial.rebalance.delay.ms": 0,
    }  # fmt: skip
    with BrokerProcess(options=options) as broker:
        yield Secured(broker, config, ca, connect)


def kafka2011(
    *words: str, environ: dict[str, str] | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafka2011", *words]
    return subprocess.run(
        command, env=os.environ | (environ or {}), input=given, capture_output=True, text=True, timeout=120, check=False
    )


def test_in_the_clear_nothing_is_reported_as_sent(secured: Secured) -> None:
    """Issue 20 B4: produce against a TLS port fails; it does not say "1 message sent" after sending in the clear."""
    done = kafka2011("produce", "clicks", "--broker", secured.broker.address, given="secret message\n")

    assert done.returncode == 1
    assert "nothing was sent" in done.stderr and "1 message sent" not in done.stderr


def test_flags_environment_and_file_say_the_same(secured: Secured) -> None:
    """Issue 20 B4: one declaration for every command: by file, by environment, by flag."""
    where = ("--broker", secured.broker.address)
    lines = secured.config.read_text().splitlines()
    flags = [word for line in lines for word in ("--client", line)]
    pairs = [line.split("=") for line in lines]
    variables = {f"KAFKA2011_{name.replace('.', '_').upper()}": value for name, value in pairs}
    sent = kafka2011("--client-config", str(secured.config), "produce", "ways", *where, given="hello\n")
    assert sent.returncode == 0, sent.stderr
    for way in (
        kafka2011("--client-config", str(secured.config), "fetch", "ways", "-n", "1", *where),
        kafka2011(*flags, "consume", "ways", "--offset", "begin", "-n", "1", *where),
        kafka2011("fetch", "ways", "-n", "1", *where, environ=variables),
    ):
        assert (way.returncode, way.stdout) == (0, "hello\n"), way.stderr


def test_without_a_certificate_nobody_comes_in(secured: Secured) -> None:
    """Issue 20 B4: trusting the broker is not enough where it asks for a certificate."""
    done = kafka2011("--client", f"client.tls.ca={secured.ca}", "fetch", "clicks", "--broker", secured.broker.address)

    assert done.returncode == 1 and "Traceback" not in done.stderr


def test_our_own_modern_client_logs_in(secured: Secured) -> None:
    """Issue 20 B4: TLS, certificate and login of the modern port, by the same declaration; a wrong one is told."""
    program = (
        "from since2011.client.connection import ModernConnection as M;"
        "from since2011.wire.codec import ApiKey, Struct;"
        f"c = M('127.0.0.1', {secured.broker.modern_port}, client_id='t');"
        "print(len(c.ask(ApiKey.METADATA, 1, Struct(topics=None)).brokers))"
    )
    command, environ = [sys.executable, "-c", program], os.environ | {"KAFKA2011_CLIENT_CONFIG": str(secured.config)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "1\n", done.stderr
    assert secured.broker.state()["principals"].keys() <= {"anonymous", "login:ann", "certificate:CN=ann"}
    wrong = subprocess.run(
        command, env=environ | {"KAFKA2011_CLIENT_SASL_USER": "bob"}, capture_output=True, text=True, check=False
    )
    assert "the login was refused (SASL_AUTHENTICATION_FAILED: wrong user or password)" in wrong.stderr


@pytest.fixture(scope="module")
def views(secured: Secured) -> Secured:
    """The topic ``views`` with one message, announced in ZooKeeper."""
    declared = ("--client-config", str(secured.config))
    sent = kafka2011(*declared, "produce", "views", "-z", secured.zookeeper, given='{"page": "/home"}\n')
    assert sent.returncode == 0, sent.stderr
    return secured


def test_through_zookeeper_nothing_is_reported_as_sent_either(secured: Secured) -> None:
    """Issue 20 B4: brokers found in ZooKeeper are asked before anything is sent to them, like those of a list."""
    done = kafka2011("produce", "clicks", "-z", secured.zookeeper, given="secret message\n")

    assert done.returncode == 1
    assert "nothing was sent" in done.stderr and "1 message sent" not in done.stderr


def test_a_group_reads_over_tls_and_says_why_it_cannot(views: Secured) -> None:
    """Issue 20 B4: an Algorithm 1 consumer with the declaration reads; without it, it ends with a sentence."""
    words = ("consume", "views", "-z", views.zookeeper, "-n", "1", "--timeout", "60")
    read = kafka2011("--client-config", str(views.config), *words, "-g", "readers")
    assert (read.returncode, read.stdout) == (0, '{"page": "/home"}\n'), read.stderr

    in_the_clear = kafka2011(*words, "-g", "clear")
    assert in_the_clear.returncode == 1 and "Traceback" not in in_the_clear.stderr
    assert f"{views.broker.address} speaks TLS" in in_the_clear.stderr and "client.tls.ca" in in_the_clear.stderr


def test_a_group_without_a_certificate_says_what_it_waits_for(views: Secured) -> None:
    """Issue 20 B4: who is not let in waits, as for a broker that is away, and is told why."""
    words = ("consume", "views", "-z", views.zookeeper, "-g", "nobody", "--timeout", "3")
    waited = kafka2011("--client", f"client.tls.ca={views.ca}", *words)

    assert waited.stdout == ""
    assert f"waiting for broker 0 at {views.broker.address}" in waited.stderr
    assert "certificate required" in waited.stderr


def test_the_load_reads_over_tls_and_says_why_it_cannot(views: Secured, tmp_path: Path) -> None:
    """Issue 20 B4: ``etl run`` with the declaration loads; without it, it fails with a sentence and loads nothing."""
    words = ("etl", "run", "-z", views.zookeeper, "-t", "views:json", "--master", "inline", "--json")
    refused = kafka2011(*words, "-w", str(tmp_path / "clear"))
    assert refused.returncode != 0 and "Traceback" not in refused.stderr
    assert f"{views.broker.address} speaks TLS" in refused.stdout + refused.stderr

    loaded = kafka2011("--client-config", str(views.config), *words, "-w", str(tmp_path / "warehouse"))
    assert loaded.returncode == 0, loaded.stderr
    assert json.loads(loaded.stdout)["topics"][0]["rows"] == 1


def test_the_page_reads_over_tls_and_says_why_it_cannot(views: Secured, tmp_path: Path) -> None:
    """Issue 20 B4: the page with the declaration shows messages; without it, it shows the sentence."""
    with page(tmp_path / "declared", views.zookeeper, "--client-config", str(views.config)) as address:
        shown = until(lambda: messages(address, "views"), "the page has seen the broker")
        assert "/home" in shown
    with page(tmp_path / "clear", views.zookeeper) as address:
        refused = until(lambda: messages(address, "views"), "the page has seen the broker")
        assert f"{views.broker.address} speaks TLS" in refused


@contextmanager
def page(directory: Path, zookeeper: str, *declared: str) -> Iterator[str]:
    """A page of the cluster; yields its address."""
    processes = Processes(directory, with_parent=True)
    words = ["kafka2011", *declared, "observatory", "-z", zookeeper, "--port", "0"]
    try:
        yield f"127.0.0.1:{processes.start(Process('observatory', 'observatory', words)).ready['port']}"
    finally:
        processes.stop(["observatory"])


def messages(address: str, topic: str) -> str:
    """What the page answers to who looks into a topic; empty while it has not seen the broker yet."""
    with closing(http.client.HTTPConnection(address, timeout=30)) as link:
        link.request("GET", f"/api/messages?topic={topic}&partition=0-0&from=begin")
        text = link.getresponse().read().decode()
    return "" if "is not registered" in text else text


def test_an_unknown_client_setting_is_named() -> None:
    """Issue 20 B4: a slip is an error with the names there are, before anything is dialled."""
    done = kafka2011("--client", "client.tls.cafile=x", "fetch", "clicks")

    assert done.returncode == 1 and "client.tls.ca," in done.stderr
