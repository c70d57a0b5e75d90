"""Show the files of a modern log to people: batches, records, index entries, producers, epochs.

Called by ``kafka2011 log dump`` for files that are real Kafka's, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kafka2011.errors import Kafka2011Error, LogCorrupt, WireError
from since2011.log.checkpoint import CLEANED_TO, HIGH_WATERMARKS, LEADER_EPOCHS, LOG_STARTS, RECOVERY_POINTS, decode
from since2011.log.damage import accept_damage
from since2011.log.explain import explain_cleaning
from since2011.log.files import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, parse_name
from since2011.log.identity import META_PROPERTIES
from since2011.log.indexes import OffsetIndex, TimeIndex, TxnIndex
from since2011.log.log_directory import BELOW_LOG_DIR, LogDirectoryLock
from since2011.log.offsets_decoder import decoded
from since2011.log.segment import Segment
from since2011.log.settings import LogConfig
from since2011.log.snapshot import decode_snapshot
from since2011.log.transactions_decoder import decoded_transaction
from since2011.topics.internal import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from since2011.wire.compression import decompress
from since2011.wire.record_batch import BatchHeader
from since2011.wire.records import decode_marker, decode_records

Row = dict[str, Any]
Decoder = Callable[[bytes | None, bytes | None], Row | None]
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
_CHECKPOINTS = (CLEANED_TO, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, LEADER_EPOCHS)
_MOST_INFLATED = 64 << 20
inflate = partial(decompress, limit=_MOST_INFLATED)


class ModernFiles:
    """The format plug-in of ``kafka2011 log dump``."""

    @staticmethod
    def claims(path: Path) -> bool:
        """Whether ``path`` is a file of a modern log, or a directory with one."""
        if path.is_dir():
            return any(_kind(file) == LOG for file in path.iterdir())
        return _kind(path) is not None or path.name in _CHECKPOINTS

    @staticmethod
    def rows(path: Path, offset: int, *, deep: bool, offsets: bool = False) -> Iterator[Row]:
        """One row per batch, or per record (``deep``), or per entry of any other file.

        ``offsets``: records are those of ``__consumer_offsets``, also where the directory's name does not say so.
        """
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if _kind(file) == LOG)
            for number, file in enumerate(files):
                after = parse_name(files[number + 1].name) if number + 1 < len(files) else None
                if after is None or after[0] > offset:
                    yield from _batches(file, offset, deep, offsets)
        elif path.name in _CHECKPOINTS:
            yield from _checkpoint(path)
        else:
            kind = _kind(path)
            yield from _batches(path, offset, deep, offsets) if kind == LOG else _ENTRIES[str(kind)](path)

    @staticmethod
    def explain_cleaning(path: Path) -> Iterator[Row]:
        """What compaction would do to a partition, record by record."""
        return explain_cleaning(path)

    @staticmethod
    def accept(path: Path) -> list[str]:
        """Let partitions below a log directory that were damaged take appends again; what was accepted."""
        told = []
        for directory in (path, path / BELOW_LOG_DIR):
            if (directory / META_PROPERTIES).exists():
                lock = LogDirectoryLock(directory)
                try:
                    for entry in sorted(directory.iterdir()):
                        told += accept_damage(entry) if entry.is_dir() else []
                finally:
                    lock.release()
        return told


def _kind(path: Path) -> str | None:
    parsed = parse_name(path.name)
    return parsed[1] if parsed is not None and path.is_file() else None


def _base(path: Path) -> int:
    parsed = parse_name(path.name)
    if parsed is None:
        raise Kafka2011Error(f"{path.name} is not named after an offset")
    return parsed[0]


def _batches(path: Path, offset: int, deep: bool, offsets: bool) -> Iterator[Row]:
    suffix = parse_name(path.name)
    segment = Segment(path.parent, _base(path), LogConfig(), suffix="" if suffix is None else suffix[2])
    position = 0
    try:
        for stored, data in segment.checked_batches():
            position = stored.end
            if stored.header.last_offset >= offset:
                if not deep and not offsets:
                    yield _batch(stored.position, stored.header, data)
                    continue
                yield from _records(stored.header, data, decoded if offsets else _decoder(path))
    except WireError as error:
        yield {"offset": None, "position": position, "what": f"damage: {error}", "size": segment.size - position}
    finally:
        segment.close()


def _batch(position: int, header: BatchHeader, data: bytes) -> Row:
    return {
        "offset": header.base_offset,
        "last": header.last_offset,
        "position": position,
        "size": header.size,
        "records": header.n_records,
        "codec": CODEC_NAMES[header.codec] if header.codec < len(CODEC_NAMES) else str(header.codec),
        "epoch": header.leader_epoch,
        "timestamp": header.max_timestamp,
        "producer": None if header.producer_id < 0 else header.producer_id,
        "sequence": None if header.base_sequence < 0 else header.base_sequence,
        "what": _what(header, data),
    }


def _what(header: BatchHeader, data: bytes) -> str:
    words = []
    if header.control:
        marker = decode_marker(data, header)
        words.append("marker" if marker is None else "COMMIT" if marker.committed else "ABORT")
    elif header.transactional:
        words.append("in a transaction")
    if header.append_time:
        words.append("append time")
    if header.delete_horizon_ms is not None:
        words.append(f"tombstones until {header.delete_horizon_ms}")
    if header.n_records == 0:
        words.append("emptied by the cleaner")
    return ", ".join(words)


def _decoder(path: Path) -> Decoder | None:
    """How records are shown in words; None: as they are."""
    return {OFFSETS_TOPIC: decoded, TRANSACTIONS_TOPIC: decoded_transaction}.get(path.parent.name.rpartition("-")[0])


def _records(header: BatchHeader, data: bytes, decode: Decoder | None) -> Iterator[Row]:
    for record in decode_records(data, header, inflate):
        said = None if decode is None or header.control else decode(record.key, record.value)
        if said is not None:
            yield {"offset": record.offset, "timestamp": record.timestamp, **said, "what": _what(header, data)}
            continue
        yield {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": " ".join(f"{name}={_text(content)}" for name, content in record.headers),
            "what": _what(header, data),
        }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data[:200].decode("utf-8", "backslashreplace")


def _offset_index(path: Path) -> Iterator[Row]:
    index = OffsetIndex(path, _base(path), 1 << 30)
    index.load()
    index.close()
    for offset, position in zip(index.offsets, index.positions, strict=True):
        yield {"last_offset": offset, "position": position}


def _time_index(path: Path) -> Iterator[Row]:
    index = TimeIndex(path, _base(path), 1 << 30)
    index.load()
    index.close()
    for timestamp, offset in zip(index.times, index.offsets, strict=True):
        yield {"timestamp": timestamp, "offset": offset}


def _txn_index(path: Path) -> Iterator[Row]:
    index = TxnIndex(path)
    index.load(0)
    for entry in index.entries:
        yield entry._asdict()


def _snapshot(path: Path) -> Iterator[Row]:
    for producer_id, known in decode_snapshot(path.read_bytes(), path.name):
        yield {
            "producer": producer_id,
            "epoch": known.epoch,
            "last_sequence": known.last_sequence,
            "last_offset": known.last_data_offset,
            "last_timestamp": known.last_timestamp,
            "coordinator_epoch": known.coordinator_epoch,
            "open_transaction_from": None if known.current_txn_first_offset < 0 else known.current_txn_first_offset,
        }


def _checkpoint(path: Path) -> Iterator[Row]:
    names = ("epoch", "start_offset") if path.name == LEADER_EPOCHS else ("topic", "partition", "offset")
    for words in decode(path.read_bytes(), path.name):
        if len(words) != len(names):
            raise LogCorrupt(f"{path.name}: {' '.join(words)[:80]!r} is not {', '.join(names)}")
        yield dict(zip(names, words, strict=True))


_ENTRIES = {INDEX: _offset_index, TIME_INDEX: _time_index, TXN_INDEX: _txn_index, SNAPSHOT: _snapshot}
