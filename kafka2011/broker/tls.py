"""TLS on the broker's ports: the certificate with its chain, its key, and the authorities of clients. Not in 2011.

``tls.certificate`` is what authorities hand out as the "full chain": the broker's own certificate first, then those
that lead to an authority clients trust. All of it is sent, so that a client needs to know that authority only.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka2011.config import Config
from kafka2011.errors import ConfigError
from kafka2011.private_file import read_private

if TYPE_CHECKING:
    from twisted.internet.ssl import CertificateOptions

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_INSTALL = "TLS needs pyOpenSSL; install it with: pip install 'kafka2011[tls]'"


def tls_options(config: Config) -> CertificateOptions | None:
    """TLS 1.2 or newer with the certificates of the settings; None if there are none."""
    certificate, key, client_ca = config["tls.certificate"], config["tls.key"], config["tls.client.ca"]
    if certificate is None and key is None and client_ca is None:
        return None
    if not isinstance(certificate, Path) or not isinstance(key, Path):
        raise ConfigError("TLS needs both tls.certificate and tls.key")
    try:
        from OpenSSL import SSL
        from twisted.internet import ssl
    except ImportError as error:
        raise ConfigError(_INSTALL) from error
    own, *chain = _certificates("tls.certificate", certificate)
    trusted = None
    if isinstance(client_ca, Path):
        authorities = _certificates("tls.client.ca", client_ca)
        trusted = ssl.trustRootFromCertificates([ssl.Certificate(one) for one in authorities])
    options = ssl.CertificateOptions(
        privateKey=_private_key(key), certificate=own, extraCertChain=chain, trustRoot=trusted
    )
    try:
        # Made at the first connection otherwise: too late to say that key and certificate do not belong together.
        options.getContext()
    except SSL.Error as error:
        raise ConfigError(
            f"tls.key {key} is not the key of the first certificate in tls.certificate {certificate} ({_why(error)}); "
            "the broker's own certificate comes first, then its chain"
        ) from error
    return options


def _certificates(setting: str, path: Path) -> list[Any]:
    """Every certificate of a PEM file, in order."""
    from OpenSSL import crypto

    blocks = _CERTIFICATE.findall(_read(setting, path))
    if not blocks:
        raise ConfigError(f"{setting} {path} holds no PEM certificate (-----BEGIN CERTIFICATE-----)")
    try:
        return [crypto.load_certificate(crypto.FILETYPE_PEM, block) for block in blocks]
    except crypto.Error as error:
        raise ConfigError(f"{setting} {path} holds a certificate that cannot be read: {_why(error)}") from error


def _private_key(path: Path) -> Any:
    from OpenSSL import crypto

    try:
        # An empty pass phrase, or OpenSSL would ask for one at the terminal.
        return crypto.load_privatekey(crypto.FILETYPE_PEM, read_private("tls.key", path), b"")
    except (crypto.Error, ValueError) as error:
        raise ConfigError(
            f"tls.key {path} holds no PEM private key without a pass phrase: {_why(error)}"
        ) from error


def _read(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting} {path} cannot be read: {error.strerror}") from error


def _why(error: Exception) -> str:
    """OpenSSL's reason: its errors are lists of (library, function, reason)."""
    reasons = error.args[0] if error.args else ""
    if isinstance(reasons, (list, tuple)) and reasons:
        return str(reasons[-1][-1])
    return str(reasons) or type(error).__name__
