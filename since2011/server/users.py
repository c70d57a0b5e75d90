"""Who may log in: the file of users, and what is kept of their passwords.

Passwords come from a file of ``user:password`` lines and are kept only as salted keys. An unknown user gets a salt
all the same, always the same one, so that asking does not tell who exists.

docs/reliability.md; RFC 5802, RFC 7677.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka2011.errors import ConfigError
from kafka2011.private_file import read_private

ITERATIONS = 4096
_SETTING = "modern.sasl.users"


def keyed_hash(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256, the hash of RFC 7677."""
    return hmac.new(key, data, "sha256").digest()


@dataclass(frozen=True, slots=True)
class Credential:
    """What is kept of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, password: bytes, salt: bytes) -> Credential:
        """Derive the keys of RFC 5802. Slow on purpose: not for the reactor's thread."""
        salted = hashlib.pbkdf2_hmac("sha256", password, salt, ITERATIONS)
        client_key, server_key = keyed_hash(salted, b"Client Key"), keyed_hash(salted, b"Server Key")
        return cls(salt, hashlib.sha256(client_key).digest(), server_key)

    def is_password(self, password: bytes) -> bool:
        """Tell whether these keys come from ``password``."""
        return hmac.compare_digest(self.stored_key, Credential.of(password, self.salt).stored_key)


class Users:
    """The users and their keys. Thread: any."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._credentials = {user: Credential.of(text.encode(), os.urandom(16)) for user, text in passwords.items()}
        self._secret = os.urandom(32)

    @classmethod
    def read(cls, path: Path) -> Users:
        """Read a file of ``user:password`` lines; # begins a comment. What could be read in two ways is refused."""
        try:
            text = read_private(_SETTING, path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{_SETTING} {path} is not UTF-8 (byte {error.start})") from error
        passwords: dict[str, str] = {}
        lines: dict[str, int] = {}
        for number, line in enumerate(text.split("\n"), 1):
            line = line.removesuffix("\r")
            if not line or line.startswith("#"):
                continue
            user, password = _user_and_password(line, f"{_SETTING} {path}:{number}")
            if user in lines:
                raise ConfigError(f"{_SETTING} {path}:{number} names {user!r} again, after line {lines[user]}")
            passwords[user], lines[user] = password, number
        if not passwords:
            raise ConfigError(f"{_SETTING} {path} names nobody")
        return cls(passwords)

    def find(self, user: str) -> tuple[Credential, bool]:
        """A user's keys, and whether there is such a user."""
        known = self._credentials.get(user)
        if known is not None:
            return known, True
        return Credential(keyed_hash(self._secret, user.encode())[:16], bytes(32), bytes(32)), False


def _user_and_password(line: str, where: str) -> tuple[str, str]:
    """The two parts of a line; errors name the place and never the password."""
    if line.startswith("\ufeff"):
        raise ConfigError(f"{where} begins with a byte order mark; save the file as UTF-8 without one")
    user, colon, password = line.partition(":")
    if not (user and colon and password):
        raise ConfigError(f"{where} is not user:password")
    if user != user.strip() or password != password.strip():
        raise ConfigError(f"{where} has blanks before or after the user or the password; remove them")
    if any(unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") for sign in line):
        raise ConfigError(f"{where} holds a sign that cannot be seen (a control character)")
    return user, password
