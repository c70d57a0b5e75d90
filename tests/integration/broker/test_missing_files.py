"""Files taken away behind a broker's back, as clients and the operator see it (issue 19 B8; docs/log.md, Starting)."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from kafka2011.errors import OffsetOutOfRange
from kafka2011.log.segment import segment_name
from kafka2011.testing import BrokerProcess
from kafka2011.wire import encode_set
from since2011.wire.error_codes import ErrorCode
from tests.integration.broker.client import RawClient
from tests.integration.broker.test_damage import kafka2011
from tests.integration.since2011.wire_client import WireClient
from tests.waiting import until

OPTIONS = {"log.flush.interval": 1, "num.partitions": 2, "log.file.size": 50, "modern.port": 0, "log.format": "2011"}
ENTRY = len(encode_set([b"ab"]))


@pytest.fixture(scope="module")
def robbed() -> Iterator[BrokerProcess]:
    """A broker that was killed; then a file in the middle of t-0 and the whole of t-1 were deleted."""
    with BrokerProcess(options=OPTIONS) as broker:
        with RawClient(broker) as client:
            for n in range(1, 16):
                for partition in (0, 1):
                    client.produce("t", b"ab", partition=partition)
                    client.wait_for("t", n * ENTRY, partition=partition)
        files = sorted(path.name for path in (broker.log_dir / "t-0").iterdir())
        assert len(files) == 3
        until(lambda: "t-1 0 180 " in (broker.log_dir / ".kafka2011_recovery_points").read_text(), "it is written down")
        broker.kill()
        (broker.log_dir / "t-0" / files[1]).unlink()
        shutil.rmtree(broker.log_dir / "t-1")
        broker.restart()
        yield broker


def test_what_is_left_is_served_and_no_offset_comes_twice(robbed: BrokerProcess) -> None:
    """Both ports serve both sides of the gap and call it out of range; the emptied log goes on beyond its end."""
    with RawClient(robbed) as client:
        gap = robbed.state()["missing"]["t-0"][0]
        assert client.fetch("t", 0)[0] == client.fetch("t", gap["end"])[0] == 0
        assert client.fetch("t", gap["start"])[0] == OffsetOutOfRange.code
        assert client.offsets("t", -2) == [gap["end"]]
        (end,) = client.offsets("t", partition=1)
        assert end > 15 * ENTRY
        client.produce("t", b"ab", partition=1)
        client.wait_for("t", end + ENTRY, partition=1)
        assert client.fetch("t", 0, partition=1)[0] == OffsetOutOfRange.code
    modern = WireClient(robbed.modern_port or 0)
    assert modern.fetch("t", 0).error == ErrorCode.NONE
    assert modern.fetch("t", gap["start"]).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert modern.offset_at("t", -2) == gap["end"]


def test_it_is_named_everywhere(robbed: BrokerProcess) -> None:
    """Events, the log, /healthz, /state, /metrics and `topics` name every file with its offsets."""
    name = f"t-1/{segment_name(0)}"
    assert f"missing {name} is gone, with the offsets 0 to " in robbed.http("/healthz")
    assert robbed.http("/healthz").startswith("ok\n")
    assert "kafka2011_broker_missing_files 4.0" in robbed.http("/metrics").splitlines()
    assert f"ERROR file_missing topic=t partition=1 path={name} start=0" in robbed.output
    assert f"kafka2011: missing {name} is gone" in robbed.output
    for source in (("--admin", f"127.0.0.1:{robbed.admin_port}"), ("--log-dir", robbed.log_dir)):
        described = kafka2011("topics", "describe", "t", *source)
        assert f"t-1: {name} is gone, with the offsets 0 to " in described.stderr.decode()
        assert "kafka2011 log accept" in described.stderr.decode()
        rows = json.loads(kafka2011("topics", "describe", "t", "--json", *source).stdout)
        assert [len(row["missing"]) for row in rows] == [1, 3]


def test_it_is_told_until_somebody_accepts_it(robbed: BrokerProcess) -> None:
    """A restart does not end it; `kafka2011 log accept` does, and no web page can do that for somebody."""
    robbed.stop()
    robbed.restart()
    assert robbed.http("/healthz").count("missing") == 4
    url = f"http://127.0.0.1:{robbed.admin_port}/accept-missing"
    for request in (urllib.request.Request(url, method="POST"), urllib.request.Request(url)):
        with pytest.raises(HTTPError, match=r"403|405"):
            urllib.request.urlopen(request, timeout=60)
    accepted = kafka2011("log", "accept", "--admin", f"127.0.0.1:{robbed.admin_port}")
    assert accepted.stdout.decode().count("accepted: t-") == 4
    assert robbed.http("/healthz") == "ok\n"
    robbed.kill()
    robbed.restart()
    assert robbed.state()["missing"] == {}


def test_a_topic_is_deleted_with_its_directory(robbed: BrokerProcess) -> None:
    """With the broker stopped: delete the directories and accept that; the topic begins anew, nothing is missing."""
    robbed.stop()
    for partition in (0, 1):
        shutil.rmtree(robbed.log_dir / f"t-{partition}")
    done = kafka2011("log", "accept", "--log-dir", robbed.log_dir)
    assert done.stdout.decode() == "accepted: t-0 is gone, and is forgotten\naccepted: t-1 is gone, and is forgotten\n"
    robbed.restart()
    assert (robbed.state()["topics"], robbed.state()["missing"]) == ({}, {})


def test_a_failed_log_fails_the_health_check() -> None:
    """Issue 19 B8: a log that the disk has failed answers /healthz with 503: a restart helps there."""
    failpoints = {"KAFKA2011_FAILPOINTS": "log.flush.before_fsync=raise:EIO"}
    with BrokerProcess(options={"log.flush.interval": 1}, environ=failpoints) as broker, RawClient(broker) as client:
        client.produce("t", b"ab")
        until(lambda: "disk_failed" in broker.output, "the sync has failed")
        with pytest.raises(HTTPError) as caught:
            broker.http("/healthz")
        assert caught.value.code == 503
        assert caught.value.read().decode().startswith("failed t-0: the disk failed during flush")
