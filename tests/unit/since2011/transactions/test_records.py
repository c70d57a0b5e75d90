"""The records of ``__transaction_state``, byte for byte (sheet §8.1, V23)."""

from __future__ import annotations

import pytest

from kafka2011.errors import InvalidRequest
from kafka2011.types import TopicPartition
from since2011.transactions.transaction import State, Transaction
from since2011.wire.transaction_records import (
    UnknownTransactionRecord,
    decode_transaction,
    decode_transaction_key,
    encode_transaction_key,
)

REAL = bytes.fromhex(
    "0000 0000000000000004 0001 000007d0 03 00000001 0003747861 00000001 00000000 000001a1ed7c03e4 000001a1ed7bf94c"
)
"""What Kafka 3.9.0 wrote when a transaction of txid-2 had its time."""
ABORTING = Transaction(
    "txid-2",
    4,
    1,
    timeout_ms=2000,
    state=State.PREPARE_ABORT,
    partitions=frozenset({TopicPartition("txa", 0)}),
    start_ms=0x1A1ED7BF94C,
    update_ms=0x1A1ED7C03E4,
)


def test_a_record_is_real_kafkas_byte_for_byte() -> None:
    """Version 0 of the value, both ways (§8.1)."""
    assert Transaction.decode("txid-2", REAL) == ABORTING
    assert ABORTING.encode() == REAL


def test_a_key_is_a_version_and_the_id() -> None:
    """Both ways (§8.1)."""
    assert encode_transaction_key("txid-2") == b"\0\0\0\x06txid-2"
    assert decode_transaction_key(b"\0\0\0\x06txid-2") == "txid-2"


def test_an_empty_transaction_has_no_partitions_at_all() -> None:
    """Empty: null and start -1; Complete*: an empty list (§8.1)."""
    empty = Transaction("t", 0, 0, timeout_ms=1)

    assert bytes.fromhex("00 ffffffff") in empty.encode()
    assert bytes.fromhex("04 00000000") in Transaction("t", 0, 0, state=State.COMPLETE_COMMIT).encode()
    assert empty == Transaction.decode("t", empty.encode())


@pytest.mark.parametrize("cut", range(len(REAL)))
def test_a_cut_record_is_a_clean_error(cut: int) -> None:
    """Whatever is missing, nothing but InvalidRequest (limits)."""
    with pytest.raises(InvalidRequest):
        decode_transaction(REAL[:cut])


def test_a_version_that_came_after_us_is_named() -> None:
    """Version 1, the flexible one, is read; 2 is not (§8.1)."""
    with pytest.raises(UnknownTransactionRecord, match="version 2"):
        decode_transaction(b"\0\x02" + REAL[2:])
