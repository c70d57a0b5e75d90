"""The producers' state at any offset of a log: the newest snapshot before it, and what the log says after that."""

from __future__ import annotations

from kafka2011.errors import LogCorrupt
from since2011.log.events import SnapshotIgnored
from since2011.log.files import SNAPSHOT, file_name
from since2011.log.log import ModernLog


def restore_producers(log: ModernLog, upto: int) -> None:
    """Let ``log.producers`` be what they were when the log ended at ``upto``.

    Where they are that already, they stay: a snapshot knows only the last batch of each producer, and one that was in
    flight behind others when the broker died must be known when it comes again.
    """
    if log.producers.offset == upto:
        return
    log.producers.restore((), log.segments[0].base_offset if log.segments else 0)
    for offset in reversed(log.snapshots.offsets()):
        if offset > upto:
            continue
        try:
            log.producers.restore(log.snapshots.read(offset), offset)
        except LogCorrupt as error:
            name = file_name(offset, SNAPSHOT)
            log.journal.emit(SnapshotIgnored(topic=log.topic, partition=log.partition, file=name, reason=str(error)))
            log.snapshots.remove(offset)
            continue
        break
    _replay(log, log.producers.offset, upto)


def _replay(log: ModernLog, start: int, upto: int) -> None:
    for segment in log.segments:
        if segment.base_offset >= upto:
            break
        for stored in segment.batches(segment.index.position_of(start)):
            header = stored.header
            if header.producer_id < 0 or not start <= header.base_offset < upto:
                continue
            if header.control:
                log.producers_ended(header, segment.read(stored.position, header.size))
            else:
                log.producers.wrote(header)
    log.producers.offset = max(log.producers.offset, upto)
