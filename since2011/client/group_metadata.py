"""What a consumer and a producer tell each other of offsets and groups, so that both fit into one transaction."""

from __future__ import annotations

from typing import NamedTuple


class OffsetAndMetadata(NamedTuple):
    """The next offset to read, as it is committed."""

    offset: int
    leader_epoch: int = -1
    """Of the record before it: shows whether the log was cut off below; -1 unknown."""
    metadata: str = ""
    """A note of the application's."""


class GroupMetadata(NamedTuple):
    """A consumer's place in its group, for ``send_offsets_to_transaction``: an older generation is refused there."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
