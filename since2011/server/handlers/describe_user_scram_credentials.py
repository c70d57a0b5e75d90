"""DescribeUserScramCredentials: which users have SCRAM credentials in the cluster's metadata: none has.

Behavior:
- All users (null or none named): an empty answer. A user by name: RESOURCE_NOT_FOUND. Users of this broker stand in the
  file ``modern.sasl.users``, which is nobody's business on the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker


async def describe_user_scram_credentials(modern: ModernBroker, call: Call) -> Struct:
    """Tell of each user that it has none."""
    results = [
        Struct(
            user=user.name,
            error=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user.name[:250]}",
            credential_infos=[],
        )
        for user in call.body.users or ()
    ]
    return Struct(error=ErrorCode.NONE, error_message=None, results=results)
