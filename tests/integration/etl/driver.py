"""A load in a process of its own, which may be told to die at a step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack

from hadoop_etl.cluster import Cluster
from hadoop_etl.load_run import LoadRun
from hadoop_etl.planning import Options
from hadoop_etl.runners import InlineRunner
from hadoop_etl.warehouse import Warehouse
from kafka2011.events import Journal
from kafka2011.failpoints import activate


def run(
    address: str,
    warehouse: str,
    topics: list[str],
    failpoint: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Load the topics; with a failpoint, be killed there. ``environ`` leads to a remote warehouse."""
    os.environ.update(environ or {})
    with ExitStack() as stack:
        if failpoint is not None:
            name, _, hit = failpoint.partition("@")
            stack.enter_context(activate(name, f"kill@{hit}" if hit else "kill"))
        options = Options(split_size=20_000)
        load = LoadRun(Warehouse(warehouse), Cluster.from_brokers(address), InlineRunner(2), Journal(), options)
        load.run(topics)
