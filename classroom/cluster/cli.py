"""``kafka2011 cluster``: a cluster that stays up over restarts of the shell."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import click

from classroom.cluster.cluster import PORTS_FROM_BASE, Cluster, Size
from classroom.cluster.processes import ClusterError, Process
from kafka2011.cli.output import CONTEXT, CommandGroup, fail, json_option, note, show

DEFAULT_DIRECTORY = "kafka2011-cluster"
_SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT, "stop": signal.SIGTERM}

_directory = click.option(
    "--dir",
    "directory",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    envvar="KAFKA2011_CLUSTER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the cluster keeps its data, logs and process list.",
)


port_base_option = click.option(
    "--port-base",
    type=click.IntRange(1024, 65535 - PORTS_FROM_BASE),
    metavar="N",
    help=f"Take ports N to N + {PORTS_FROM_BASE - 1} instead of the usual ones, so that two clusters can run at once.",
)


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def cluster() -> None:
    """A ZooKeeper-backed cluster of processes on this machine.

    \b
    kafka2011 cluster up                 start what does not run
    kafka2011 cluster status             what runs, where, and what it says
    kafka2011 cluster kill broker-1      SIGKILL; `cluster up` heals it
    kafka2011 cluster down               stop everything, keep the data
    kafka2011 cluster up --port-base N   a second cluster beside the first
    """


@cluster.command(context_settings=CONTEXT)
@_directory
@click.option("--brokers", type=click.IntRange(1, 20), help="Number of brokers [3, or as before].")
@click.option("--zookeepers", type=click.Choice(["1", "3"]), help="Number of ZooKeeper servers [1, or as before].")
@click.option("--partitions", type=click.IntRange(1, 1000), help="Partitions per topic and broker [4, or as before].")
@click.option("--standbys", type=click.IntRange(0, 2), help="Further members of each broker, which hold all it holds "
              "and lead when it dies [0, or as before].")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A broker setting, for every broker.")
@click.option("--any-ports", is_flag=True, help="Take free ports instead of the usual ones.")
@port_base_option
@click.option("--observatory/--no-observatory", default=True, help="Start the page, too.")
def up(
    directory: Path,
    brokers: int | None,
    zookeepers: str | None,
    partitions: int | None,
    standbys: int | None,
    settings: tuple[str, ...],
    any_ports: bool,
    port_base: int | None,
    observatory: bool,
) -> None:
    """Start the cluster, or what is missing of it.

    \b
    kafka2011 cluster up --brokers 5 --partitions 8
    kafka2011 cluster up --brokers 1 --standbys 2
    kafka2011 cluster up --dir second --port-base 20000
    kafka2011 cluster up --set log.flush.interval=1
    """
    before = Cluster(directory).size
    size = Size(
        zookeepers=int(zookeepers) if zookeepers else before.zookeepers,
        brokers=brokers or before.brokers,
        partitions=partitions or before.partitions,
        standbys=before.standbys if standbys is None else standbys,
    )
    running = Cluster(directory, size, settings=settings, any_ports=any_ports, port_base=port_base, say=note)
    try:
        running.up()
        if observatory:
            running.start(observatory_process(running))
    except ClusterError as error:
        fail(str(error))
    page = running.processes.all.get("observatory")
    note("")
    note(f"ZooKeeper   {running.zookeeper}")
    if page is not None and page.running:
        note(f"page        http://127.0.0.1:{page.ready['port']}/")
    note(f"try         export KAFKA2011_ZOOKEEPER={running.zookeeper}")
    note("            echo hello | kafka2011 produce greetings -z $KAFKA2011_ZOOKEEPER")
    note("            kafka2011 consume --group me --topic greetings --from-beginning -n 1")
    note(f"stop it     kafka2011 cluster down --dir {directory}")


def observatory_process(running: Cluster, *extra: str) -> Process:
    """How to start the page for a cluster."""
    port = running.port("observatory", "port", "observatory")
    arguments = ["kafka2011", "observatory", "--zookeeper", running.zookeeper, "--port", str(port)]
    arguments += ["--cluster-dir", str(running.directory), *extra]
    return Process("observatory", "observatory", arguments)


@cluster.command(context_settings=CONTEXT)
@_directory
@json_option
def status(directory: Path, as_json: bool) -> None:
    """Tell what runs and what each process says; exit 1 if something is not well.

    \b
    kafka2011 cluster status
    kafka2011 cluster status --json
    """
    rows = Cluster(directory).status()
    show(rows, as_json=as_json, empty=f"no cluster in {directory}; start one with: kafka2011 cluster up")
    unwell = [row["name"] for row in rows if row["state"] != "running" or "not answer" in row["says"]]
    if not rows:
        raise SystemExit(1)
    if unwell:
        fail(f"not well: {', '.join(unwell)}; `kafka2011 cluster up` starts what is missing")


@cluster.command(context_settings=CONTEXT)
@_directory
@click.argument("name")
@click.option("--how", type=click.Choice(list(_SIGNALS)), default="kill", show_default=True)
def kill(directory: Path, name: str, how: str) -> None:
    """Kill one process (or pause, resume, stop it) and watch what the paper says happens.

    \b
    kafka2011 cluster kill broker-1
    kafka2011 cluster kill zookeeper --how pause
    """
    try:
        reached = Cluster(directory).processes.send(name, _SIGNALS[how])
    except ClusterError as error:
        fail(str(error))
    if not reached:
        fail(f"{name} does not run")
    note(f"{how}: {name}")


@cluster.command(context_settings=CONTEXT)
@_directory
@click.option("--erase", is_flag=True, help="Remove the data directory afterwards.")
def down(directory: Path, erase: bool) -> None:
    """Stop every process of the cluster; its data stays unless --erase.

    \b
    kafka2011 cluster down
    kafka2011 cluster down --erase
    """
    stopping = Cluster(directory, say=note)
    if not stopping.processes.all:
        note(f"no cluster in {directory}")
        return
    stopping.down()
    if erase:
        shutil.rmtree(directory)
        note(f"removed {directory}")
