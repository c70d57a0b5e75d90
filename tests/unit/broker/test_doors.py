"""Which ports a broker opens, where, and when it would rather not start. Issue 20 B2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from kafka2011.broker.doors import address_2011, advertised_host
from kafka2011.broker.plugins import broker_config
from kafka2011.broker.service import Broker
from kafka2011.client import BrokerConnection
from kafka2011.config import load_config
from kafka2011.errors import CannotConnect, ConfigError
from kafka2011.testing import BrokerProcess
from since2011.server.broker_plugin import ModernPlugin
from tests.certificates import issue
from tests.unit.broker.test_service import TestReactor

EVERYWHERE = "0.0.0.0"


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.touch(mode=0o600)
    path.write_text("alice:secret\n")
    return path


def made(tmp_path: Path, reactor: TestReactor, **flags: object) -> Broker:
    """A broker that was not started."""
    given = {"log_dir": tmp_path / "data", "port": 0, "modern_port": 0, "admin_port": 0} | flags
    running: Any = reactor
    named = {name.replace("_", "."): str(value) for name, value in given.items()}
    return Broker(broker_config(flags=named, environ={}), reactor=running)


@pytest.mark.parametrize(
    ("flags", "where"),
    [
        ({}, "127.0.0.1"),
        ({"bind.address": EVERYWHERE}, EVERYWHERE),
        ({"bind.address": EVERYWHERE, "port.access": "loopback"}, "127.0.0.1"),
        ({"bind.address": EVERYWHERE, "port.access": "off"}, None),
    ],
)
def test_the_2011_port_is_open_on_loopback_or_off(flags: dict[str, str], where: str | None) -> None:
    """Issue 20 B2: port.access says who reaches the port without a login."""
    assert address_2011(load_config(flags=flags)) == where


def listening(broker: BrokerProcess) -> dict[int, str]:
    """The addresses a broker's process listens on, by port."""
    sockets = psutil.Process(broker.pid).net_connections(kind="inet")
    return {one.laddr.port: one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN}


def test_each_port_has_its_own_address() -> None:
    """Issue 20 B2: the modern port may be open to the network while the 2011 port is not; both are opened once."""
    given = {"port.access": "loopback", "modern.port": 0, "modern.bind.address": "127.0.0.2"}
    with BrokerProcess(options=given) as broker:
        found = listening(broker)

        assert broker.modern_port is not None
        assert found.pop(broker.port) == "127.0.0.1"
        assert found.pop(broker.modern_port) == "127.0.0.2"
        assert list(found.values()) == ["127.0.0.1"], "the admin port, and no other"


def test_with_the_2011_port_off_nothing_listens_there() -> None:
    """Issue 20 B2: off means no socket; readers are told so instead of being sent somewhere."""
    with BrokerProcess(options={"port.access": "off", "modern.port": 0}) as broker:
        assert len(listening(broker)) == 2, "the admin port and the modern one"
    with pytest.raises(CannotConnect, match="does not offer the 2011 protocol"):
        BrokerConnection("127.0.0.1", 0).offsets("t", 0)


def test_a_broker_nobody_can_reach_does_not_start(tmp_path: Path) -> None:
    """Issue 20 B2: off without a modern port is a mistake, said at once."""
    broker = made(tmp_path, TestReactor(), port_access="off", modern_port="")
    with pytest.raises(ConfigError, match=r"port\.access=off and no modern\.port"):
        broker.start()


@pytest.mark.parametrize(
    ("flags", "starts"),
    [
        ({}, True),
        ({"bind_address": EVERYWHERE}, False),
        ({"bind_address": "10.0.0.1"}, False),
        ({"bind_address": "::"}, False),
        ({"bind_address": EVERYWHERE, "port_access": "loopback"}, True),
        ({"bind_address": EVERYWHERE, "port_access": "off"}, True),
        ({"modern_bind_address": EVERYWHERE}, True),
    ],
)
def test_a_login_on_one_door_and_none_on_the_other_is_refused(
    tmp_path: Path, users: Path, flags: dict[str, str], starts: bool
) -> None:
    """Issue 20 B2: with modern.sasl.users a 2011 port open to the network keeps the broker from starting."""
    if starts:
        broker = made(tmp_path, TestReactor(), modern_sasl_users=users, **flags)
        assert isinstance(broker.plugins["modern"], ModernPlugin)
    else:
        with pytest.raises(ConfigError, match=r"would let anybody publish and fetch.*port\.access=loopback or off"):
            made(tmp_path, TestReactor(), modern_sasl_users=users, **flags)


def test_a_certificate_guards_the_2011_port(tmp_path: Path, users: Path) -> None:
    """Issue 20 B2: with tls.client.ca the 2011 port may be open beside a login."""
    authority = issue("root")
    ca, _ = authority.write(tmp_path, "root")
    certificate, key = issue("broker", authority, authority=False).write(tmp_path, "broker")
    made(
        tmp_path, TestReactor(), modern_sasl_users=users, bind_address=EVERYWHERE,
        tls_certificate=certificate, tls_key=key, tls_client_ca=ca,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "doors"),
    [
        ({}, []),
        ({"bind_address": EVERYWHERE}, ["2011 port"]),
        ({"bind_address": EVERYWHERE, "port_access": "loopback", "admin_address": EVERYWHERE}, ["admin port"]),
    ],
)
def test_doors_without_a_lock_are_told_of(tmp_path: Path, flags: dict[str, str], doors: list[str]) -> None:
    """A door open to the network without login or certificate is a warning at every start, by its name."""
    assert [warning.door for warning in made(tmp_path, TestReactor(), **flags).doors.without_a_lock()] == doors


def test_a_loopback_port_is_advertised_as_one() -> None:
    """Issue 20 B2: who asks the registry is not sent to an address where the port does not listen."""
    assert advertised_host(load_config(flags={"bind.address": "10.1.2.3", "port.access": "loopback"})) == "127.0.0.1"
