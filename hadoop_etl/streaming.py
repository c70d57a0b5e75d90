"""Run a streaming query to its end, over the deaths of Spark's own Python processes.

Spark gives the process of a Python streaming source ten seconds to start, a number for which it has no setting; on a
machine that is very busy the query then ends with "Python worker failed to connect back". A process that is killed ends
it as well. Neither loses anything: the checkpoint says where to go on, so the remedy is to start the query again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter

ATTEMPTS = 5


def run_available(writer: DataStreamWriter, attempts: int = ATTEMPTS) -> int:
    """Load all that is there now (the trigger available-now) and return how many starts it took.

    A query that lost a process is started again; what the source itself says (a retention gap, a broker that is down)
    is raised at once. The writer needs a checkpoint.
    """
    from pyspark.errors import StreamingQueryException

    for number in range(1, attempts + 1):
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
            return number
        except StreamingQueryException as error:
            # Whatever Python raised arrives with its stack; without one there was no Python left to raise anything.
            if number == attempts or "Traceback" in str(error):
                raise
    raise ValueError(f"a query needs at least one attempt, not {attempts}")
