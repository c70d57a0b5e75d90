"""Whom a connection speaks for, on either port. Issue 20 B7."""

from __future__ import annotations

from types import SimpleNamespace

from OpenSSL.crypto import X509

from kafka2011.broker.principal import ANONYMOUS, Principal, counted, logged_in, of_transport
from tests.certificates import issue


def shown(name: str) -> SimpleNamespace:
    """A transport whose other side showed a certificate for ``name``."""
    certificate = X509.from_cryptography(issue(name).certificate)
    return SimpleNamespace(getPeerCertificate=lambda: certificate)


def test_a_principal_is_a_certificate_a_login_or_nobody() -> None:
    """Issue 20 B7: one name per connection, which says how it is known."""
    assert str(of_transport(object())) == str(of_transport(SimpleNamespace(getPeerCertificate=lambda: None)))
    assert [str(p) for p in (ANONYMOUS, of_transport(shown("web1")), logged_in("alice"))] == [
        "anonymous",
        "certificate:CN=web1",
        "login:alice",
    ]


def test_a_name_cannot_pretend_to_be_another() -> None:
    """Issue 20 B7: commas, line ends and endless names inside a name stay inside one line of one field."""
    assert str(of_transport(shown("web1,CN=admin"))) == r"certificate:CN=web1\,CN\=admin"
    assert str(logged_in("alice\nlogin:bob")) == r"login:alice\nlogin:bob"
    assert len(logged_in("x" * 10_000).name) == 256


def test_of_many_principals_those_with_most_connections_are_named() -> None:
    """Issue 20 B7: /state stays small, whoever connects."""
    connections = [SimpleNamespace(principal=Principal("login", str(n))) for n in range(1000)]
    found = counted([*connections, SimpleNamespace(principal=ANONYMOUS), SimpleNamespace(principal=ANONYMOUS)])

    assert len(found) == 51 and found["anonymous"] == 2 and found["others"] == 951
