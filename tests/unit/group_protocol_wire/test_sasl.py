"""Logging in: SCRAM-SHA-256 and PLAIN, step by step. Spec: research/reliability §4.1; RFC 5802."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from consumers.group_protocol.sasl import PLAIN, SCRAM, Login, LoginRefused, Users
from kafka2011.errors import ConfigError

USERS = Users({"alice": "wonderland", "=,odd": "x"})


def scram(login: Login, user: str, password: str, *, nonce: str = "abc", tamper: bool = False) -> bytes:
    """A client's side of SCRAM; the server's last message."""
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = login.step(f"n,,{bare}".encode()).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c=biws,r={fields['r'] + ('x' if tamper else '')}"
    signed = f"{bare},{challenge},{final}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    answer = login.step(f"{final},p={proof}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
    assert answer == b"v=" + base64.b64encode(expected)
    return answer


def begun(mechanism: str = SCRAM, *, tls: bool = False) -> Login:
    login = Login(USERS, tls=tls)
    assert login.choose(mechanism)
    return login


@pytest.mark.parametrize(("user", "password"), [("alice", "wonderland"), ("=,odd", "x")])
def test_both_sides_prove_that_they_know_the_password(user: str, password: str) -> None:
    """The client's proof opens the door, and the server's signature shows it knew the password too (RFC 5802)."""
    login = begun()
    scram(login, user, password)

    assert login.done and login.user == user


@pytest.mark.parametrize(
    ("user", "password", "tamper"), [("alice", "no", False), ("bob", "x", False), ("alice", "wonderland", True)]
)
def test_a_wrong_password_user_or_nonce_is_refused(user: str, password: str, tamper: bool) -> None:
    """Whatever is wrong, the refusal says the same (reliability §4.1)."""
    login = begun()
    with pytest.raises(LoginRefused, match="wrong user or password"):
        scram(login, user, password, tamper=tamper)
    assert not login.done


def test_asking_does_not_tell_who_exists() -> None:
    """An unknown user has a salt too, the same each time (reliability §4.1)."""
    salts = [begun().step(b"n,,n=bob,r=a").split(b",")[1] for _ in range(2)]

    assert salts[0] == salts[1]


def test_plain_needs_tls() -> None:
    """A password in the clear is taken only where TLS hides it (reliability §4.1)."""
    assert not Login(USERS, tls=False).choose(PLAIN)
    login = begun(PLAIN, tls=True)
    with pytest.raises(LoginRefused):
        login.step(b"\0alice\0guess")
    right = begun(PLAIN, tls=True)
    right.step(b"\0alice\0wonderland")

    assert right.done


@pytest.mark.parametrize("message", [b"", b"n,,", b"p=tls,,n=a,r=b", b"\xff\xfe", b"n,,n=alice,r=" + b"x" * 5000])
def test_nonsense_is_refused(message: bytes) -> None:
    """Messages that cannot be read, or are too long, end the login and nothing else (reliability §4.2)."""
    with pytest.raises(LoginRefused):
        begun().step(message)
    with pytest.raises(LoginRefused):
        Login(USERS, tls=True).step(message)
    login = begun()
    login.step(b"n,,n=alice,r=abc")
    with pytest.raises(LoginRefused):
        login.step(message)


def test_the_users_file_is_read_strictly(tmp_path: Path) -> None:
    """A line that is not user:password is named, without the password (reliability §4.1)."""
    path = tmp_path / "users"
    path.write_text("# comment\n\nalice:a:b\n")
    assert Users.read(path).find("alice")[1]
    for text in ("alice\n", ":x\n", "# nobody\n"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="users"):
            Users.read(path)
    with pytest.raises(ConfigError):
        Users.read(tmp_path / "missing")
