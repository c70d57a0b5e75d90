"""FindCoordinator: name the broker that speaks for a group, or for a transactional id.

Behavior:
- Key type 0 is a group, 1 a transactional id. The service that coordinates them says who speaks for a key; where none
  is installed for transactions any broker is named, and InitProducerId says that there are none.

Version notes:
- 1 key types and a message; 3 flexible; 4 several keys in one request; 6 knows groups of another kind, which are not
  offered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from since2011.wire.refusals import Refused, refusal

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_GROUP, _TRANSACTION = 0, 1


async def find_coordinator(modern: ModernBroker, call: Call) -> Struct:
    """One key up to version 3, several from 4 on."""
    if call.version < 4:
        return await _find(modern, call, call.body.key)
    return Struct(coordinators=[await _find(modern, call, key) for key in call.body.keys])


async def _find(modern: ModernBroker, call: Call, key: str) -> Struct:
    kind = call.body.key_type
    try:
        if kind not in (_GROUP, _TRANSACTION):
            raise Refused(ErrorCode.INVALID_REQUEST, f"coordinator type {kind}; 0 is a group, 1 a transaction")
        service = modern.coordinators.get(kind)
        found = modern.address if service is None else await service.coordinator_of(key)
    except Kafka2011Error as error:
        code, sentence = refusal(error)
        return Struct(key=key, error=code, error_message=sentence)
    broker = modern.advertised(found, call.caller.reached)
    return Struct(key=key, error=ErrorCode.NONE, node=broker.broker_id, host=broker.host, port=broker.port)
