"""AlterConfigs: replace all settings of a topic or broker by those given. IncrementalAlterConfigs is the better one.

Behavior:
- What is not named goes back to its default. One resource that is refused keeps none of the others from being altered.
- Settings of a topic hold at once, for its old segments too. Of a broker only the defaults of topics can be altered.

Version notes:
- 2 flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka2011.errors import Kafka2011Error
from since2011.server.handlers.config_changes import alter, entity_of, replacement
from since2011.server.handlers.create_topics import refused_by_store
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def alter_configs(modern: ModernBroker, call: Call) -> Struct:
    """Replace the settings of each."""
    responses = []
    for resource in call.body.resources:
        answer = Struct(
            error=ErrorCode.NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            entity = entity_of(modern, resource)
            await alter(modern, entity, replacement(resource.configs), validate_only=call.body.validate_only)
        except (Kafka2011Error, OSError) as error:
            answer.error, answer.error_message = refused_by_store(error)
        responses.append(answer)
    return Struct(responses=responses)
