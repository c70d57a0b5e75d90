"""Who is there: SCRAM-SHA-256, and PLAIN where TLS hides it. Pure; the handlers carry the messages.

Passwords come from a file of ``user:password`` lines and are kept only as salted keys. An unknown user gets a salt
all the same, always the same one, so that asking does not tell who exists.

Spec: research/reliability §4.1; RFC 5802, RFC 7677.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka2011.errors import ConfigError, Kafka2011Error

SCRAM, PLAIN = "SCRAM-SHA-256", "PLAIN"
ITERATIONS = 4096
_LONGEST = 4096
"""Bytes of one message of a login; more is nobody's."""


class LoginRefused(Kafka2011Error):
    """The client could not show that it is who it says."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What is kept of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, password: bytes, salt: bytes) -> Credential:
        """Derive the keys of RFC 5802."""
        salted = hashlib.pbkdf2_hmac("sha256", password, salt, ITERATIONS)
        return cls(salt, hashlib.sha256(_hmac(salted, b"Client Key")).digest(), _hmac(salted, b"Server Key"))

    def is_password(self, password: bytes) -> bool:
        """Tell whether these keys come from ``password``."""
        return hmac.compare_digest(self.stored_key, Credential.of(password, self.salt).stored_key)


class Users:
    """The users and their keys."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._credentials = {user: Credential.of(text.encode(), os.urandom(16)) for user, text in passwords.items()}
        self._secret = os.urandom(32)

    @classmethod
    def read(cls, path: Path) -> Users:
        """Read a file of ``user:password`` lines; # begins a comment."""
        try:
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"modern.sasl.users {path} cannot be read: {error}") from error
        passwords = {}
        for number, line in enumerate(lines, 1):
            user, colon, password = line.partition(":")
            if line and not line.startswith("#"):
                if not (user and colon and password):
                    raise ConfigError(f"modern.sasl.users {path}:{number} is not user:password")
                passwords[user] = password
        if not passwords:
            raise ConfigError(f"modern.sasl.users {path} names nobody")
        return cls(passwords)

    def find(self, user: str) -> tuple[Credential, bool]:
        """A user's keys, and whether there is such a user."""
        known = self._credentials.get(user)
        if known is not None:
            return known, True
        return Credential(_hmac(self._secret, user.encode())[:16], bytes(32), bytes(32)), False


class Login:
    """One client's way in: choose a mechanism, then ``step`` until ``done``. A refusal is final."""

    def __init__(self, users: Users, *, tls: bool) -> None:
        self.mechanisms = (SCRAM, PLAIN) if tls else (SCRAM,)
        self.mechanism: str | None = None
        self.raw = False
        """Whether the messages come as bare frames (SaslHandshake version 0)."""
        self.done = False
        self.user: str | None = None
        self._users = users
        self._nonce = ""
        self._first_bare = ""
        self._challenge = ""

    def choose(self, mechanism: str) -> bool:
        """Begin with ``mechanism``; False if it is not offered here."""
        if self.mechanism is not None or mechanism not in self.mechanisms:
            return False
        self.mechanism = mechanism
        return True

    def step(self, message: bytes) -> bytes:
        """Take a message of the client and return the answer. Raises LoginRefused."""
        if self.mechanism is None or self.done or len(message) > _LONGEST:
            raise LoginRefused("a login message out of turn")
        try:
            text = message.decode()
            if self.mechanism == PLAIN:
                return self._plain(text)
            return self._final(text) if self._challenge else self._first(text)
        except (ValueError, KeyError):
            raise LoginRefused("a login message that cannot be read") from None

    def _plain(self, text: str) -> bytes:
        _, user, password = text.split("\0")
        credential, exists = self._users.find(user)
        if not credential.is_password(password.encode()) or not exists:
            raise LoginRefused("wrong user or password")
        self.user, self.done = user, True
        return b""

    def _first(self, text: str) -> bytes:
        """``n,,n=user,r=nonce`` -> ``r=nonce+ours,s=salt,i=iterations``."""
        flag, _, bare = text.split(",", 2)
        if flag not in ("n", "y"):
            raise LoginRefused("channel binding is not offered")
        fields = _fields(bare)
        self.user = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self._nonce = fields["r"] + base64.b64encode(os.urandom(18)).decode()
        self._first_bare = bare
        salt = base64.b64encode(self._users.find(self.user)[0].salt).decode()
        self._challenge = f"r={self._nonce},s={salt},i={ITERATIONS}"
        return self._challenge.encode()

    def _final(self, text: str) -> bytes:
        """``c=channel,r=nonce,p=proof`` -> ``v=signature``."""
        assert self.user is not None
        without_proof, _, proof = text.rpartition(",p=")
        fields = _fields(without_proof)
        credential, exists = self._users.find(self.user)
        signed = f"{self._first_bare},{self._challenge},{without_proof}".encode()
        signature = _hmac(credential.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof, validate=True), signature, strict=True))
        right = hmac.compare_digest(hashlib.sha256(client_key).digest(), credential.stored_key)
        if not (right and exists and fields["r"] == self._nonce and base64.b64decode(fields["c"])[:1] in (b"n", b"y")):
            raise LoginRefused("wrong user or password")
        self.done = True
        return b"v=" + base64.b64encode(_hmac(credential.server_key, signed))


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, "sha256").digest()


def _fields(text: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
