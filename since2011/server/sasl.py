"""Who is there: SCRAM-SHA-256, and PLAIN where TLS hides it. Pure; ``logins`` carries the messages.

    begun    -> choose: a mechanism is agreed on
    choose   -> step, step…: ``done``, or refused
    refused  is final: whatever comes after it is refused too, unread

docs/security.md; RFC 5802, RFC 7677.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from kafka2011.errors import Kafka2011Error
from since2011.server.users import ITERATIONS, Users, keyed_hash

SCRAM, PLAIN = "SCRAM-SHA-256", "PLAIN"
_LONGEST = 4096
"""Bytes of one message of a login; more is nobody's."""


class LoginRefused(Kafka2011Error):
    """The client could not show that it is who it says."""


class Login:
    """One client's way in: choose a mechanism, then ``step`` until ``done``. A refusal is final. Thread: one at a time.

    ``step`` may hash a password, which takes milliseconds: it is meant for a thread other than the reactor's.
    """

    def __init__(self, users: Users, *, tls: bool) -> None:
        self.mechanisms = (SCRAM, PLAIN) if tls else (SCRAM,)
        self.mechanism: str | None = None
        self.raw = False
        """Whether the messages come as bare frames (SaslHandshake version 0)."""
        self.done = False
        self.user: str | None = None
        """Who the client says it is; who it is once ``done``."""
        self._users = users
        self._refused = False
        self._binding = ""
        self._nonce = ""
        self._first_bare = ""
        self._challenge = ""

    def choose(self, mechanism: str) -> None:
        """Begin with ``mechanism``. Raises LoginRefused if it is not offered here, or another was chosen before."""
        if self._refused or self.mechanism is not None or mechanism not in self.mechanisms:
            self._refused = True
            raise LoginRefused(f"a login here begins once, with {' or '.join(self.mechanisms)}")
        self.mechanism = mechanism

    def step(self, message: bytes) -> bytes:
        """Take a message of the client and return the answer. Raises LoginRefused."""
        try:
            if self._refused or self.mechanism is None or self.done or len(message) > _LONGEST:
                raise LoginRefused("a login message out of turn")
            text = message.decode()
            if self.mechanism == PLAIN:
                return self._plain(text)
            return self._final(text) if self._challenge else self._first(text)
        except LoginRefused:
            self._refused = True
            raise
        except (ValueError, KeyError):
            self._refused = True
            raise LoginRefused("a login message that cannot be read") from None

    def _plain(self, text: str) -> bytes:
        """``[other]\\0user\\0password``; to act for somebody else is not offered."""
        other, self.user, password = text.split("\0")
        credential, exists = self._users.find(self.user)
        if not credential.is_password(password.encode()) or not exists or other not in ("", self.user):
            raise LoginRefused("wrong user or password")
        self.done = True
        return b""

    def _first(self, text: str) -> bytes:
        """``n,,n=user,r=nonce`` -> ``r=nonce+ours,s=salt,i=iterations``."""
        flag, other, bare = text.split(",", 2)
        if flag not in ("n", "y"):
            raise LoginRefused("channel binding is not offered")
        fields = _fields(bare)
        self.user = _unescaped(fields["n"])
        if other and _unescaped(other.removeprefix("a=")) != self.user:
            raise LoginRefused("to act for somebody else is not offered")
        # What the client must say again, word for word, in its signed message: nobody has changed it on the way.
        self._binding = base64.b64encode(f"{flag},{other},".encode()).decode()
        self._nonce = fields["r"] + base64.b64encode(os.urandom(18)).decode()
        self._first_bare = bare
        salt = base64.b64encode(self._users.find(self.user)[0].salt).decode()
        self._challenge = f"r={self._nonce},s={salt},i={ITERATIONS}"
        return self._challenge.encode()

    def _final(self, text: str) -> bytes:
        """``c=channel,r=nonce,p=proof`` -> ``v=signature``."""
        assert self.user is not None
        without_proof, _, proof = text.rpartition(",p=")
        credential, exists = self._users.find(self.user)
        signed = f"{self._first_bare},{self._challenge},{without_proof}".encode()
        signature = keyed_hash(credential.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(base64.b64decode(proof, validate=True), signature, strict=True))
        right = hmac.compare_digest(hashlib.sha256(client_key).digest(), credential.stored_key)
        if not (right and exists and without_proof == f"c={self._binding},r={self._nonce}"):
            raise LoginRefused("wrong user or password")
        self.done = True
        return b"v=" + base64.b64encode(keyed_hash(credential.server_key, signed))


def _fields(text: str) -> dict[str, str]:
    """``n=alice,r=abc`` as a mapping; a field that comes twice, or that must be understood (m=), cannot be read."""
    parts = [part for part in text.split(",") if part[1:2] == "="]
    found = {part[0]: part[2:] for part in parts}
    if len(found) != len(parts) or "m" in found:
        raise ValueError("fields that can be read in two ways")
    return found


def _unescaped(name: str) -> str:
    """A name as RFC 5802 writes it: ``=2C`` is a comma, ``=3D`` an equals sign, and no other equals sign is legal."""
    head, *rest = name.split("=")
    if any(part[:2] not in ("2C", "3D") for part in rest):
        raise ValueError("a name that is not escaped")
    return head + "".join({"2C": ",", "3D": "="}[part[:2]] + part[2:] for part in rest)
