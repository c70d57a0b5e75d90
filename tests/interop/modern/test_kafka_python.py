"""kafka-python, unmodified, against the modern port. See docs/modern-port.md."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.waiting import until


def take(consumer: KafkaConsumer, n: int) -> list[bytes]:
    """Poll until ``n`` values are there.

    With long polls: kafka-python 3.0.12 loses its assignment when a poll times out between JoinGroup and SyncGroup.
    """
    found: list[bytes] = []

    def enough() -> bool:
        for records in consumer.poll(timeout_ms=30_000).values():
            found.extend(record.value for record in records)
        return len(found) >= n

    until(enough, f"{n} records")
    return found


def test_produce_commit_resume(bootstrap: str, unique: str) -> None:
    """Idempotent by default and gzipped: every value arrives; a new member resumes from the commit (§1.1)."""
    topic = group = f"kp-{unique}"
    values = [b"value %d" % n * 10 for n in range(60)]
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type="gzip")
    for future in [producer.send(topic, value) for value in values]:
        future.get(60)
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
    first = KafkaConsumer(topic, enable_auto_commit=False, **settings)
    assert sorted(values) == sorted(take(first, 60))
    first.commit()
    first.close()
    producer.send(topic, b"late").get(60)
    producer.close()
    second = KafkaConsumer(topic, enable_auto_commit=False, **settings)

    assert take(second, 1) == [b"late"]
    second.close()


def test_seek_and_offsets(bootstrap: str, unique: str) -> None:
    """Beginning, end, a record's own offset and the one after it (§1.7)."""
    partition = KafkaPartition(f"kp-seek-{unique}", 0)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    told = [producer.send(partition.topic, b"m%d" % n, partition=0).get(60).offset for n in range(5)]
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    consumer.assign([partition])
    assert (0, told[-1] + 1) == (
        consumer.beginning_offsets([partition])[partition], consumer.end_offsets([partition])[partition],
    )  # fmt: skip
    for start, first in ((0, 0), (told[2], 2), (told[2] + 1, 3), (told[2] - 3, 2)):
        consumer.seek(partition, start)
        assert [b"m%d" % n for n in range(first, 5)] == take(consumer, 5 - first)
    consumer.close()


def test_admin(bootstrap: str, unique: str) -> None:
    """Create and list topics, list and describe groups (§1.4)."""
    topic = group = f"kp-admin-{unique}"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, 3, 1)])
    assert topic in admin.list_topics()
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(topic, b"x").get(60)
    producer.close()
    member = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    take(member, 1)
    listed = {one["group_id"]: one["protocol_type"] for one in admin.list_groups()}
    described = admin.describe_groups([group])[group]
    member.close()
    admin.close()

    assert listed[group] == "consumer"
    assert (described["group_state"], len(described["members"])) == ("Stable", 1)
