"""DescribeAcls, CreateAcls, DeleteAcls: there is no authorizer, and each is told so, as a real broker without one does.

Behavior:
- SECURITY_DISABLED. Who may come in at all is said by ``modern.sasl.users`` and TLS; whoever is in may do everything.

Version notes:
- 2 flexible; 3 as 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_SENTENCE = "No Authorizer is configured on the broker"
"""In a real broker's words, which tools look for."""
_DISABLED = {"error": ErrorCode.SECURITY_DISABLED, "error_message": _SENTENCE}


async def describe_acls(modern: ModernBroker, call: Call) -> Struct:
    """None can be described."""
    return Struct(**_DISABLED, resources=[])


async def create_acls(modern: ModernBroker, call: Call) -> Struct:
    """None can be made."""
    return Struct(results=[Struct(**_DISABLED) for _ in call.body.creations])


async def delete_acls(modern: ModernBroker, call: Call) -> Struct:
    """None can be deleted."""
    return Struct(filter_results=[Struct(**_DISABLED, matching_acls=[]) for _ in call.body.filters])
