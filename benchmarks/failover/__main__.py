"""``make failover``: faults in a cluster of three brokers with three replicas; nothing acknowledged may be lost.

    make failover                                       60 faults, about ten minutes
    make failover ARGS="--faults 300 --seed 3"
    make failover ARGS="--acks 1"                       the control: it must find losses
    make failover ARGS="--real-controller"              a real Kafka 3.9 decides (needs Java and Maven)

Three writers send with acks=all to three partitions of a topic with three replicas and min.insync.replicas=2, three
readers read along. Meanwhile, chosen by the seed: kill -9, stop, freeze shorter and longer than a session, a disk
deleted, ZooKeeper killed. At the end everything is healed, and the judge reads every log of every replica.

The judge is judged: it is given an acknowledgement of a value that was never sent, and a log with one batch changed.
"""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import click

from benchmarks.failover.clients import Reader, Writer
from benchmarks.failover.cluster import N_BROKERS, TOPIC, Cluster
from benchmarks.failover.judge import Stands, Verdict, differences, missing, values_of

N_PARTITIONS = 3
PROTOCOL = {"inter_broker_protocol_version": "2.6", "log_message_format_version": "2.6"}


def judged(cluster: Cluster, writers: list[Writer], readers: list[Reader]) -> Verdict:
    """What is not as it was promised."""
    verdict = Verdict()
    stored = {}
    for index in range(N_PARTITIONS):
        logs = cluster.logs(TOPIC, index)
        verdict.different += differences(f"{TOPIC}-{index}", logs)
        stored[index] = values_of(logs[cluster.leader(TOPIC, index).leader])
    acked = [one for writer in writers for one in writer.acked]
    verdict.lost = missing(acked, stored)
    verdict.changed = missing((one for reader in readers for one in reader.read), stored)
    verdict.went_back = [line for reader in readers for line in reader.went_back]
    never_sent = Stands(0, 10**12, b"never sent")
    if never_sent not in missing([never_sent], stored):
        verdict.different.append("the judge is blind")
    return verdict


@click.command()
@click.option("--faults", default=60, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--acks", default="all", show_default=True, type=click.Choice(["all", "1"]))
@click.option("--lease/--no-lease", default=True, show_default=True)
@click.option("--real-controller", is_flag=True)
def main(faults: int, seed: int, acks: str, lease: bool, real_controller: bool) -> None:
    """Strike, heal, and look for what was promised."""
    over = threading.Event()
    with tempfile.TemporaryDirectory(prefix="kafka2011-failover-") as place, ExitStack() as stack:
        options: dict[str, object] = {"replica.lease.enable": lease}
        real: dict[str, object] | None = dict(PROTOCOL) if real_controller else None
        cluster = Cluster(Path(place), stack, seed, options=options, real=real)
        cluster.create(TOPIC, N_PARTITIONS, N_BROKERS, 2)
        writers = [Writer(f"w{n}", cluster.bootstrap, TOPIC, N_PARTITIONS, over, acks=acks) for n in range(3)]
        readers = [Reader(cluster.addresses, TOPIC, index, over) for index in range(N_PARTITIONS)]
        for client in (*writers, *readers):
            client.start()
        began = time.monotonic()
        for number in range(faults):
            what = cluster.strike()
            n_acked = sum(len(writer.acked) for writer in writers)
            click.echo(f"{number + 1:4} {what:<12} {n_acked:>9,} acknowledged, {time.monotonic() - began:6.0f} s")
        cluster.wait_whole(TOPIC, N_PARTITIONS, N_BROKERS)
        seconds = time.monotonic() - began
        over.set()
        for client in (*writers, *readers):
            client.join()
        cluster.wait_whole(TOPIC, N_PARTITIONS, N_BROKERS)
        verdict, unhandled = judged(cluster, writers, readers), cluster.unhandled()
    n_acked, n_read = sum(len(w.acked) for w in writers), sum(len(r.read) for r in readers)
    click.echo(f"seed {seed}, acks={acks}: {dict(cluster.struck)} in {seconds:.0f} s")
    click.echo(f"{n_acked:,} acknowledged, {len(verdict.lost)} lost; {n_read:,} read, {len(verdict.changed)} changed")
    click.echo(f"{len(verdict.different)} differences, {len(verdict.went_back)} watermarks back")
    click.echo(f"{len(unhandled)} unhandled errors; not acknowledged: {[dict(w.failed) for w in writers]}")
    for line in [*map(str, [*verdict.lost[:5], *verdict.changed[:5]]), *verdict.different[:5], *verdict.went_back[:5]]:
        click.echo(line)
    for text in unhandled[:3]:
        click.echo(text)
    raise SystemExit(0 if verdict.is_good and not unhandled else 1)


if __name__ == "__main__":
    main()
