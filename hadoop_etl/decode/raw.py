"""Payloads as they are: one binary column, no event time of their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hadoop_etl.decode import Decoded


class RawDecoder:
    """Keeps every payload. Thread: any."""

    columns = pa.schema([])

    def decode(self, payloads: pa.Array) -> Decoded:
        """The payload is the column ``value``."""
        return Decoded(np.arange(len(payloads)), pa.table({"value": payloads}))
