"""Decode in a process apart: a message that kills its decoder does not kill the command.

For small amounts, such as a quarantine. Payloads go to the process beside this one, columns come back. If it dies, the
payloads are tried in halves, each by a new process, down to the messages it dies of; those are dead, and say so. A load
has its own way, with splits and offsets (``worker``, ``halving``).
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pyarrow as pa

from hadoop_etl.decode import Decoded, Format, Ints, make_decoder
from hadoop_etl.errors import LoadError
from hadoop_etl.halving import MOST_GUILTY
from hadoop_etl.task import DIED_OF_IT
from kafka2011.child import die_with_parent
from kafka2011.failpoints import fail_point


class DecoderProcess:
    """A decoder whose process may die. Thread: one."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self.columns = make_decoder(form).columns
        self._pool: ProcessPoolExecutor | None = None

    def decode(self, payloads: pa.Array) -> Decoded:
        """Read a batch; messages that kill the process are dead."""
        found = self._try(payloads)
        if found is not None:
            return found
        guilty = self._guilty(payloads)
        rest = np.setdiff1d(np.arange(len(payloads)), guilty)
        found = self._try(payloads.take(pa.array(rest)))
        if found is None:
            raise LoadError("the decoding process dies again without the messages it died of; is there enough memory?")
        dead = {int(rest[place]): reason for place, reason in found.dead.items()}
        return Decoded(rest[found.kept], found.columns, dead | dict.fromkeys(guilty, DIED_OF_IT), found.schema_id)

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _guilty(self, payloads: pa.Array) -> list[int]:
        """The places of the messages the process dies of, each tried alone."""
        found: list[int] = []
        waiting: list[Ints] = [np.arange(len(payloads))]
        while waiting:
            places = waiting.pop()
            if self._try(payloads.take(pa.array(places))) is not None:
                continue
            if len(places) > 1:
                middle = len(places) // 2
                waiting += [places[:middle], places[middle:]]
                continue
            found.append(int(places[0]))
            if len(found) > MOST_GUILTY:
                raise LoadError(
                    f"the decoding process died of more than {MOST_GUILTY} messages; is there enough memory? "
                    "Nothing was changed"
                )
        return found

    def _try(self, payloads: pa.Array) -> Decoded | None:
        """What became of the batch, or nothing: the process is gone."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=die_with_parent)
        try:
            return self._pool.submit(_decode, self._form, payloads).result()
        except BrokenProcessPool:
            self.close()
            return None


def _decode(form: Format, payloads: pa.Array) -> Decoded:
    fail_point("etl.task.batch", lambda: b"\n".join(payloads.to_pylist()))
    return make_decoder(form).decode(payloads)
