"""``kafka2011 demo``: the paper on one machine, in a browser, in under a minute."""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
import threading
import webbrowser
from pathlib import Path

import click

from classroom.cluster.cli import port_base_option
from classroom.cluster.cluster import Size
from classroom.cluster.processes import ClusterError
from classroom.demo.show import Choices, Demo
from kafka2011.cli.output import CONTEXT, note

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """``90s``, ``5m``, ``1h``."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a duration; write 90s, 5m or 1h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


@click.command(context_settings=CONTEXT)
@click.option("--for", "seconds", type=Duration(), metavar="TIME", help="End by itself after 90s, 5m, … and sum up.")
@click.option("--brokers", default=3, show_default=True, type=click.IntRange(1, 20))
@click.option("--zookeepers", default="1", show_default=True, type=click.Choice(["1", "3"]))
@click.option("--partitions", default=4, show_default=True, type=click.IntRange(1, 200), help="Per topic and broker.")
@click.option("--consumers", default=3, show_default=True, type=click.IntRange(0, 20), help="Running Algorithm 1.")
@click.option("--members", default=2, show_default=True, type=click.IntRange(0, 20), help="Of the modern group.")
@click.option("--rate", default=200.0, show_default=True, type=click.FloatRange(1, 50_000), help="Events per second.")
@click.option("--dir", "directory", type=click.Path(file_okay=False, path_type=Path), help="Keep the data here.")
@port_base_option
@click.option("--spark/--no-spark", default=True, help="Load with Spark, or in one process without a JVM.")
@click.option("--observatory/--no-observatory", default=True, help="Serve the page.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@click.option("--faults/--no-faults", default=True, help="Let the page break things.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def demo(
    seconds: float | None,
    brokers: int,
    zookeepers: str,
    partitions: int,
    consumers: int,
    members: int,
    rate: float,
    directory: Path | None,
    port_base: int | None,
    spark: bool,
    observatory: bool,
    browser: bool,
    faults: bool,
    as_json: bool,
) -> None:
    """Run a whole cluster: ZooKeeper, brokers, producers, two consumer groups, a nightly load, and a page.

    Ctrl-C stops everything. With --for it ends by itself, adds up what was produced, delivered and loaded, and
    exits with 1 if anything does not add up.

    \b
    kafka2011 demo
    kafka2011 demo --for 90s --no-browser
    kafka2011 demo --brokers 5 --partitions 8 --dir my-demo
    kafka2011 demo --port-base 20000                            # beside another one
    """
    choices = Choices(
        size=Size(zookeepers=int(zookeepers), brokers=brokers, partitions=partitions),
        consumers=consumers,
        members=members,
        rate=rate,
        spark=spark,
        observatory=observatory,
        faults=faults,
        port_base=port_base,
    )
    place = directory or Path(tempfile.mkdtemp(prefix="kafka2011-demo-"))
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        code = _run(Demo(place, choices, note), seconds, over, browser, as_json)
    finally:
        if directory is None:
            shutil.rmtree(place, ignore_errors=True)
    raise SystemExit(code)


def _run(show: Demo, seconds: float | None, over: threading.Event, browser: bool, as_json: bool) -> int:
    try:
        address = show.start()
        _welcome(show, address, seconds)
        if address is not None and browser:
            webbrowser.open(address)
        show.run(seconds, over)
        if over.is_set() and seconds is not None:
            note("stopped before its time; nothing is added up")
            return 1
        if seconds is None:
            return 0
        summary = show.finish()
        note("")
        click.echo(json.dumps(summary.as_dict(), indent=2) if as_json else "\n".join(summary.lines()))
        return 1 if summary.problems else 0
    except ClusterError as error:
        note(f"kafka2011: {error}")
        return 1
    finally:
        note("stopping …")
        show.stop()


def _welcome(show: Demo, address: str | None, seconds: float | None) -> None:
    note("")
    if address is not None:
        note(f"  the page:   {address}")
    note(f"  ZooKeeper:  {show.cluster.zookeeper}")
    note(f"  data:       {show.directory}")
    note("")
    note("  try: kill a consumer on the page's Faults pane and watch Ownership;")
    note(f"       kafka2011 group describe newsfeed -z {show.cluster.zookeeper}")
    note(f"       kafka2011 consume --group me --topic page_views -z {show.cluster.zookeeper}")
    note("  it ends by itself" if seconds is not None else "  Ctrl-C stops everything")
    note("")
