"""A process that appends and flushes, and says on stdout up to where: the one that is killed.

    python -m tests.integration.log.writer DIRECTORY N_SETS

Failpoints come from the environment. Each line is ``flushed OFFSET`` after a flush, ``end`` when all is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafka2011.errors import LogFailed, LogFull
from kafka2011.log import LogSettings, LogStore
from kafka2011.wire import encode_set

SETTINGS = LogSettings(file_size=2000, flush_messages=1, retention_size=6000)


def payload(number: int) -> bytes:
    """The payload of the message of that number; all are of one size."""
    return b"message %08d " % number + b"x" * 80


SIZE = len(encode_set([payload(0)]))


def main(directory: Path, n_sets: int) -> None:
    """Append sets of five, flush, forget the oldest now and then, stop cleanly."""
    store = LogStore(directory, SETTINGS)
    store.open()
    log = store.get_or_create("t", 0)
    number = log.end_offset // SIZE
    for step in range(n_sets):
        try:
            log.append(encode_set([payload(number + i) for i in range(5)]), 5)
            print("flushed", log.flush(), flush=True)
        except (LogFull, LogFailed) as error:
            print(type(error).__name__, log.flushed_offset, flush=True)
            break
        number += 5
        if step % 10 == 9:
            store.apply_retention()
    store.close()
    print("end", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
