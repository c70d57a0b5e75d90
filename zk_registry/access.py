"""Who may read and write what we create, and how the line to ZooKeeper is kept private. Not in 2011."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kazoo.security import ACL, Id, Permissions, make_digest_acl

from kafka2011.errors import ConfigError
from zk_registry.paths import SHARED_PARENTS

AccessLists = Callable[[str], "Sequence[object] | None"]
"""The access list for a node that is created at a path; None for an open one."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS to ZooKeeper: PEM files, as kazoo takes them."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    verify: bool = True

    def options(self) -> dict[str, object]:
        """As arguments of a KazooClient."""
        return {
            "use_ssl": True,
            "ca": self.ca and str(self.ca),
            "certfile": self.certificate and str(self.certificate),
            "keyfile": self.key and str(self.key),
            "verify_certs": self.verify,
        }


def access_lists(credential: str | None) -> AccessLists:
    """All for the credential, read for the world; under shared parents the world may also create."""
    if credential is None:
        return lambda path: None
    user, colon, password = credential.partition(":")
    if not colon:
        raise ConfigError("a ZooKeeper credential is USER:PASSWORD; this one has no colon")
    mine = make_digest_acl(user, password, all=True)
    world = Id("world", "anyone")
    private = [mine, ACL(Permissions.READ, world)]
    shared = [mine, ACL(Permissions.READ | Permissions.CREATE, world)]
    return lambda path: shared if path in SHARED_PARENTS else private
