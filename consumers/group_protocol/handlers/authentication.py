"""SaslHandshake and SaslAuthenticate, where a login is asked for. Spec: research/reliability §4.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from twisted.internet.task import deferLater

from consumers.group_protocol.codec import Struct
from consumers.group_protocol.error_codes import ErrorCode
from consumers.group_protocol.events import SaslRefused
from consumers.group_protocol.sasl import LoginRefused

if TYPE_CHECKING:
    from consumers.group_protocol.handlers.call import Call
    from consumers.group_protocol.service import Modern

REFUSAL_PAUSE_S = 0.5
"""A wrong password costs this long: guessing is slow."""


async def sasl_handshake(modern: Modern, call: Call) -> Struct:
    """Agree on a mechanism."""
    login = call.caller.login
    if login is None:
        return Struct(error=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    if not login.choose(call.body.mechanism):
        return Struct(error=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(login.mechanisms))
    login.raw = call.version == 0
    return Struct(error=ErrorCode.NONE, mechanisms=list(login.mechanisms))


async def sasl_authenticate(modern: Modern, call: Call) -> Struct:
    """One step of the login; a refusal is answered, then the connection ends."""
    login = call.caller.login
    if login is None:
        return Struct(error=ErrorCode.ILLEGAL_SASL_STATE, error_message="no login is asked for here")
    try:
        return Struct(error=ErrorCode.NONE, error_message=None, auth=login.step(call.body.auth))
    except LoginRefused as error:
        modern.journal.emit(SaslRefused(peer=call.caller.address, mechanism=login.mechanism or "none"))
        await deferLater(cast(Any, modern.reactor), REFUSAL_PAUSE_S)
        call.caller.close_after_answers()
        return Struct(error=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error))
