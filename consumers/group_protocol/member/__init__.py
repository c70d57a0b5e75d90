"""Our own consumer of a modern group: today's coordination and today's fetch, through one list of addresses.

    with Consumer(bootstrap_servers="127.0.0.1:9192", group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["clicks"])
        for record in consumer.poll(1.0):
            ...

See docs/group-protocol.md. Paper: §3.2, whose answer to the same question is ``consumers.algorithm1``.
"""

from consumers.group_protocol.member.consumer import Consumer, WokenUp
from consumers.group_protocol.member.listener import Listener
from consumers.group_protocol.member.subscriptions import IllegalUse
from since2011.client.errors import CommitNotStored, CommitRefused, GroupError
from since2011.client.fetch.chunk import ConsumerRecord
from since2011.client.group_metadata import GroupMetadata, OffsetAndMetadata

__all__ = [
    "CommitNotStored",
    "CommitRefused",
    "Consumer",
    "ConsumerRecord",
    "GroupError",
    "GroupMetadata",
    "IllegalUse",
    "Listener",
    "OffsetAndMetadata",
    "WokenUp",
]
