"""SaslHandshake and SaslAuthenticate, where a login is asked for. docs/reliability.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.server.sasl import LoginRefused
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def sasl_handshake(modern: ModernBroker, call: Call) -> Struct:
    """Agree on a mechanism; where that fails the connection ends, as with a wrong password."""
    login = call.caller.login
    if login is None or login.done:
        return Struct(error=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    try:
        login.choose(call.body.mechanism)
    except LoginRefused as error:
        await modern.logins.refused(call.caller, login, error)
        return Struct(error=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(login.mechanisms))
    login.raw = call.version == 0
    return Struct(error=ErrorCode.NONE, mechanisms=list(login.mechanisms))


async def sasl_authenticate(modern: ModernBroker, call: Call) -> Struct:
    """One step of the login; a refusal is answered, then the connection ends."""
    login = call.caller.login
    if login is None or login.done:
        return Struct(error=ErrorCode.ILLEGAL_SASL_STATE, error_message="no login is asked for here, or not any more")
    try:
        answer = await modern.logins.step(call.caller, login, call.body.auth)
    except LoginRefused as error:
        return Struct(error=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error))
    return Struct(error=ErrorCode.NONE, error_message=None, auth=answer)
