"""Do the splits meet? The proof that every cut was a message boundary and nothing was skipped.

The range begins at a true boundary. A walk from a true boundary that ends exactly on the next cut proves that cut; by
induction all of them. A deadline leaves some splits unfinished: then the longest prefix that meets is taken, per
partition, and the rest is left to the next load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hadoop_etl.errors import TilingBroken
from hadoop_etl.plan import Range
from hadoop_etl.work import SplitResult


def winners(part: Range, results: Iterable[SplitResult], where: str) -> tuple[int, list[SplitResult]]:
    """The offset up to which this range is loaded, and the results that make it up."""
    by_start = {done.work.split.start: done for done in results}
    position, taken = part.start, []
    for split in part.splits:
        done = by_start.get(split.start)
        if done is None:
            raise TilingBroken(f"{where}: no task reported the split at {split.start}; nothing was published")
        if split.start != position:
            raise TilingBroken(f"{where}: a split begins at {split.start}, the one before ended at {position}")
        taken.append(done)
        position = done.end
        if done.stopped:
            return position, taken
        if position != split.end:
            raise TilingBroken(
                f"{where}: the split from {split.start} ended at {position} where {split.end} was planned: that cut "
                "was inside a message. It will be read again with sure cuts only"
            )
    return position, taken


def check_rows(results: Sequence[SplitResult], where: str) -> None:
    """The files hold as many rows as the tasks counted."""
    counted = sum(done.rows + done.dead for done in results)
    written = sum(file.rows for done in results for file in (*done.files, *done.dead_files))
    if counted != written:
        raise TilingBroken(f"{where}: {counted} messages were read and {written} rows written; nothing was published")
