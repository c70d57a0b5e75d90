"""Whom a connection speaks for: the name in its certificate, the login it proved, or nobody in particular.

Every connection of either port has one ``Principal``; events that name a peer name it too, and ``/state`` counts the
connections of each. There are no rights yet: this is what they will stand on. Not in 2011.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

_MOST_NAMED = 50
_LONGEST = 256
"""Characters of a name: an authority may have signed anything."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is on the other side, and how that is known. Written ``login:alice``, ``certificate:CN=web1``, ``anonymous``.

    A name is never longer than is good for a line of a log, and holds nothing that cannot be printed.
    """

    kind: Literal["anonymous", "certificate", "login"] = "anonymous"
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


ANONYMOUS = Principal()


def logged_in(user: str) -> Principal:
    """A user who has shown a password."""
    return Principal("login", _printable(user))


def of_transport(transport: Any) -> Principal:
    """The name in the certificate that the other side of a TLS connection showed; without one: anonymous.

    Known once the handshake is over, so at the first byte of a request and not before.
    """
    shown = getattr(transport, "getPeerCertificate", lambda: None)()
    if shown is None:
        return ANONYMOUS
    parts = [f"{field.decode()}={_escaped(value)}" for field, value in shown.get_subject().get_components()]
    return Principal("certificate", _printable(",".join(parts) or "nameless"))


class HasPrincipal(Protocol):
    """A connection."""

    principal: Principal


def counted(connections: Iterable[HasPrincipal]) -> dict[str, int]:
    """How many connections each principal has; of very many principals, those with the most."""
    counts = Counter(str(connection.principal) for connection in connections)
    named = dict(counts.most_common(_MOST_NAMED))
    others = counts.total() - sum(named.values())
    return named | ({"others": others} if others else {})


def _escaped(value: bytes) -> str:
    """A value of a certificate's name: a comma inside it must not look like the next field."""
    text = value.decode("utf-8", "backslashreplace")
    return "".join(f"\\{sign}" if sign in ',=\\"+<>;' else sign for sign in text)


def _printable(name: str) -> str:
    text = name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
