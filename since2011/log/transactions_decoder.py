"""The records of ``__transaction_state`` in words, for ``kafka2011 log dump``."""

from __future__ import annotations

from typing import Any

from kafka2011.errors import InvalidRequest
from since2011.wire.transaction_records import decode_transaction, decode_transaction_key

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead")


def decoded_transaction(key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
    """What a record of the state topic says; None if it says nothing that is known."""
    try:
        name = decode_transaction_key(key or b"")
        found = None if value is None else decode_transaction(value)
    except InvalidRequest:
        return None
    if found is None:
        return {"type": "transaction", "key": name, "value": None}
    state = STATES[found.state] if 0 <= found.state < len(STATES) else str(found.state)
    partitions = " ".join(f"{row.topic}-{index}" for row in found.partitions or () for index in row.ids)
    words = [state, f"producer {found.producer_id}", f"epoch {found.epoch}", f"timeout {found.timeout_ms} ms"]
    if found.start_ms >= 0:
        words.append(f"since {found.start_ms}")
    if partitions:
        words.append(partitions)
    return {"type": "transaction", "key": name, "value": ", ".join(words)}
