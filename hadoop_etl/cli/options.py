"""What the commands of a load have in common: their options, and the world those options describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from zoneinfo import available_timezones

import click

from hadoop_etl.announce import Announcer
from hadoop_etl.cluster import Cluster, open_cluster
from hadoop_etl.event_time import AUTO, UNITS
from hadoop_etl.load_run import LoadRun
from hadoop_etl.plan import SPLIT_SIZE
from hadoop_etl.planning import Options
from hadoop_etl.progress import ProgressLines
from hadoop_etl.runner_choice import ChosenRunner
from hadoop_etl.state import KEEP_DAYS
from hadoop_etl.warehouse import Warehouse
from kafka2011.avro import FileSchemaRegistry, SchemaRegistry
from kafka2011.cli.output import Command
from kafka2011.events import Journal
from zk_registry.schemas import ZooKeeperSchemaRegistry
from zk_registry.session import ZooKeeperSession

FORMATS = ("auto", "raw", "json", "avro")


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


warehouse_option = click.option(
    "-w", "--warehouse", required=True, envvar="KAFKA2011_WAREHOUSE", metavar="DIR|URI", help="Where the tables are."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done and change nothing.")
topic_option = click.option("-t", "--topic", "topics", multiple=True, metavar="NAME[:FORMAT]", help="Repeatable.")
cluster_options = _options(
    click.option("-z", "--zookeeper", envvar="KAFKA2011_ZOOKEEPER", metavar="HOST:PORT[/CHROOT]"),
    click.option("-b", "--broker", envvar="KAFKA2011_BROKER", metavar="[ID:]HOST:PORT,…", help="Without ZooKeeper."),
)
time_options = _options(
    click.option("--time-field", metavar="NAME", help="The events' own time; '' for none.  [default: timestamp]"),
    click.option("--time-format", metavar="FORMAT", help="auto, s, ms, us, ns or a pattern like %d/%m/%Y %H:%M:%S."),
    click.option("--time-zone", metavar="ZONE", help="Whose days tables are filed by.  [default: UTC]"),
)
load_options = _options(
    cluster_options,
    click.option("--format", "form", type=click.Choice(FORMATS), default="auto", show_default=True),
    click.option("--schemas", metavar="DIR|zookeeper", help="Avro schemas: a directory, or those in ZooKeeper."),
    time_options,
    click.option("--by-hour", is_flag=True, help="File new tables by hour below day."),
    click.option("--start", type=click.Choice(("earliest", "latest")), default="earliest", show_default=True),
    click.option("--on-gap", type=click.Choice(("fail", "earliest", "skip")), default="fail", show_default=True),
    click.option("--modern", metavar="HOST:PORT", help="Load modern topics too: any broker's modern port."),
    click.option("--allow-missing", is_flag=True, help="A topic nobody knows yet is no error."),
    click.option("--max-bytes", type=click.IntRange(1), help="Load at most so many bytes per topic."),
    click.option("--split-bytes", type=click.IntRange(1024), default=SPLIT_SIZE, show_default=True),
)
run_options = _options(
    click.option("--master", help="Spark master, or 'inline': no JVM.  [default: by size, inline or local[*]]"),
    click.option("--py-files", multiple=True, metavar="ZIP", help="Sent to executors instead of our own packages."),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's. Repeatable."),
    click.option("--max-minutes", type=float, help="Publish what is read by then; the next load goes on."),
    click.option(
        "--max-dead",
        metavar="PERCENT",
        default="1%",
        show_default=True,
        help="Refuse to publish a topic with more unreadable messages; 100% to publish in any case.",
    ),
    click.option("--metrics-file", metavar="FILE", help="Also write the report as Prometheus text."),
    click.option("--keep-days", type=click.IntRange(1), default=KEEP_DAYS, show_default=True, help="Older reports go."),
    click.option("--notify", metavar="COMMAND", help="Run afterwards, with the path of the report appended."),
)


@contextmanager
def world(chosen: dict[str, Any]) -> Iterator[tuple[Warehouse, Cluster, Options, list[str]]]:
    formats, names = {}, []
    for text in chosen["topics"]:
        name, _, form = text.partition(":")
        if form and form not in FORMATS:
            raise click.UsageError(f"{form!r} is not a format; use one of {', '.join(FORMATS)}")
        names.append(name)
        formats[name] = form or chosen["form"]
    if chosen["form"] != "auto" and not names:
        raise click.UsageError("--format is for the topics named with --topic")
    with ExitStack() as stack:
        # An exported KAFKA2011_ZOOKEEPER gives way to a broker named on the command line.
        zookeeper = None if _given("broker") and not _given("zookeeper") else chosen["zookeeper"]
        broker = None if zookeeper else chosen["broker"]
        cluster = stack.enter_context(open_cluster(zookeeper, broker, chosen["modern"]))
        options = Options(
            formats=formats,
            schemas=open_schemas(chosen["schemas"], zookeeper, stack),
            times=times_said(chosen),
            by_hour=chosen["by_hour"],
            start=chosen["start"],
            on_gap=chosen["on_gap"],
            allow_missing=chosen["allow_missing"],
            max_bytes=chosen["max_bytes"],
            split_size=chosen["split_bytes"],
        )
        yield Warehouse(chosen["warehouse"]), cluster, options, names


def times_said(chosen: Mapping[str, Any]) -> dict[str, str]:
    """What was said of the events' time; a table keeps what is not said."""
    said = {name: chosen[name] for name in ("time_field", "time_format", "time_zone") if chosen[name] is not None}
    pattern = said.get("time_format", AUTO)
    if pattern not in UNITS and "%" not in pattern:
        raise click.UsageError(f"--time-format {pattern!r} is none of {', '.join(UNITS)}, and no pattern like %Y-%m-%d")
    if "time_zone" in said and said["time_zone"] not in available_timezones():
        raise click.UsageError(f"--time-zone {said['time_zone']!r} is not a zone such as UTC or Europe/Berlin")
    return said


def _given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


def open_schemas(text: str | None, zookeeper: str | None, stack: ExitStack) -> SchemaRegistry | None:
    """The registry that was named, closed with ``stack``."""
    if text is None:
        return None
    if text != "zookeeper":
        return FileSchemaRegistry(text)
    if zookeeper is None:
        raise click.UsageError("--schemas zookeeper needs --zookeeper")
    return ZooKeeperSchemaRegistry(stack.enter_context(ZooKeeperSession(zookeeper)))


@contextmanager
def open_load_run(
    chosen: dict[str, Any], warehouse: Warehouse, cluster: Cluster, options: Options, announcer: Announcer
) -> Iterator[LoadRun]:
    journal = Journal()
    journal.subscribe(ProgressLines())
    settings = dict(text.partition("=")[::2] for text in chosen["conf"])
    runner = ChosenRunner(chosen["master"], journal, py_files=chosen["py_files"], settings=settings)
    try:
        yield LoadRun(
            warehouse,
            cluster,
            runner,
            journal,
            options,
            max_dead=_share(chosen["max_dead"]),
            max_minutes=chosen["max_minutes"],
            announcer=announcer,
        )
    finally:
        runner.close()


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
        if not 0 <= share <= 1:
            raise ValueError(text)
        return share
    except ValueError:
        raise click.UsageError(f"--max-dead {text!r} is not a percentage such as 0.01%") from None
