"""The client's side of SCRAM-SHA-256 at the modern port. RFC 5802, RFC 7677; the broker's side is ``sasl``."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable

from kafka2011.errors import Kafka2011Error
from since2011.server.users import keyed_hash
from since2011.wire.codec import ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

_MECHANISM = "SCRAM-SHA-256"
_MOST_ITERATIONS = 1_000_000

Ask = Callable[[ApiKey, int, Struct], Struct]


class LoginFailed(Kafka2011Error):
    """The broker does not let us in, or could not show that it knows the password."""


def log_in(ask: Ask, user: str, password: str) -> None:
    """Prove to the broker that we know the password, and let it prove the same. Raises LoginFailed."""
    agreed = ask(ApiKey.SASL_HANDSHAKE, 1, Struct(mechanism=_MECHANISM))
    if agreed.error:
        raise LoginFailed(f"the broker offers {', '.join(agreed.mechanisms) or 'no login'}, not {_MECHANISM}")
    nonce = secrets.token_urlsafe(18)
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    challenge = _step(ask, f"n,,{bare}")
    fields = dict(part.partition("=")[::2] for part in challenge.split(","))
    iterations = int(fields.get("i", "0") if fields.get("i", "").isdecimal() else 0)
    if not fields.get("r", "").startswith(nonce) or not 1 <= iterations <= _MOST_ITERATIONS:
        raise LoginFailed("the broker's challenge cannot be right; is somebody between us?")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), iterations)
    client_key = keyed_hash(salted, b"Client Key")
    final = f"c=biws,r={fields['r']}"
    signed = f"{bare},{challenge},{final}".encode()
    signature = keyed_hash(hashlib.sha256(client_key).digest(), signed)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    answer = _step(ask, f"{final},p={proof}")
    expected = base64.b64encode(keyed_hash(keyed_hash(salted, b"Server Key"), signed)).decode()
    if not hmac.compare_digest(answer, f"v={expected}"):
        raise LoginFailed("the broker does not know the password; is it the right broker?")


def _step(ask: Ask, message: str) -> str:
    answer = ask(ApiKey.SASL_AUTHENTICATE, 1, Struct(auth=message.encode()))
    if answer.error:
        name = ErrorCode(answer.error).name
        raise LoginFailed(f"the login was refused ({name}: {answer.error_message}); see client.sasl.user and its file")
    text: str = answer.auth.decode("utf-8", "replace")
    return text
