"""Nights against real brokers: what is loaded, what is not, and what is said about it (§4)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from hadoop_etl.audit import audit, exit_code
from hadoop_etl.cli import etl
from hadoop_etl.cluster import Cluster
from hadoop_etl.errors import PlanChanged
from hadoop_etl.gaps import gaps_of
from hadoop_etl.job import Load
from hadoop_etl.load_run import LoadRun
from hadoop_etl.planning import Options, Planner
from hadoop_etl.reading import events, quarantine
from hadoop_etl.runners import InlineRunner
from kafka2011.avro import FileSchemaRegistry
from kafka2011.client import BrokerConnection
from kafka2011.events import Journal
from kafka2011.producer.audit import Audit
from kafka2011.testing import BrokerProcess
from kafka2011.wire import AckLevel, encode_set
from kafka2011.wire.message import Codec
from tests.integration.etl.conftest import BROKER, NOW_MS, PART_0, Town, event

DAY_MS = 86_400_000


def command(*arguments: object) -> Result:
    """A sub-command of ``kafka2011 etl``, in this process."""
    return CliRunner().invoke(etl, [str(argument) for argument in arguments])


def test_a_night_from_empty_to_report(zk_connect: str, tmp_path: Path) -> None:
    """Two brokers found through ZooKeeper; plan, run, status, audit, report: every message once, by another engine."""
    options = BROKER | {"zk.connect": zk_connect, "num.partitions": 2}
    with (
        BrokerProcess(tmp_path / "b0", options | {"brokerid": 0}) as one,
        BrokerProcess(tmp_path / "b1", options | {"brokerid": 1}) as two,
    ):
        counter = Audit(lambda payload: json.loads(payload)["timestamp"], producer="web-1")
        sent = []
        for number, broker in enumerate((one, two)):
            with BrokerConnection(broker.host, broker.port) as connection:
                for partition in (0, 1):
                    payloads = [event(i) for i in range(400)]
                    counter.count("clicks", payloads)
                    data = encode_set(payloads, codec=Codec.SNAPPY if partition else Codec.NONE)
                    connection.produce_acked("clicks", partition, data, AckLevel.FLUSHED)
                    sent += [(number, partition, i) for i in range(400)]
        with BrokerConnection(one.host, one.port) as connection:
            connection.produce_acked("audit", 0, encode_set(counter.take()), AckLevel.FLUSHED)
        place = ("-w", tmp_path / "warehouse")
        plan = command("plan", *place, "-z", zk_connect, "-o", tmp_path / "plan.json")
        assert plan.exit_code == 0, plan.output
        metrics = tmp_path / "etl.prom"
        run = [sys.executable, "-m", "kafka2011", "etl", "run", *map(str, place), "-z", zk_connect]
        run += ["--master", "inline", "--plan", str(tmp_path / "plan.json")]
        run += ["--metrics-file", str(metrics), "--notify", f"cp -t {tmp_path}"]
        loaded = subprocess.run(
            run,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert loaded.returncode == 0, loaded.stderr
    found = json.loads(command("status", *place, "--json").stdout)
    assert found["state"] == "committed"
    assert sorted(found["published"]) == ["audit", "clicks"]
    assert (tmp_path / f"{found['load']}.json").exists(), "the hook got the report"
    rows = Town(one, tmp_path, "clicks").table.dataset()
    assert rows is not None
    by_engine = duckdb.sql("SELECT kbroker, kpart, n, count(*) FROM rows GROUP BY 1, 2, 3").fetchall()
    assert sorted(row[:3] for row in by_engine) == sorted(sent)
    assert {row[3] for row in by_engine} == {1}
    judged = command("audit", *place, "--json")
    assert judged.exit_code == 0, judged.output
    assert sum(window["sent"] for window in json.loads(judged.stdout)) == 1600
    assert json.loads(command("report", *place).stdout)["rows"] > 1600
    assert "<svg" in command("report", *place, "--html").stdout
    assert 'kafka2011_etl_rows{topic="clicks"} 1600' in metrics.read_text()
    wide = [path for path in (tmp_path / "warehouse").rglob("*") if path.stat().st_mode & 0o077]
    assert wide == [], "Issue 20 B5: no wider than the log"


def test_two_schemas_and_late_events(town: Town, tmp_path: Path) -> None:
    """Both versions are readable in one load; a late event lands in its own day and changes no earlier file."""
    registry = FileSchemaRegistry(tmp_path / "schemas")
    fields: list[dict[str, Any]] = [{"name": "timestamp", "type": "long"}, {"name": "n", "type": "int"}]
    one = registry.register(town.topic, {"type": "record", "name": "C", "fields": fields})
    options = Options(schemas=registry)
    town.send([registry.encode(one, {"timestamp": NOW_MS, "n": i}) for i in range(50)])
    assert town.load(options=options)["state"] == "committed"
    before = {path: path.stat().st_mtime_ns for path in Path(town.table.uri).rglob("*.parquet")}
    newer = [*fields, {"name": "country", "type": "string", "default": "??"}]
    two = registry.register(town.topic, {"type": "record", "name": "C", "fields": newer})
    town.send([registry.encode(one, {"timestamp": NOW_MS - 5 * DAY_MS, "n": 100 + i}) for i in range(10)])
    town.send([registry.encode(two, {"timestamp": NOW_MS, "n": 200 + i, "country": "de"}) for i in range(10)])
    report = town.load(options=options)
    assert report["rows"] == 20
    town.check()
    rows = events(town.table)
    found = duckdb.sql("SELECT dt, country, count(*) FROM rows GROUP BY 1, 2 ORDER BY 1, 2").fetchall()
    late, today = date(2011, 6, 7), date(2011, 6, 12)
    assert found == [(late, "??", 10), (today, "de", 10), (today, None, 50)]
    assert rows is not None
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_flipped_bits_are_dead_rows(town: Town) -> None:
    """A bit in a payload, a length and a magic byte: one dead row each, with offset and bytes; the rest is loaded."""
    town.send([event(i) for i in range(300)])
    (file,) = sorted((town.broker.log_dir / f"{town.topic}-0").glob("*.kafka"))
    wounds = {town.sent[10][1] + 20: 0x01, town.sent[100][1] + 2: 0x10, town.sent[200][1] + 4: 0x80}
    with open(file, "r+b") as stream:
        for position, bit in wounds.items():
            stream.seek(position)
            (byte,) = stream.read(1)
            stream.seek(position)
            stream.write(bytes([byte ^ bit]))
    report = town.load(options=Options(formats={town.topic: "json"}))
    assert (report["rows"], report["dead"]) == (297, 3)
    town.check()
    dead = quarantine(town.table).to_pylist()
    assert sorted(row["koffset"] for row in dead) == [town.sent[i][1] for i in (10, 100, 200)]
    assert all(row["value"] and row["kerror"] for row in dead)
    shown = json.loads(command("quarantine", "-w", town.warehouse.root, town.topic, "--json").stdout)
    assert len(shown) == 3


def test_undecodable_messages_are_kept_and_may_stop_a_load(town: Town) -> None:
    """Never dropped, never fatal by default; --max-dead makes them fatal, and then nothing is published."""
    town.send([event(0), b"not json", event(1), b"", event(2)])
    options = Options(formats={town.topic: "json"})
    report = town.load(options=options, max_dead=0.1)
    assert report["state"] == "failed"
    assert "2 of 5 messages" in report["topics"][0]["error"]
    assert town.loaded() == []
    assert town.load(options=options)["dead"] == 2
    town.check()


def test_payloads_that_look_like_message_sets(town: Town) -> None:
    """A wrong cut is noticed by its neighbour, and the range is read again with sure cuts: rows exact."""
    inner = encode_set([b"x" * 50] * 100)
    town.send([inner] * 5)
    options = Options(formats={town.topic: "raw"}, split_size=2000)
    plan = Planner(town.warehouse, town.cluster(), options).plan([town.topic])
    boundaries = {offset for _, offset, _ in town.sent}
    (part,) = [part for part in plan.topics[0].ranges if part.size]
    assert any(split.start not in boundaries for split in part.splits), "these payloads fool the probe"
    assert Load(town.warehouse, InlineRunner()).run(plan).ok
    town.check()


def test_a_retention_gap_stops_the_load_or_is_recorded_and_filled(tmp_path: Path) -> None:
    """Offsets deleted before they were loaded are never skipped silently (§3.1); a backfill replaces a gap."""
    with BrokerProcess(tmp_path / "data", BROKER | {"log.file.size": 4000}) as broker:
        town = Town(broker, tmp_path)
        town.send([event(i) for i in range(10)])
        town.load()
        for batch in range(10):
            town.send([event(batch * 50 + i) for i in range(50)])
        broker.stop()
        directory = tmp_path / "data" / f"{town.topic}-0"
        kept = tmp_path / "kept"
        kept.mkdir()
        segments = sorted(directory.glob("*.kafka"))
        assert len(segments) > 4
        for segment in segments[:3]:
            os.rename(segment, kept / segment.name)
        first = int(segments[3].stem)
        broker.restart()
        assert f"to {first} were deleted" in town.load()["topics"][0]["error"]
        said = json.loads(command("report", "-w", town.warehouse.root).stdout)
        assert said["state"] == "failed"
        assert f"to {first} were deleted" in said["topics"][0]["error"]
        assert town.load(options=Options(on_gap="skip"))["rows"] == 0
        report = town.load(options=Options(on_gap="earliest"))
        assert report["topics"][0]["partitions"][0]["gap"] is not None
        (gap,) = gaps_of(town.table)
        assert gap.end == first
        assert town.loaded() == [key for key in town.sent if not gap.start <= key[1] < gap.end]
        broker.stop()
        # A broker made from a backup holds what the other one deleted.
        for segment in directory.glob("*.kafka"):
            shutil.copy(segment, kept / segment.name)
        shutil.copytree(kept, tmp_path / "backup" / directory.name)
    with BrokerProcess(tmp_path / "backup", BROKER) as restored:
        town.broker = restored
        assert town.load_run().backfill(town.topic)["state"] == "committed"
        assert gaps_of(town.table) == []
        town.check()
        assert town.load_run().plan_backfill(town.topic).is_empty


def test_a_table_that_began_late_can_be_backfilled(town: Town) -> None:
    """Starting at the latest offset leaves older ones to a backfill; loads go on from their own offsets."""
    town.send([event(i) for i in range(100)])
    town.load(options=Options(start="latest"))
    town.send([event(i) for i in range(100, 120)])
    assert town.load()["rows"] == 20
    assert town.load_run().backfill(town.topic)["rows"] == 100
    town.check()


def test_dropped_messages_are_named_by_the_audit(town: Town) -> None:
    """A thousand messages lost between producer and broker: the audit says which windows and how many (§4)."""
    payloads = [event(i) for i in range(5000)]
    counter = Audit(lambda payload: json.loads(payload)["timestamp"], producer="web-1")
    counter.count(town.topic, payloads)
    town.send(payloads[:1990] + payloads[2990:])
    # The audit topic is one for all towns of this broker: publish it from a town of its own.
    with BrokerProcess(options=BROKER) as other:
        sums = Town(other, town.root, "audit")
        reports = counter.take()
        sums.send(reports + reports[:3])
        sums.load()
    town.load()
    windows = audit(town.warehouse, now_ms=NOW_MS + DAY_MS)
    assert exit_code(windows) == 1
    wrong = {w.start_ms: w.verdict for w in windows if w.verdict != "complete"}
    lost = Counter((NOW_MS + 1000 * i) // 10_000 * 10_000 for i in range(1990, 2990))
    assert wrong == {start: f"short by {count}" for start, count in lost.items()}
    assert sum(lost.values()) == 1000
    # What still waits on the broker is no loss.
    town.send(payloads[1990:2990])
    waiting = audit(town.warehouse, now_ms=NOW_MS + DAY_MS, cluster=town.cluster())
    assert {w.verdict for w in waiting} == {"complete", "cannot tell"}
    town.load()
    assert exit_code(audit(town.warehouse, now_ms=NOW_MS + DAY_MS)) == 0


def test_limits_leave_the_rest_to_the_next_load(town: Town) -> None:
    """A byte limit and a deadline publish a contiguous prefix; later loads finish it, nothing twice."""
    town.send([event(i) for i in range(500)])
    limited = town.load(options=Options(max_bytes=5000))
    assert 0 < limited["bytes"] <= 5000
    stopped = town.load(max_minutes=0.0)
    assert stopped["state"] in ("partial", "committed")
    for _ in range(3):
        town.load()
    town.check()


def test_rewind_and_load_again(town: Town) -> None:
    """Rows and offsets go back together; loading again gives the same rows (§3.1)."""
    for batch in range(3):
        town.send([event(batch * 100 + i) for i in range(100)])
        town.load()
    place = ("-w", town.warehouse.root)
    versions = json.loads(command("read", *place, town.topic, "--versions", "--json").stdout)
    assert [version["kind"] for version in versions] == ["load"] * 3
    back = versions[-1]["version"]
    dry = command("rewind", *place, town.topic, "--to-version", back, "--dry-run")
    assert dry.exit_code == 0
    town.check()
    assert command("rewind", *place, town.topic, "--to-version", back).exit_code == 0
    assert len(town.loaded()) == 100
    assert town.load()["rows"] == 200
    town.check()
    assert command("compact", *place).exit_code == 0
    assert command("vacuum", *place, "--keep-hours", 0).exit_code == 0
    town.check()


def test_a_saved_plan_is_executed_exactly_or_refused(town: Town) -> None:
    """Messages sent after the plan wait for the next one; a plan the table has passed is refused, saying why."""
    town.send([event(i) for i in range(10)])
    plan = Planner(town.warehouse, town.cluster(), Options()).plan([town.topic])
    town.send([event(i) for i in range(5)])
    assert town.load_run().run(plan=plan)["rows"] == 10
    again = town.load_run().run(plan=plan)
    assert again["rows"] == 0
    assert "published before" in again["topics"][0]["note"]
    stale = Planner(town.warehouse, town.cluster(), Options()).plan([town.topic])
    town.load()
    with pytest.raises(PlanChanged, match=f"{PART_0}: the table is at"):
        town.load_run().run(plan=stale)
    town.check()


def test_dry_run_and_wrong_usage_change_nothing(town: Town) -> None:
    """--dry-run leaves not even a directory; a missing cluster or an unknown format is a usage error."""
    town.send([event(1)])
    place = ("-w", town.warehouse.root)
    shown = command("run", *place, "-b", town.broker.address, "-t", town.topic, "--dry-run", "--json")
    assert json.loads(shown.stdout)["topics"][0]["topic"] == town.topic
    assert not Path(town.warehouse.root).exists()
    assert command("run", *place, "-b", town.broker.address, "-t", f"{town.topic}:xml").exit_code == 2
    assert command("audit", *place).exit_code == 3
    assert command("status", *place).exit_code == 0


def test_hours_below_days(town: Town) -> None:
    """A table made with hours keeps them."""
    town.send([event(i * 1800) for i in range(48)])
    town.load(options=Options(by_hour=True))
    town.send([event(0)])
    town.load()
    town.check()
    rows = events(town.table)
    assert rows is not None
    assert duckdb.sql("SELECT count(DISTINCT dt || hr) FROM rows").fetchall() == [(24,)]


def test_a_broker_that_is_down_does_not_stop_the_others(town: Town) -> None:
    """Its partitions are left out and named; when it is back the load goes on where it was."""
    town.send([event(i) for i in range(10)])
    town.load()
    town.send([event(i) for i in range(10)])
    down = LoadRun(town.warehouse, Cluster({}, {town.topic: []}), InlineRunner(), Journal(), Options())
    report = down.run([town.topic])
    assert (report["state"], report["rows"], report["topics"][0]["missing"]) == ("partial", 0, ["0-0", "0-1"])
    assert town.load()["rows"] == 10
    town.check()


def test_a_topic_nobody_knows_is_an_error(town: Town) -> None:
    """A typing error does not end with 0 and nothing loaded (issue 21, point 7); --allow-missing says it is meant."""
    town.send([event(1)])
    place = ("-w", town.warehouse.root, "-b", town.broker.address, "--master", "inline")
    wrong = command("run", *place, "-t", f"{town.topic}x")
    assert wrong.exit_code == 1
    assert "spelt right" in wrong.stderr
    allowed = command("run", *place, "-t", f"{town.topic}x", "-t", town.topic, "--allow-missing")
    assert allowed.exit_code == 0, allowed.output
    town.check()


def test_a_topic_made_again_is_refused(tmp_path: Path) -> None:
    """Past the old offset it looks like more of the same; its bytes tell (issue 21, point 10)."""
    with BrokerProcess(tmp_path / "data", BROKER) as broker:
        town = Town(broker, tmp_path)
        town.send([event(i) for i in range(50)])
        town.load()
        version = town.table.state().version
        broker.stop()
        for left in (tmp_path / "data").iterdir():  # also what a broker of ours would know the old end by
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        broker.restart()
        town.sent.clear()
        town.send([event(1000 + i) for i in range(100)])
        report = town.load()
        assert report["state"] == "failed"
        assert "deleted and made again" in report["topics"][0]["error"]
        assert town.table.state().version == version
        command("rewind", "-w", town.warehouse.root, town.topic, "--to-version", 0)
        assert town.load()["rows"] == 100
        town.check()


def test_the_quarantine_is_decoded_again_after_the_fix(town: Town, tmp_path: Path) -> None:
    """A schema registered too late: requeue moves the rows over, once; what is really broken stays (issue 21, 6)."""
    registry, late = FileSchemaRegistry(tmp_path / "schemas"), FileSchemaRegistry(tmp_path / "late")
    fields: list[dict[str, Any]] = [{"name": "timestamp", "type": "long"}, {"name": "n", "type": "int"}]
    newer = [*fields, {"name": "country", "type": "string", "default": "??"}]
    one = registry.register(town.topic, {"type": "record", "name": "C", "fields": fields})
    late.register(town.topic, {"type": "record", "name": "C", "fields": fields})
    two = late.register(town.topic, {"type": "record", "name": "C", "fields": newer})
    town.send([registry.encode(one, {"timestamp": NOW_MS, "n": i}) for i in range(5)])
    town.send([late.encode(two, {"timestamp": NOW_MS, "n": 10 + i, "country": "de"}) for i in range(3)])
    town.send([b"no event"])
    assert town.load(options=Options(schemas=registry))["dead"] == 4
    again = ("requeue", town.topic, "-w", town.warehouse.root, "--schemas", tmp_path / "late", "--json")
    assert json.loads(command(*again, "--dry-run").stdout)[0]["rows"] == 3
    assert quarantine(town.table).num_rows == 4
    done = json.loads(command(*again).stdout)
    assert (done[0]["rows"], done[0]["dead"]) == (3, 1)
    assert json.loads(command(*again).stdout)[0]["rows"] == 0
    town.check()
    rows = events(town.table).to_table(columns=["n", "country"]).to_pylist()
    assert sorted(row["n"] for row in rows if row["country"] == "de") == [10, 11, 12]
    assert [row["value"] for row in quarantine(town.table).to_pylist()] == [b"no event"]
