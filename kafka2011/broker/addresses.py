"""Which addresses are this machine's own."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

LOOPBACK = "127.0.0.1"


@lru_cache(1024)
def is_loopback(address: str) -> bool:
    """Whether only programs on this machine can connect to what listens there."""
    try:
        found = ip_address(address)
        return (getattr(found, "ipv4_mapped", None) or found).is_loopback
    except ValueError:
        return address == "localhost"
