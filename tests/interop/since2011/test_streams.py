"""Kafka Streams on our broker (issue 25, must show 3)."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from kafka2011.testing import BrokerProcess
from since2011.client.admin import Admin
from tests.interop.since2011.real_kafka import jars_with
from tests.waiting import until

PROGRAM = Path(__file__).with_name("WordCount.java")
LINES = ["to be or not to be", "that is the question", "whether tis nobler in the mind to suffer"]


class WordCount:
    """The program of Kafka Streams, as a process. A context manager: it is stopped in order."""

    def __init__(self, bootstrap: str, directory: Path, *more: str) -> None:
        self._output = directory / "streams.log"
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command += ["-cp", f"{jars_with('kafka-streams')}/*", str(PROGRAM), bootstrap, str(directory / "state"), *more]
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)

    def __enter__(self) -> WordCount:
        return self

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self._process.kill()
        self._process.wait(30)

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(b"\n", timeout=120)
        finally:
            self._process.kill()
            self._process.wait(30)


def write(bootstrap: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for line in lines:
        producer.produce("text", line.encode())
    assert producer.flush(60) == 0


def test_words_are_counted_and_counting_goes_on_from_the_changelog(tmp_path: Path) -> None:
    """Word count, at_least_once: repartition topic, compacted changelog; a new machine restores from it."""
    jars_with("kafka-streams")
    with BrokerProcess(options={"modern.port": 0}) as broker:
        bootstrap = f"127.0.0.1:{broker.modern_port}"
        with Admin(bootstrap) as admin:
            admin.create("text", partitions=2)
            admin.create("counts", partitions=2, settings={"cleanup.policy": "compact"})
        counts = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
        counts.assign([TopicPartition("counts", index, 0) for index in range(2)])
        found: dict[str, int] = {}

        def counted(expected: Counter[str]) -> bool:
            for message in counts.consume(100, 0.1):
                assert message.error() is None, message.error()
                found[message.key().decode()] = int.from_bytes(message.value(), "big")
            return found == expected

        once = Counter(" ".join(LINES).split())
        write(bootstrap, LINES)
        with WordCount(bootstrap, tmp_path):
            until(lambda: counted(once), "every word is counted", timeout_s=170)
        shutil.rmtree(tmp_path / "state")
        write(bootstrap, LINES)
        with WordCount(bootstrap, tmp_path):
            until(lambda: counted(once + once), "counting went on from the restored state", timeout_s=170)
        counts.close()
        with Admin(bootstrap) as admin:
            (changelog,) = admin.topics(["word-count-totals-changelog"])
        assert changelog.settings["cleanup.policy"] == "compact"
