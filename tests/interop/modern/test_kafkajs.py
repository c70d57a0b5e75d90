"""kafkajs, unmodified, where node and its package can be had. See docs/modern-port.md."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[3] / ".cache" / "kafkajs"
VERSION = "2.2.4"
SCRIPT = """
const { Kafka, logLevel } = require('kafkajs')
const [bootstrap, topic] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'js', brokers: [bootstrap], logLevel: logLevel.NOTHING })
const values = [...Array(30).keys()].map(n => 'value ' + n)
async function consume(groupId, wanted) {
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 300, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const found = []
  await new Promise(done => consumer.run({ eachMessage: async ({ message }) => {
    found.push(message.value.toString())
    if (found.length >= wanted) done()
  } }))
  await consumer.stop()
  await consumer.disconnect()
  return found
}
async function main() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 2 }] })
  for (const idempotent of [false, true]) {
    const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : null })
    await producer.connect()
    await producer.send({ topic, acks: -1, messages: values.map(value => ({ value, key: value })) })
    await producer.disconnect()
  }
  const first = await consume(topic, 60)
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value: 'late' }] })
  await producer.disconnect()
  const second = await consume(topic, 1)
  const groups = (await admin.listGroups()).groups.map(group => group.groupId)
  const offsets = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  console.log(JSON.stringify({ first, second, groups, offsets }))
}
main().then(() => process.exit(0), error => { console.error(error); process.exit(1) })
"""


@pytest.fixture(scope="module")
def kafkajs() -> Path:
    """The directory with kafkajs in it, fetched once."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("kafkajs needs node and npm")
    if not (CACHE / "node_modules" / "kafkajs").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--prefix", str(CACHE), f"kafkajs@{VERSION}"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=90)
        except (subprocess.SubprocessError, OSError):
            pytest.skip("kafkajs could not be fetched")
    return CACHE


def test_produce_share_and_resume(kafkajs: Path, bootstrap: str, unique: str) -> None:
    """Plain and idempotent producers, a group that resumes after its commit, and the admin client (§1.1)."""
    script, topic = kafkajs / f"{unique}.js", f"js-{unique}"
    script.write_text(SCRIPT)
    try:
        done = subprocess.run(["node", str(script), bootstrap, topic], capture_output=True, text=True, timeout=120)
    finally:
        script.unlink()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert sorted(2 * [f"value {n}" for n in range(30)]) == sorted(found["first"])
    assert found["second"] == ["late"]
    assert topic in found["groups"] and len(found["offsets"]) == 2
