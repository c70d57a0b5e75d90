"""The broker and producer of *Kafka: a Distributed Messaging System for Log Processing* (2011).

    from kafka2011 import Message, MessageSet, Producer

Paper: §3 (API), §3.1 (one partition), §3.2 (the producer's half). Nothing newer than 2011 lives in this
package; what came after is in ``consumers.group_protocol``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka2011.producer import Message, MessageSet, Producer

__all__ = ["Message", "MessageSet", "Producer"]
__version__ = "1.2.0"


def __getattr__(name: str) -> object:
    """Import the paper's API on first use: a broker or a command does not wait for the producer."""
    if name in __all__:
        from kafka2011 import producer

        return getattr(producer, name)
    raise AttributeError(f"module 'kafka2011' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names too, so that tab completion shows them before they are imported."""
    return sorted({*globals(), *__all__})
