"""``kafka2011 etl`` with a witness in every task: where its packages came from, and who ran it.

Copied to a directory of its own and run as a program there, by a Python that does not know the source tree. The task of
the very first split waits for a copy of itself: Spark must have started one (speculation).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import hadoop_etl.runners
from kafka2011.cli.main import main

PATIENCE_S = 120.0


def witnessed(marks: Path) -> Any:
    """A task that does what every task does and writes down where."""

    def task(work: Any) -> Any:
        import hadoop_etl
        import kafka2011
        from hadoop_etl.runners import in_executor

        place = f"{work.part}-{work.split.start}"
        done = in_executor(work)
        seen = {"place": place, "python": sys.executable, "directory": os.getcwd(), "pid": os.getpid()}
        seen["packages"] = [hadoop_etl.__file__, kafka2011.__file__, sys.modules["hadoop_etl.task"].__file__]
        (marks / f"{place}-{time.time_ns():x}.json").write_text(json.dumps(seen))
        deadline = time.monotonic() + PATIENCE_S
        while place == "0-0-0" and len(list(marks.glob(f"{place}-*.json"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        return done

    return task


if __name__ == "__main__":
    # Called by value: a name of this module means nothing to an executor.
    place = Path(os.environ["WITNESS_MARKS"])
    hadoop_etl.runners.in_executor = witnessed(place)
    (place / "driver.json").write_text(json.dumps({"packages": [hadoop_etl.__file__], "python": sys.executable}))
    main()
