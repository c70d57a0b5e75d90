"""Commands against a broker that speaks TLS and asks who is there. Issue 20 B4."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka2011.testing import BrokerProcess
from tests.certificates import issue


@dataclass(frozen=True)
class Secured:
    """A broker with client certificates on both ports and logins on the modern one; a client's files."""

    broker: BrokerProcess
    config: Path
    ca: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
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
    options = {
        "tls.certificate": certificate, "tls.key": key, "tls.client.ca": ca, "modern.port": 0,
        "modern.sasl.users": directory / "users", "log.flush.interval": 1, "group.initial.rebalance.delay.ms": 0,
    }  # fmt: skip
    with BrokerProcess(options=options) as broker:
        yield Secured(broker, config, ca)


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
        "from consumers.group_protocol.member.connection import ModernConnection as M;"
        "from consumers.group_protocol.codec import ApiKey, Struct;"
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


def test_an_unknown_client_setting_is_named() -> None:
    """Issue 20 B4: a slip is an error with the names there are, before anything is dialled."""
    done = kafka2011("--client", "client.tls.cafile=x", "fetch", "clicks")

    assert done.returncode == 1 and "client.tls.ca," in done.stderr
