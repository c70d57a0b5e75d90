"""IncrementalAlterConfigs: change single settings of topics and brokers, and leave the others.

Behavior:
- Operation 0 sets, 1 deletes (back to the default), 2 appends to a list, 3 subtracts from one; others INVALID_REQUEST.
- A list that a resource has not set begins as its default. What is no list: INVALID_CONFIG.
- Somebody else's change at the same moment is not lost: what is written is computed from what is there.

Version notes:
- 1 flexible.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.config_changes import alter, entity_of, increments
from since2011.server.handlers.create_topics import refused_by_store
from since2011.topics.errors import InvalidRequest
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def incremental_alter_configs(modern: ModernBroker, call: Call) -> Struct:
    """Change the settings of each."""
    named = Counter((resource.resource_type, resource.resource_name) for resource in call.body.resources)
    responses = []
    for resource in call.body.resources:
        answer = Struct(
            error=ErrorCode.NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            if named[resource.resource_type, resource.resource_name] > 1:
                raise InvalidRequest("a resource is named more than once")
            entity = entity_of(modern, resource)
            await alter(modern, entity, increments(resource.configs), validate_only=call.body.validate_only)
        except (Kafka2011Error, OSError) as error:
            answer.error, answer.error_message = refused_by_store(error)
        responses.append(answer)
    return Struct(responses=responses)
