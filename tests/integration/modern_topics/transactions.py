"""Put transactions into the files of a stopped broker: one aborted, one left open."""

from __future__ import annotations

from pathlib import Path

from kafka2011.clock import SYSTEM_CLOCK
from kafka2011.events import Journal
from since2011.log.recovery import open_log
from since2011.log.settings import LogConfig
from since2011.log.validation import Prepared
from since2011.wire.record_batch import CONTROL, TRANSACTIONAL
from since2011.wire.records import Record, encode_records


def aborted_and_open(directory: Path) -> int:
    """Write them behind what is there; the offset where the open one begins."""
    log = open_log(
        directory, "txn", 0, LogConfig(), clean=True, recovery_point=0, log_start=0, high_watermark=0,
        clock=SYSTEM_CLOCK, journal=Journal(),
    )  # fmt: skip
    now = SYSTEM_CLOCK.wall_ms()

    def write(producer: int, key: bytes | None, value: bytes, attributes: int, sequence: int) -> None:
        record = Record(offset=0, timestamp=now, key=key, value=value, headers=())
        batch = encode_records(
            [record], attributes=attributes, producer_id=producer, producer_epoch=0, base_sequence=sequence
        )
        log.append(Prepared(bytearray(batch)), 0)

    write(900, None, b"never happened", TRANSACTIONAL, 0)
    write(900, bytes(4), bytes(6), TRANSACTIONAL | CONTROL, -1)
    n_open = log.log_end_offset
    write(901, None, b"not yet", TRANSACTIONAL, 0)
    log.close()
    return n_open
