"""What the commands of a load have in common: their options, and the world those options describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

from hadoop_etl.cluster import Cluster, open_cluster
from hadoop_etl.night import Night
from hadoop_etl.plan import SPLIT_SIZE
from hadoop_etl.planning import Options
from hadoop_etl.progress import ProgressLines
from hadoop_etl.runners import InlineRunner, Runner, SparkRunner
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
load_options = _options(
    cluster_options,
    click.option("--format", "form", type=click.Choice(FORMATS), default="auto", show_default=True),
    click.option("--schemas", metavar="DIR|zookeeper", help="Avro schemas: a directory, or those in ZooKeeper."),
    click.option("--time-field", default="timestamp", show_default=True, help="The events' own time, in ms."),
    click.option("--by-hour", is_flag=True, help="File new tables by hour below day."),
    click.option("--start", type=click.Choice(("earliest", "latest")), default="earliest", show_default=True),
    click.option("--on-gap", type=click.Choice(("fail", "earliest", "skip")), default="fail", show_default=True),
    click.option("--allow-missing", is_flag=True, help="A topic nobody knows yet is no error."),
    click.option("--max-bytes", type=click.IntRange(1), help="Load at most so many bytes per topic."),
    click.option("--split-bytes", type=click.IntRange(1024), default=SPLIT_SIZE, show_default=True),
)
run_options = _options(
    click.option("--master", default="local[*]", show_default=True, help="Spark master, or 'inline': no JVM."),
    click.option("--py-files", multiple=True, metavar="ZIP", help="Sent to executors instead of our own packages."),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's. Repeatable."),
    click.option("--max-minutes", type=float, help="Publish what is read by then; the next load goes on."),
    click.option("--max-dead", metavar="PERCENT", help="Refuse to publish with more undecodable messages (0.01%)."),
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
        cluster = stack.enter_context(open_cluster(zookeeper, None if zookeeper else chosen["broker"]))
        options = Options(
            formats=formats,
            schemas=open_schemas(chosen["schemas"], zookeeper, stack),
            time_field=chosen["time_field"],
            by_hour=chosen["by_hour"],
            start=chosen["start"],
            on_gap=chosen["on_gap"],
            allow_missing=chosen["allow_missing"],
            max_bytes=chosen["max_bytes"],
            split_size=chosen["split_bytes"],
        )
        yield Warehouse(chosen["warehouse"]), cluster, options, names


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
def open_night(
    chosen: dict[str, Any], warehouse: Warehouse, cluster: Cluster, options: Options, lazy: bool = False
) -> Iterator[Night]:
    journal = Journal()
    journal.subscribe(ProgressLines())
    runner: Runner = InlineRunner()
    stop: Callable[[], None] = lambda: None  # noqa: E731 - nothing to stop without Spark
    if chosen["master"] != "inline" and not lazy:
        from hadoop_etl.spark import start_context

        settings = dict(text.partition("=")[::2] for text in chosen["conf"])
        context = start_context(chosen["master"], py_files=chosen["py_files"], settings=settings)
        runner, stop = SparkRunner(context), context.stop
    try:
        yield Night(
            warehouse,
            cluster,
            runner,
            journal,
            options,
            max_dead=_share(chosen["max_dead"]),
            max_minutes=chosen["max_minutes"],
            metrics_file=chosen["metrics_file"],
            notify=chosen["notify"],
            keep_days=chosen["keep_days"],
        )
    finally:
        stop()


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text.removesuffix("%")) / 100
    except ValueError:
        raise click.UsageError(f"--max-dead {text!r} is not a percentage such as 0.01%") from None
