"""Logging in: SCRAM-SHA-256 and PLAIN, step by step. docs/security.md; RFC 5802."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from kafka2011.errors import ConfigError
from since2011.server.sasl import PLAIN, SCRAM, Login, LoginRefused
from since2011.server.users import Users

USERS = Users({"alice": "wonderland", "=,odd": "x"})


def scram(
    login: Login, user: str, password: str, *, nonce: str = "abc", tamper: bool = False, channel: bytes = b"n,,"
) -> bytes:
    """A client's side of SCRAM; the server's last message."""
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = login.step(f"n,,{bare}".encode()).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c={base64.b64encode(channel).decode()},r={fields['r'] + ('x' if tamper else '')}"
    signed = f"{bare},{challenge},{final}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    answer = login.step(f"{final},p={proof}".encode())
    expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
    assert answer == b"v=" + base64.b64encode(expected)
    return answer


def begun(mechanism: str = SCRAM, *, tls: bool = False) -> Login:
    login = Login(USERS, tls=tls)
    login.choose(mechanism)
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
    """Whatever is wrong, the refusal says the same (docs/reliability.md)."""
    login = begun()
    with pytest.raises(LoginRefused, match="wrong user or password"):
        scram(login, user, password, tamper=tamper)
    assert not login.done


def test_asking_does_not_tell_who_exists() -> None:
    """An unknown user has a salt too, the same each time (docs/reliability.md)."""
    salts = [begun().step(b"n,,n=bob,r=a").split(b",")[1] for _ in range(2)]

    assert salts[0] == salts[1]


def test_plain_needs_tls() -> None:
    """A password in the clear is taken only where TLS hides it (docs/reliability.md)."""
    with pytest.raises(LoginRefused, match="SCRAM-SHA-256"):
        Login(USERS, tls=False).choose(PLAIN)
    login = begun(PLAIN, tls=True)
    with pytest.raises(LoginRefused):
        login.step(b"\0alice\0guess")
    right = begun(PLAIN, tls=True)
    right.step(b"\0alice\0wonderland")

    assert right.done


@pytest.mark.parametrize("message", [b"", b"n,,", b"p=tls,,n=a,r=b", b"\xff\xfe", b"n,,n=alice,r=" + b"x" * 5000])
def test_nonsense_is_refused(message: bytes) -> None:
    """Messages that cannot be read, or are too long, end the login and nothing else (docs/reliability.md)."""
    with pytest.raises(LoginRefused):
        begun().step(message)
    with pytest.raises(LoginRefused):
        Login(USERS, tls=True).step(message)
    login = begun()
    login.step(b"n,,n=alice,r=abc")
    with pytest.raises(LoginRefused):
        login.step(message)


@pytest.mark.parametrize("channel", [b"n", b"y,,", b"n,,x", b"n,a=bob,", b"nonsense", b""])
def test_the_channel_is_compared_whole(channel: bytes) -> None:
    """Issue 20 B3: c= must say again, word for word, what the client's first message began with (RFC 5802 §6)."""
    login = begun()
    with pytest.raises(LoginRefused, match="wrong user or password"):
        scram(login, "alice", "wonderland", channel=channel)
    assert not login.done


def test_a_refused_login_stays_refused() -> None:
    """Issue 20 B3: the right password after a wrong one, or another mechanism, opens nothing."""
    login = begun(PLAIN, tls=True)
    with pytest.raises(LoginRefused):
        login.step(b"\0alice\0guess")
    with pytest.raises(LoginRefused, match="out of turn"):
        login.step(b"\0alice\0wonderland")
    with pytest.raises(LoginRefused):
        login.choose(SCRAM)
    assert not login.done


@pytest.mark.parametrize("message", [b"bob\0alice\0wonderland", b"n,a=bob,n=alice,r=abc", b"n,,n=alice,n=bob,r=abc"])
def test_nobody_acts_for_somebody_else(message: bytes) -> None:
    """A login for one user in another's name, or with two names, is refused (RFC 4616, RFC 5802)."""
    with pytest.raises(LoginRefused):
        begun(PLAIN if b"\0" in message else SCRAM, tls=True).step(message)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file only its owner can read."""
    path = tmp_path / "users"
    path.touch(mode=0o600)
    return path


def test_the_users_file_is_read_strictly(file: Path) -> None:
    """A line that is not user:password is named, without the password (docs/reliability.md)."""
    file.write_text("# comment\n\nalice:a:b\r\n")
    assert Users.read(file).find("alice")[0].is_password(b"a:b")
    for text in ("alice\n", ":x\n", "# nobody\n", "alice:\n"):
        file.write_text(text)
        with pytest.raises(ConfigError, match="users"):
            Users.read(file)
    with pytest.raises(ConfigError):
        Users.read(file.parent / "missing")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("alice:secret\nbob:x\nalice:other\n", r"users:3 names 'alice' again, after line 1"),
        ("\ufeffalice:secret\n", r"users:1 begins with a byte order mark"),
        ("bob:x\n alice:secret\n", r"users:2 has blanks"),
        ("bob:x\nalice :secret\n", r"users:2 has blanks"),
        ("bob:x\nalice:secret \n", r"users:2 has blanks"),
        ("bob:x\n   \n", r"users:2 is not user:password"),
        ("bob:x\nal\x00ice:secret\n", r"users:2 holds a sign that cannot be seen"),
        ("bob:x\nal\u200bice:secret\n", r"users:2 holds a sign that cannot be seen"),
        ("bob:x\nalice:sec\u2028ret\n", r"users:2 holds a sign that cannot be seen"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(file: Path, text: str, sentence: str) -> None:
    """Issue 20 B6: duplicates, a byte order mark and blanks are refused with the line, and never with the password."""
    file.write_text(text)
    with pytest.raises(ConfigError, match=sentence) as refused:
        Users.read(file)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_users_file_that_others_can_open_is_refused(file: Path, mode: int) -> None:
    """Issue 20 B6: passwords in a file that others can read or write are nobody's secret."""
    file.write_text("alice:secret\n")
    file.chmod(mode)
    with pytest.raises(ConfigError, match=rf"open to others \(mode {mode:04o}\); close it with: chmod 600"):
        Users.read(file)
