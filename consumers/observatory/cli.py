"""``kafka2011 observatory``: serve the page for a cluster, or for a recorded run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from consumers.cluster.processes import write_ready
from consumers.observatory.frames import Film, load
from kafka2011.cli.output import CONTEXT, fail, note, zookeeper_option


@click.command(context_settings=CONTEXT)
@zookeeper_option
@click.option("--port", default=8011, show_default=True, help="Port of the page; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--also-as", multiple=True, metavar="NAME", help="Another host name the page may be opened under.")
@click.option("--cluster-dir", type=click.Path(path_type=Path), help="Directory of a `kafka2011 cluster` or the demo.")
@click.option("--reports", type=click.Path(path_type=Path), help="Directory of the load's reports.")
@click.option("--schemas", type=click.Path(path_type=Path), help="Directory of Avro schemas, to show decoded payloads.")
@click.option("--allow-faults", is_flag=True, help="Let the page kill, pause and corrupt (needs --cluster-dir).")
@click.option("--replay", type=click.Path(exists=True, path_type=Path), help="Show a saved run; no cluster needed.")
@click.option("--ready-file", type=click.Path(), help="Write the address here once the page can be opened.")
def observatory(
    zookeeper: str,
    port: int,
    host: str,
    also_as: tuple[str, ...],
    cluster_dir: Path | None,
    reports: Path | None,
    schemas: Path | None,
    allow_faults: bool,
    replay: Path | None,
    ready_file: str | None,
) -> None:
    """Serve the page that shows the paper running.

    \b
    kafka2011 observatory -z 127.0.0.1:2181
    kafka2011 observatory --replay run.k2011.jsonl
    """
    if allow_faults and cluster_dir is None:
        raise click.UsageError("--allow-faults needs --cluster-dir: faults strike at the processes of that directory")
    if host not in ("127.0.0.1", "localhost", "::1"):
        note(f"warning: the page has no authentication and listens on {host}")
    hosts = frozenset({"127.0.0.1", "localhost", "::1", host, *also_as})
    try:
        film = load(replay) if replay else Film()
    except ValueError as error:
        fail(str(error))
    _serve(film, zookeeper, host, port, hosts, cluster_dir, reports, schemas, allow_faults, replay, ready_file)


def _serve(
    film: Film,
    zookeeper: str,
    host: str,
    port: int,
    hosts: frozenset[str],
    cluster_dir: Path | None,
    reports: Path | None,
    schemas: Path | None,
    allow_faults: bool,
    replay: Path | None,
    ready_file: str | None,
) -> None:
    from twisted.internet import error
    from twisted.internet import reactor as installed

    from consumers.observatory import paper_links
    from consumers.observatory.collector import Collector
    from consumers.observatory.faults import Faults
    from consumers.observatory.server import MOST_BODY, MOST_CONNECTIONS, Observatory
    from kafka2011.broker.http_door import guarded_site
    from zk_registry.session import ZooKeeperSession

    reactor: Any = installed  # its type is an interface that mypy cannot follow
    reactor.seconds = time.monotonic  # Twisted's own choice is the wall clock, which may jump
    paper_links.resolve()  # now, not while the first visitor waits
    session = None if replay else ZooKeeperSession(zookeeper)
    page = Observatory(
        reactor,
        film,
        hosts=hosts,
        replay=replay is not None,
        read_messages=None if session is None else _reader(film, schemas),
        faults=Faults(cluster_dir) if allow_faults and cluster_dir else None,
        tell=lambda event: note(f"{event.name}: {event.as_dict()}"),
    )
    site = guarded_site(page, reactor.seconds, most_body=MOST_BODY, connections=MOST_CONNECTIONS)
    try:
        listening = reactor.listenTCP(port, site, interface=host)
    except error.CannotListenError as reason:
        fail(f"cannot listen on {host}:{port} ({reason.socketError}); choose another with --port")
    if session is not None:
        session.start()

        def deliver(frame: dict[str, Any]) -> None:
            reactor.callFromThread(page.new_frame, frame)

        collector = Collector(
            session, deliver, wanted=lambda: page.shown_groups, cluster_dir=cluster_dir, reports=reports
        )
        collector.start()
        reactor.addSystemEventTrigger("before", "shutdown", collector.stop)
        reactor.addSystemEventTrigger("after", "shutdown", session.close)
    actual = listening.getHost().port
    note(f"the observatory is open at http://{host}:{actual}/")
    write_ready(ready_file, {"host": host, "port": actual})
    reactor.run()


def _reader(film: Film, schemas: Path | None) -> Callable[[str, str, str], dict[str, Any]]:
    """Read messages straight from the broker that the newest frame names."""
    from consumers.observatory.messages import BadQuestion, json_or_nothing, read_messages
    from kafka2011.client import BrokerConnection
    from kafka2011.types import BrokerPartition

    decode = _avro_or_json(schemas) if schemas else json_or_nothing

    def read(topic: str, partition: str, start: str) -> dict[str, Any]:
        frame = film.at()
        try:
            place = BrokerPartition.parse(partition)
        except ValueError as error:
            raise BadQuestion(str(error)) from error
        broker = (frame or {"brokers": {}})["brokers"].get(str(place.broker_id))
        if broker is None or not broker["alive"]:
            raise BadQuestion(f"broker {place.broker_id} is not registered; its messages wait until it is back")
        with BrokerConnection(broker["host"], broker["port"], timeout_s=5) as connection:
            return read_messages(connection, topic, place, start, decode)

    return read


def _avro_or_json(schemas: Path) -> Callable[[bytes], tuple[Any | None, str]]:
    from consumers.observatory.messages import json_or_nothing
    from kafka2011.avro import FileSchemaRegistry
    from kafka2011.errors import Kafka2011Error

    registry = FileSchemaRegistry(schemas)

    def read(payload: bytes) -> tuple[Any | None, str]:
        try:
            return registry.decode(payload), f"Avro, schema {int.from_bytes(payload[1:5], 'big')}"
        except Kafka2011Error:
            return json_or_nothing(payload)

    return read
