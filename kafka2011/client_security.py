"""How the clients of this process show who they are, and whom they trust: declared once, used by all of them.

Every command, the producer, the Algorithm 1 consumer, the modern member, the page and the load take it from here,
unless code gives them a context of its own. File < environment < flags, as for a broker:

    kafka2011 --client-config client.properties fetch clicks
    KAFKA2011_CLIENT_TLS_CA=ca.pem kafka2011 fetch clicks
    kafka2011 --client client.tls.ca=ca.pem fetch clicks

Flags become environment variables, so that processes which are started (Spark's workers) have them too. Not in 2011.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from kafka2011.config import Config, load_config, variable
from kafka2011.errors import ConfigError
from kafka2011.private_file import read_private
from kafka2011.settings import CLIENT_SETTINGS

FILE_VARIABLE = "KAFKA2011_CLIENT_CONFIG"
"""Names the file, a Java properties file as a broker's."""


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """What a client shows and trusts."""

    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext | None:
        """TLS 1.2 or newer that checks the broker's certificate and its host name; None without TLS."""
        if not self.tls:
            return None
        return client_context(self.ca, self.certificate, self.key, "client.tls")


def client_context(ca: Path | None, certificate: Path | None, key: Path | None, what: str) -> ssl.SSLContext:
    """TLS 1.2 or newer that checks the server's certificate and host name; only ``ca`` is trusted, where one is given.

    ``what`` names the setting in the error.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # asks for a certificate and compares the host name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.load_verify_locations(ca)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        files = ", ".join(str(file) for file in (ca, certificate, key) if file is not None)
        raise ConfigError(f"{what} cannot be set up from {files}: {error.strerror or error}") from error
    return context


def read_settings(environ: Mapping[str, str]) -> Config:
    """The settings of a client, out of the environment and the file it names."""
    file = environ.get(FILE_VARIABLE)
    own = {name: text for name, text in environ.items() if name in {variable(s.name) for s in CLIENT_SETTINGS}}
    return load_config(Path(file) if file else None, own, settings=CLIENT_SETTINGS)


def read_security(environ: Mapping[str, str]) -> ClientSecurity:
    """What the environment, and the file it names, declare."""
    config = read_settings(environ)
    files = {name: _file(config, f"client.tls.{name}") for name in ("ca", "certificate", "key")}
    given = any(files.values())
    if config["client.tls"] is False and given and config.origin("client.tls") != "default":
        raise ConfigError("client.tls=false, but client.tls.ca or a certificate is set; remove one of them")
    user, secret = config["client.sasl.user"], _file(config, "client.sasl.password.file")
    if (user is None) != (secret is None):
        raise ConfigError("a login needs both client.sasl.user and client.sasl.password.file")
    password = None if secret is None else read_private("client.sasl.password.file", secret).decode().strip("\r\n")
    return ClientSecurity(
        tls=config["client.tls"] is True or given,
        user=str(user) if user is not None else None,
        password=password,
        **files,
    )


@lru_cache(1)
def client_settings() -> Config:
    """The settings of this process's clients; read once. Those of ZooKeeper are ``zk_registry``'s to understand."""
    return read_settings(os.environ)


@lru_cache(1)
def client_security() -> ClientSecurity:
    """What this process declares; read once."""
    return read_security(os.environ)


@lru_cache(1)
def client_tls() -> ssl.SSLContext | None:
    """The TLS of every client of this process that was not given one."""
    return client_security().context()


def speaks_tls(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether a port that hung up on us answers in TLS. Its certificate is not looked at, and nothing is said to it.

    It has to be asked: OpenSSL sends no alert to who does not begin as TLS does.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), timeout_s) as line, context.wrap_socket(line, server_hostname=host):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # a refusal, but in TLS
    except (OSError, ValueError):
        return False


def declare(file: Path | None, pairs: Mapping[str, str]) -> None:
    """Take what the flags say, for this process and those it starts."""
    known = {setting.name for setting in CLIENT_SETTINGS}
    unknown = sorted(pairs.keys() - known)
    if unknown:
        raise ConfigError(f"there is no client setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
    if file is not None:
        os.environ[FILE_VARIABLE] = str(file.absolute())
    os.environ.update({variable(name): text for name, text in pairs.items()})
    for known_so_far in (client_settings, client_security, client_tls):
        known_so_far.cache_clear()


def _file(config: Config, name: str) -> Path | None:
    value = config[name]
    return value if isinstance(value, Path) else None
