"""The systems that can be measured."""

from __future__ import annotations

from benchmarks.system import System
from benchmarks.systems.activemq import ActiveMQ
from benchmarks.systems.librdkafka import Librdkafka
from benchmarks.systems.nats import Nats
from benchmarks.systems.ours import Kafka2011
from benchmarks.systems.rabbitmq import RabbitMQ
from benchmarks.systems.redis import Redis

SYSTEMS: dict[str, type[System]] = {
    kind.name: kind for kind in (Kafka2011, Librdkafka, Redis, Nats, RabbitMQ, ActiveMQ)
}
