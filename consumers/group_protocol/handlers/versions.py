"""ApiVersions: what is offered, and in which versions. Spec: modern-group-protocol §1.4, §1.6."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consumers.group_protocol.codec import APIS, ApiKey, Struct
from consumers.group_protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern

_SASL = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


def offer(modern: Modern, error: ErrorCode = ErrorCode.NONE) -> Struct:
    """The list of requests; the two about logging in only where one must log in."""
    apis = [
        Struct(key=api.key, min=api.first, max=api.last)
        for api in APIS.values()
        if modern.users is not None or api.key not in _SASL
    ]
    return Struct(error=error, apis=apis)


async def api_versions(modern: Modern, _call: Call) -> Struct:
    """Tell what is offered."""
    return offer(modern)
