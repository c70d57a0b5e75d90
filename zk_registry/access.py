"""Who may read and write what we create, and how the line to ZooKeeper is kept private. Not in 2011."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kazoo.security import ACL, Id, Permissions, make_digest_acl

from kafka2011.client_security import client_context, client_settings
from kafka2011.config import Config
from kafka2011.errors import ConfigError
from kafka2011.private_file import read_private
from zk_registry.paths import SHARED_PARENTS

AccessLists = Callable[[str], "Sequence[object] | None"]
"""The access list for a node that is created at a path; None for an open one."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How to speak TLS to ZooKeeper: PEM files of the authority to trust, and of our own certificate if one is asked.

    The server must show a certificate for the host name of the connect string, signed by ``ca``; where no ``ca`` is
    given, by an authority of the system.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or newer that checks who answers.

        Made here and not by kazoo: kazoo trusts the system's authorities beside ``ca``, and leaves host names alone.
        """
        return client_context(self.ca, self.certificate, self.key, "TLS to ZooKeeper")


@dataclass(frozen=True, slots=True)
class Access:
    """What a session shows and trusts; a ``credential`` is ``user:password``."""

    credential: str | None = field(default=None, repr=False)
    tls: Tls | None = None


def access_of(config: Config, prefix: str = "") -> Access:
    """What the settings ``zk.tls…`` and ``zk.credential.file`` say: a broker's, or with ``client.`` a client's."""
    files = [config[f"{prefix}zk.tls.{name}"] for name in ("ca", "certificate", "key")]
    ca, certificate, key = (file if isinstance(file, Path) else None for file in files)
    given = any(file is not None for file in files)
    wanted = config[f"{prefix}zk.tls"] is True
    if given and not wanted and config.origin(f"{prefix}zk.tls") != "default":
        raise ConfigError(f"{prefix}zk.tls=false, but {prefix}zk.tls.ca or a certificate is set; remove one of them")
    tls = Tls(ca, certificate, key) if wanted or given else None
    return Access(_credential(config, f"{prefix}zk.credential.file"), tls)


def declared_access() -> Access:
    """What the clients of this process declare (``kafka2011.client_security``)."""
    return access_of(client_settings(), "client.")


def _credential(config: Config, setting: str) -> str | None:
    file = config[setting]
    if not isinstance(file, Path):
        return None
    text = read_private(setting, file).decode("utf-8", "replace").strip()
    if ":" not in text:
        raise ConfigError(f"{setting} {file} must hold user:password")
    return text


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
