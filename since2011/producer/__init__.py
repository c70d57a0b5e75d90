"""Today's producer: batches, acknowledgements, retries that store nothing twice, transactions.

from since2011.producer import Producer

with Producer({"bootstrap.servers": "127.0.0.1:9192"}) as producer:
    delivery = producer.send("clicks", b"viewed profile 7", key=b"member42")
    print(delivery.result().offset)
"""

from since2011.producer.delivery import Delivery, RecordMetadata
from since2011.producer.errors import (
    AbortableError,
    BufferExhausted,
    DeliveryTimedOut,
    FatalError,
    RecordRefused,
    RetriableError,
    SendError,
    TimedOut,
)
from since2011.producer.interceptors import Interceptor
from since2011.producer.partitioners import Partitioner
from since2011.producer.producer import Producer
from since2011.producer.record import ProducerRecord
from since2011.producer.transaction_requests import GroupMetadata

__all__ = [
    "AbortableError",
    "BufferExhausted",
    "Delivery",
    "DeliveryTimedOut",
    "FatalError",
    "GroupMetadata",
    "Interceptor",
    "Partitioner",
    "Producer",
    "ProducerRecord",
    "RecordMetadata",
    "RecordRefused",
    "RetriableError",
    "SendError",
    "TimedOut",
]
