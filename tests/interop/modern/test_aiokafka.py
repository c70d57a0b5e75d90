"""aiokafka, unmodified, against the modern port. See docs/modern-port.md."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_two_members_produce_share_and_resume(bootstrap: str, unique: str, idempotent: bool) -> None:
    """Two members share a topic; after their commits a third reads only what came later (§1.1, §2)."""
    asyncio.run(asyncio.wait_for(_scenario(bootstrap, f"aio-{unique}", idempotent), 120))


async def _scenario(bootstrap: str, topic: str, idempotent: bool) -> None:
    values = {b"value %d" % n for n in range(60)}
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=idempotent, compression_type="lz4")
    await producer.start()
    for number, value in enumerate(sorted(values)):
        await producer.send_and_wait(topic, value, key=b"%d" % number)
    members = [await _member(bootstrap, topic) for _ in range(2)]
    found: set[bytes] = set()
    while not (found == values and all([await _is_at_the_end(member) for member in members]) and _share(members)):
        for member in members:
            for records in (await member.getmany(timeout_ms=50)).values():
                found |= {record.value for record in records}
    for member in members:
        await member.commit()
        await member.stop()
    await producer.send_and_wait(topic, b"late")
    await producer.stop()
    third = await _member(bootstrap, topic)
    assert (await third.getone()).value == b"late"
    await third.stop()


def _share(members: list[AIOKafkaConsumer]) -> bool:
    """Whether every partition has one owner."""
    owned = [partition for member in members for partition in member.assignment()]
    return len(owned) == 4 == len(set(owned))


async def _is_at_the_end(member: AIOKafkaConsumer) -> bool:
    """Whether it owns something and has read all of that."""
    ends = await member.end_offsets(member.assignment())
    return bool(ends) and all([await member.position(partition) == end for partition, end in ends.items()])


async def _member(bootstrap: str, topic: str) -> AIOKafkaConsumer:
    member = AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False,
        heartbeat_interval_ms=100,
    )  # fmt: skip
    await member.start()
    return member
