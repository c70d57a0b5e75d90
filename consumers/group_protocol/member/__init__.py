"""Our own member of a modern group: today's coordination, the same fetchers as Algorithm 1.

    with Member("g", modern="127.0.0.1:9192", brokers="127.0.0.1:9092") as member:
        member.subscribe(["clicks"])
        for message in member.poll(1.0):
            ...

See docs/group-protocol.md. Paper: §3.2, whose other answer to the same question is
``consumers.algorithm1``: what differs between the two is only the coordination.
"""

from consumers.group_protocol.member.listener import Listener
from consumers.group_protocol.member.member import Member, Message
from since2011.client.errors import GroupError

__all__ = ["GroupError", "Listener", "Member", "Message"]
