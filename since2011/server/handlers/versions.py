"""ApiVersions: what is offered, and in which versions. See docs/modern-port.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import APIS, ApiKey, Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_SASL = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


def offer(modern: ModernBroker, error: ErrorCode = ErrorCode.NONE) -> Struct:
    """The list of requests; the two about logging in only where one must log in."""
    apis = [
        Struct(key=api.key, min=api.first, max=api.last)
        for api in APIS.values()
        if api.key in modern.handlers and (modern.users is not None or api.key not in _SASL)
    ]
    return Struct(error=error, apis=apis)


async def api_versions(modern: ModernBroker, _call: Call) -> Struct:
    """Tell what is offered."""
    return offer(modern)
