"""Attacks on the disk, with restarts: a disk without room, files taken away (issue 19 B7, B8).

They judge themselves: a bystander can only see that the broker was away.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.siege.field import Broken, Field, Row
from kafka2011.client import BrokerConnection
from kafka2011.errors import LogFull
from kafka2011.wire import AckLevel, encode_set

SMALL = {"log.file.size": 2000, "log.flush.interval": 1}
NO_ROOM = "; ".join(
    f"{place}=raise:ENOSPC"
    for place in ("log.lock.before_write", "log.checkpoint.before_write", "log.append.before_write")
)
N_FILES = 5


def filled(field: Field) -> list[Path]:
    """Files of one partition, all flushed and written down."""
    data = encode_set([b"x" * 100] * 15)
    with BrokerConnection(field.broker.host, field.broker.port) as client:
        for _ in range(2 * N_FILES):
            client.produce_acked("t", 0, data, AckLevel.FLUSHED)
    field.broker.stop()
    return sorted((field.broker.log_dir / "t-0").glob("*.kafka"))


def no_room(field: Field) -> None:
    """B7: ten restarts on a disk without room: what is stored is served, an append is refused by name."""
    filled(field)
    field.broker.environ["KAFKA2011_FAILPOINTS"] = NO_ROOM
    for _ in range(10):
        field.broker.kill()
        field.broker.restart()
        with BrokerConnection(field.broker.host, field.broker.port) as client:
            if not client.fetch("t", 0, 0):
                raise Broken("what is stored is not served")
            try:
                client.produce_acked("t", 0, encode_set([b"x"]), AckLevel.FLUSHED)
                raise Broken("an append was acknowledged without room")
            except LogFull:
                pass
        if "no room on the disk" not in field.broker.http("/healthz"):
            raise Broken("/healthz does not say it")
    del field.broker.environ["KAFKA2011_FAILPOINTS"]
    field.broker.kill()
    field.broker.restart()


def files_gone(field: Field) -> None:
    """B8: the oldest, a middle, the active file and the directory taken away in turn: named, the rest is served."""
    for which in (0, 2, -1, None):
        files = filled(field)
        end = int(files[-1].stem) + files[-1].stat().st_size
        gone = field.broker.log_dir / "t-0" if which is None else files[which]
        if which is None:
            shutil.rmtree(gone)
        else:
            gone.unlink()
        field.broker.restart()
        name = f"{files[which or 0].parent.name}/{files[which or 0].name}"
        if f"missing {name} is gone" not in field.broker.http("/healthz"):
            raise Broken(f"{name} is gone and not named")
        with BrokerConnection(field.broker.host, field.broker.port) as client:
            offset, _ = client.produce_acked("t", 0, encode_set([b"x"]), AckLevel.FLUSHED)
        if offset < end:
            raise Broken(f"offset {offset} was given out a second time")


ROWS = (
    Row("B7 ten restarts without room", "issue 19 B7", no_room, SMALL, restarts=True),
    Row("B8 files taken away", "issue 19 B8", files_gone, SMALL, restarts=True),
)
