"""``kafka2011 observatory``: serve the page for a cluster, or for a recorded run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from classroom.cluster.processes import write_ready
from classroom.observatory.frames import Film, load
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
@click.option("--allow-writes", is_flag=True, help="Let the page publish messages and move groups.")
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
    allow_writes: bool,
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
    page = Page(zookeeper, host, port, hosts, cluster_dir, reports, schemas, allow_faults, allow_writes, ready_file)
    _serve(film, page, live=replay is None)


@dataclass(frozen=True, slots=True)
class Page:
    """What was asked for on the command line."""

    zookeeper: str
    host: str
    port: int
    hosts: frozenset[str]
    cluster_dir: Path | None
    reports: Path | None
    schemas: Path | None
    allow_faults: bool
    allow_writes: bool
    ready_file: str | None


def _serve(film: Film, asked: Page, *, live: bool) -> None:
    from twisted.internet import error
    from twisted.internet import reactor as installed

    from classroom.claims.board import PUBLISHED, Board
    from classroom.claims.runs import results_directory
    from classroom.observatory import paper_links
    from classroom.observatory.collector import Collector
    from classroom.observatory.faults import Faults
    from classroom.observatory.server import CLAIM, MOST_BODY, MOST_CONNECTIONS, Observatory
    from kafka2011.broker.http_door import guarded_site
    from zk_registry.session import ZooKeeperSession

    reactor: Any = installed  # its type is an interface that mypy cannot follow
    reactor.seconds = time.monotonic  # Twisted's own choice is the wall clock, which may jump
    paper_links.resolve()  # now, not while the first visitor waits
    session = ZooKeeperSession(asked.zookeeper) if live else None
    claims = Board(results_directory(), PUBLISHED if PUBLISHED.is_dir() else None) if live else None
    page = Observatory(
        reactor,
        film,
        hosts=asked.hosts,
        replay=not live,
        read_messages=_reader(film, asked.schemas) if live else None,
        faults=Faults(asked.cluster_dir) if asked.allow_faults and asked.cluster_dir else None,
        actions=(_writes(film, asked.zookeeper) if asked.allow_writes and live else {})
        | ({CLAIM: claims.run} if asked.allow_faults and claims else {}),
        claims=claims,
        tell=lambda event: note(f"{event.name}: {event.as_dict()}"),
    )
    site = guarded_site(page, reactor.seconds, most_body=MOST_BODY, connections=MOST_CONNECTIONS)
    try:
        listening = reactor.listenTCP(asked.port, site, interface=asked.host)
    except error.CannotListenError as reason:
        fail(f"cannot listen on {asked.host}:{asked.port} ({reason.socketError}); choose another with --port")
    if session is not None:
        session.start()

        def deliver(frame: dict[str, Any]) -> None:
            reactor.callFromThread(page.new_frame, frame)

        collector = Collector(
            session,
            deliver,
            wanted=lambda: page.shown_groups,
            cluster_dir=asked.cluster_dir,
            reports=asked.reports,
        )
        collector.start()
        reactor.addSystemEventTrigger("before", "shutdown", collector.stop)
        reactor.addSystemEventTrigger("after", "shutdown", session.close)
    actual = listening.getHost().port
    note(f"the observatory is open at http://{asked.host}:{actual}/")
    write_ready(asked.ready_file, {"host": asked.host, "port": actual})
    reactor.run()


def _writes(film: Film, zookeeper: str) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    from classroom.observatory.moving import Mover
    from classroom.observatory.publishing import Publisher
    from classroom.observatory.server import MOVE, PLAN, PUBLISH
    from consumers.admin import Groups

    mover = Mover(lambda: Groups(zookeeper))
    return {PUBLISH: Publisher(film).publish, PLAN: mover.plan, MOVE: mover.apply}


def _reader(film: Film, schemas: Path | None) -> Callable[[dict[str, str]], dict[str, Any]]:
    from classroom.observatory.browsing import MessageReader
    from classroom.observatory.messages import json_or_nothing

    return MessageReader(film, _avro_or_json(schemas) if schemas else json_or_nothing).answer


def _avro_or_json(schemas: Path) -> Callable[[bytes], tuple[Any | None, str]]:
    from classroom.observatory.messages import json_or_nothing
    from kafka2011.avro import FileSchemaRegistry
    from kafka2011.errors import Kafka2011Error

    registry = FileSchemaRegistry(schemas)

    def read(payload: bytes) -> tuple[Any | None, str]:
        try:
            return registry.decode(payload), f"Avro, schema {int.from_bytes(payload[1:5], 'big')}"
        except Kafka2011Error:
            return json_or_nothing(payload)

    return read
