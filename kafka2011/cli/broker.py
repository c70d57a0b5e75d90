"""``kafka2011 broker``: run a broker."""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import click
from twisted.internet.defer import Deferred
from twisted.logger import LogEvent, LogLevel, eventAsText, globalLogBeginner
from twisted.python.failure import Failure

from kafka2011.broker.plugins import broker_config
from kafka2011.broker.reactor import Reactor
from kafka2011.broker.service import Broker
from kafka2011.broker.state import health
from kafka2011.cli.output import CONTEXT, CommandGroup, note
from kafka2011.errors import ConfigError, Kafka2011Error
from kafka2011.events import Entry, Journal, log_lines
from kafka2011.log.descriptors import WRITING, spare_files
from kafka2011.log.directory import NO_ROOM

READY_AGAIN_S = 1.0


@click.group(cls=CommandGroup, context_settings=CONTEXT)
def broker() -> None:
    """Run a broker (§3.1)."""


def given_settings(pairs: tuple[str, ...], named: Mapping[str, object | None]) -> dict[str, str]:
    """``--set key=value`` and the named flags as one mapping; the named ones win."""
    flags: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--set {pair}: write it as name=value")
        flags[name.strip()] = value
    return flags | {name: str(value) for name, value in named.items() if value is not None}


config_option = click.option(
    "-c", "--config", "file", type=click.Path(path_type=Path), help="Settings file, Java properties."
)
set_option = click.option(
    "-s", "--set", "pairs", multiple=True, metavar="NAME=VALUE", help="One setting, by its 0.7 name; may be repeated."
)


@broker.command(context_settings=CONTEXT)
@config_option
@click.option("--log-dir", type=click.Path(path_type=Path), help="Directory of the data (log.dir).")
@click.option("--port", type=int, help="Port to listen on; 0 takes a free one.")
@click.option("--brokerid", type=int, help="Number of this broker in the cluster.")
@set_option
@click.option("--ready-file", type=click.Path(path_type=Path), help="Write ports and pid there, as JSON, once up.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info",
              show_default=True)
def start(
    file: Path | None,
    log_dir: Path | None,
    port: int | None,
    brokerid: int | None,
    pairs: tuple[str, ...],
    ready_file: Path | None,
    log_format: str,
    log_level: str,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    \b
    kafka2011 broker start --log-dir data
    kafka2011 broker start --config server.properties --set log.flush.interval=1
    kafka2011 broker start --log-dir data --brokerid 1 --port 9093 --set zk.connect=127.0.0.1:2181
    kafka2011 broker start --log-dir data --port 0 --set admin.port=8011      # curl 127.0.0.1:8011/state
    """
    from twisted.internet import reactor

    # Twisted's timers run on the wall clock unless told otherwise; a clock step would stop or fire them all.
    cast(Any, reactor).seconds = time.monotonic
    config = broker_config(file, given_settings(pairs, {"log.dir": log_dir, "port": port, "brokerid": brokerid}))
    for notice in config.notices:
        note(notice)
    os.umask(0o077)  # whatever the broker writes is this user's: messages, offsets, ids
    journal = Journal()
    _log(journal, log_format, log_level)
    _raise_file_limit()
    run = _Run(lambda: Broker(config, reactor=cast(Reactor, reactor), journal=journal), ready_file)
    run.begin()
    cast(Reactor, reactor).addSystemEventTrigger("before", "shutdown", run.down)
    # The network's thread waits a millisecond, not five, for a thread that computes (an inflating set).
    sys.setswitchinterval(0.001)
    cast(Reactor, reactor).run()
    # Twisted tells of an error that nobody handled when its Deferred is collected: now, or never.
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that still hangs in a sync must not keep the process: what it would flush is recovered at the next start.
    os._exit(run.exit_code)


class _Run:
    """From the first request to the exit code."""

    def __init__(self, make: Callable[[], Broker], ready_file: Path | None) -> None:
        self._make, self._ready_file = make, ready_file
        self._server = make()
        self._failed = self._ending = False
        self.exit_code = 1

    def begin(self) -> None:
        """Start the broker."""
        self._server.begin_again = self.again
        self._server.start().addCallback(self.up).addErrback(self.failed)

    def again(self, why: str) -> None:
        """End this broker, and begin another on its directory: it has lost the right to go on as it was."""
        note(f"kafka2011: {why}; beginning again")

        def ended(_: object) -> None:
            if not self._ending:
                self._server = self._make()
                self.begin()

        self._server.stop().addCallback(ended).addErrback(self.failed)

    def up(self, _: object) -> None:
        """Say where we listen."""
        address = self._server.address
        if self._ready_file is not None:
            self._tell_ready(self._ready_file)
        with suppress(OSError):  # nobody reads it, or it goes to the full disk: a broker goes on all the same
            click.echo(f"listening on {address.host}:{address.port}")
            for line in health(self._server.store)[1]:
                note(f"kafka2011: {line}")

    def _tell_ready(self, path: Path) -> None:
        """Write the ready file, as soon as there is room for it."""
        if not _write_ready(path, self._server.state()):
            self._server.reactor.callLater(READY_AGAIN_S, self._tell_ready, path)

    def failed(self, failure: Failure) -> None:
        """A plug-in could not start, or the ready file not be written: say why in one line and end."""
        self._failed = True
        note(f"kafka2011: {failure.getErrorMessage()}")
        if failure.check(Kafka2011Error) is None:
            failure.printTraceback(file=sys.stderr)
        self._server.reactor.callWhenRunning(self._server.reactor.stop)

    def down(self) -> Deferred[None]:
        """Stop the broker; called by the reactor at SIGTERM and SIGINT."""

        self._ending = True

        def ended(clean: bool) -> None:
            self.exit_code = 0 if clean and not self._failed else 1

        return self._server.stop().addCallback(ended)


def _write_ready(path: Path, state: dict[str, Any]) -> bool:
    """Write where we listen; False if the disk has no room for it."""
    modern = state["plugins"].get("modern", {}).get("port")
    found = {name: state[name] for name in ("host", "port", "admin_port", "pid")} | {"modern_port": modern}
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(json.dumps(found))
        partial.replace(path)
    except OSError as error:
        if error.errno in NO_ROOM:
            return False
        raise ConfigError(f"cannot write the ready file {path}: {error.strerror}") from error
    return True


def _log(journal: Journal, form: str, level: str) -> None:
    """Events to stderr, one line each."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("kafka2011").setLevel(level.upper())
    globalLogBeginner.beginLoggingTo([cast(Any, _log_twisted)], redirectStandardIO=False)
    if form == "text":
        log_lines(journal)
        return
    least = logging.getLevelNamesMapping()[level.upper()]

    def write(entry: Entry) -> None:
        if entry.event.level >= least:
            with suppress(OSError):  # a log on the full disk loses lines, not its broker
                click.echo(entry.as_json(), err=True)

    journal.subscribe(write)


def _log_twisted(event: LogEvent) -> None:
    """What Twisted has to say, above all of errors that nobody handled, with their traces."""
    level = event.get("log_level", LogLevel.info)
    if level >= LogLevel.warn:
        text = eventAsText(event, includeTimestamp=False, includeSystem=False)
        logging.getLogger("twisted").log(logging.WARNING if level is LogLevel.warn else logging.ERROR, "%s", text)


def _raise_file_limit() -> None:
    """Allow as many open files as the system lets us: every segment and connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        WRITING.most = spare_files()
