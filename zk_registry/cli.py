"""``kafka2011 zk`` and ``kafka2011 brokers``: start a ZooKeeper, look into one."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from kafka2011.cli.output import CONTEXT, CommandGroup, json_option, note, show, zookeeper_option
from zk_registry.brokers import BrokerRegistry
from zk_registry.embedded import EmbeddedZooKeeper
from zk_registry.operations import ConnectionLoss, SessionExpired
from zk_registry.session import ZooKeeperSession, ZooKeeperUnreachable
from zk_registry.tree import TreeNode, draw, walk

_REFRESH_S = 0.5


@contextmanager
def _session(connect: str) -> Iterator[ZooKeeperSession]:
    with ZooKeeperSession(connect, timeout_s=6.0, connect_timeout_s=3.0) as session:
        try:
            yield session
        except (ConnectionLoss, SessionExpired) as error:
            raise ZooKeeperUnreachable(f"ZooKeeper at {connect} stopped answering ({error}); try again") from error


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def zk() -> None:
    """A ZooKeeper for a laptop, and a look into any (§3.2)."""


@zk.command(context_settings=CONTEXT)
@click.option("--port", type=click.IntRange(0, 65000), default=2181, show_default=True,
              help="Of the first server; 0 takes free ones.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Kept; without it: temporary.")
@click.option("--servers", type=click.Choice(["1", "3"]), default="1", show_default=True)
@click.option("--tick-ms", type=click.IntRange(100, 10_000), default=500, show_default=True)
@click.option("--ready-file", type=click.Path(path_type=Path, dir_okay=False), help="Written, as JSON, once it serves.")
def start(port: int, data_dir: Path | None, servers: str, tick_ms: int, ready_file: Path | None) -> None:
    """Run a real ZooKeeper on this machine until Ctrl-C.

    Three servers take three ports in a row. Only this machine can reach them.

    \b
    kafka2011 zk start                                  one server on port 2181, data gone afterwards
    kafka2011 zk start --data-dir ~/zookeeper           data kept
    kafka2011 zk start --servers 3 --port 2181          2181, 2182, 2183: kill one and see
    """
    over = _told_to_end()
    with EmbeddedZooKeeper(int(servers), data_dir, port or None, tick_ms) as zookeeper:
        pids = [server.pid for server in zookeeper.servers]
        if ready_file is not None:
            _write_whole(ready_file, json.dumps({"connect": zookeeper.connect, "pid": os.getpid(), "pids": pids}))
        click.echo(zookeeper.connect)
        note(f"ZooKeeper serves at {zookeeper.connect} (processes {', '.join(map(str, pids))}); Ctrl-C ends it")
        over.wait()


@zk.command(context_settings=CONTEXT)
@click.argument("path", default="/")
@zookeeper_option
@click.option("--watch", is_flag=True, help="Draw again whenever something changes, until Ctrl-C.")
@json_option
def tree(path: str, zookeeper: str, watch: bool, as_json: bool) -> None:
    """Show the registries as they are now; ephemeral nodes with the session that holds them.

    \b
    kafka2011 zk tree
    kafka2011 zk tree /brokers --watch
    kafka2011 zk tree /consumers -z 127.0.0.1:2181/kafka --json
    """
    top = "/" + path.strip("/")
    with _session(zookeeper) as session:
        nodes = list(walk(session, top))
        if not nodes:
            raise click.ClickException(f"there is no {top} in ZooKeeper at {zookeeper}")
        _print(nodes, as_json)
        over = _told_to_end()
        while watch and not over.wait(_REFRESH_S):
            now = list(walk(session, top))
            if now != nodes:
                nodes = now
                if not as_json:
                    click.clear()
                _print(nodes, as_json)


@click.command(context_settings=CONTEXT)
@zookeeper_option
@json_option
def brokers(zookeeper: str, as_json: bool) -> None:
    """List the living brokers with their topics (§3.2, the broker registry).

    \b
    kafka2011 brokers
    kafka2011 brokers -z 127.0.0.1:2181/kafka --json
    """
    with _session(zookeeper) as session:
        registry = BrokerRegistry(session)
        living = registry.brokers()
        counts = {topic: registry.partition_counts(topic) for topic in registry.topics()}
    rows = []
    for broker_id, address in living.items():
        topics = {topic: by_broker[broker_id] for topic, by_broker in counts.items() if broker_id in by_broker}
        shown = topics if as_json else ", ".join(f"{topic} ({n})" for topic, n in topics.items())
        rows.append({"id": broker_id, "host": address.host, "port": address.port, "topics": shown})
    show(rows, as_json=as_json, empty=f"no broker is registered in ZooKeeper at {zookeeper}")


def _told_to_end() -> threading.Event:
    """Set by Ctrl-C, SIGTERM and a closed terminal: ends for good reasons, with exit code 0."""
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    return over


def _print(nodes: list[TreeNode], as_json: bool) -> None:
    if as_json:
        rows = [
            {"path": n.path, "value": n.value.decode("utf-8", "backslashreplace"), "version": n.version,
             "ephemeral": bool(n.session_id), "session": f"{n.session_id:#x}" if n.session_id else None}
            for n in nodes
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo("\n".join(draw(nodes)))


def _write_whole(file: Path, text: str) -> None:
    """Whoever waits for the file never sees half of it."""
    draft = file.with_name(file.name + ".draft")
    draft.write_text(text)
    os.replace(draft, file)
