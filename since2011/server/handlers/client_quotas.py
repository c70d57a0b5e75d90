"""DescribeClientQuotas and AlterClientQuotas: quotas of users, clients and addresses.

Behavior:
- Describing shows what stands in the cluster's metadata, where a real broker may have written it.
- Altering is refused with INVALID_REQUEST: this release applies no quotas, and what is not applied is not accepted.
  What bounds clients here are limits of connections, bytes and requests for all alike (docs/configuration.md).

Version notes:
- 1 flexible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from since2011.topics.errors import InvalidRequest
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode
from zk_registry.modern.paths import DEFAULT_ENTITY, unsanitized

if TYPE_CHECKING:
    from since2011.server.handlers.call import Call
    from since2011.server.service import ModernBroker

_EXACT, _DEFAULT, _ANY = range(3)
_KINDS = {"users": "user", "clients": "client-id", "ips": "ip"}
_REFUSAL = "quotas of clients are not applied by this release, so none is taken; nothing was changed"


async def describe_client_quotas(modern: ModernBroker, call: Call) -> Struct:
    """The quotas that match every component; ``strict``: and that have no other."""
    components = {component.entity_type: component for component in call.body.components}
    unknown = [kind for kind in components if kind not in _KINDS.values()]
    if unknown or len(components) < len(call.body.components):
        sentence = f"kinds of entities are user, client-id and ip, each once, not {unknown or 'one twice'}"
        return Struct(error=ErrorCode.INVALID_REQUEST, error_message=sentence, entries=None)
    entries = []
    for path, settings in modern.topics.image.configs.items():
        entity = _entity(path)
        values = _numbers(settings)
        if entity and values and _matches(entity, components, strict=call.body.strict):
            entries.append(
                Struct(
                    entity=[Struct(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                    values=[Struct(key=key, value=value) for key, value in values.items()],
                )
            )
    return Struct(error=ErrorCode.NONE, error_message=None, entries=entries)


async def alter_client_quotas(modern: ModernBroker, call: Call) -> Struct:
    """Refuse each, with the reason."""
    error = ErrorCode(InvalidRequest.code)
    return Struct(entries=[Struct(error=error, error_message=_REFUSAL, entity=e.entity) for e in call.body.entries])


def _entity(path: str) -> dict[str, str | None]:
    """``users/u/clients/c`` as kinds and names; a default is None. Empty for topics and brokers."""
    words = path.split("/")
    if words[0] not in _KINDS or len(words) % 2:
        return {}
    names = (None if name == DEFAULT_ENTITY else unsanitized(name) for name in words[1::2])
    return {_KINDS.get(kind, kind): name for kind, name in zip(words[::2], names, strict=True)}


def _numbers(settings: Mapping[str, str]) -> dict[str, float]:
    found = {}
    for name, text in settings.items():
        try:
            found[name] = float(text)
        except ValueError:
            continue  # SCRAM credentials stand beside quotas
    return found


def _matches(entity: Mapping[str, str | None], components: Mapping[str, Struct], *, strict: bool) -> bool:
    if strict and entity.keys() != components.keys():
        return False
    for kind, component in components.items():
        if kind not in entity:
            return False
        if component.match_type == _EXACT and entity[kind] != component.match:
            return False
        if component.match_type == _DEFAULT and entity[kind] is not None:
            return False
    return True
