"""§5, §4: without acknowledgements messages are lost in silence, and the audit names the window."""

from __future__ import annotations

import json

from classroom.claims.claim import Claim, Figures, Judgement, Verdict
from classroom.claims.harness.bench import Bench
from classroom.claims.harness.load import LAZY_FLUSH
from classroom.claims.harness.nursery import wait_for
from classroom.claims.harness.room import ClaimBroker
from kafka2011.errors import Kafka2011Error
from kafka2011.producer import Audit, Producer
from kafka2011.wire import decode_set

CLAIM = Claim(
    number="C26",
    section="5",
    title="Nobody acknowledges",
    sentence="We note that without acknowledging the producer, there is no guarantee that every published "
    "message is actually received by the broker.",
    experiment="A producer publishes window after window and counts what it sends (the audit of §4). In one "
    "window the broker stands still and is then killed, with messages in its socket. It starts again and the "
    "rest is published; then the counts are compared with what is stored, window by window.",
    threshold="messages are lost of which the producer knows nothing, and the audit names exactly their window "
    "and number",
    twist="every message is acknowledged",
    dissent="The paper's guarantee is about one broker's death; a network that loses whole connections does the "
    "same.",
    later="acks=1 and acks=all; the idempotent producer may then send again without making copies.",
    code=("kafka2011/producer/transmit.py", "kafka2011/producer/audit.py"),
    tests=("tests/integration/producer/test_faults.py", "tests/unit/producer/test_audit.py"),
    walk="docs/walks/9-the-night-load.md",
)

WINDOWS, BAD = 5, 2
WINDOW_MS = 10_000


def experiment(bench: Bench) -> Figures:
    """Five windows, one of them bad."""
    bench.plot("window", "messages")
    each = bench.size(20, 100, 500)
    options = LAZY_FLUSH | {"produce.acks.enable": True}
    with bench.broker(options) as broker:
        audit = Audit(lambda payload: int(payload[:12]), window_ms=WINDOW_MS, producer="web-1")
        known_lost = 0
        for window in range(WINDOWS):
            if window == BAD:
                broker.pause()
            known_lost += _publish(broker, audit, window, each, acks=bench.twisted)
            if window == BAD:
                broker.kill()
                broker.restart()
            else:
                wait_for(lambda w=window: _window(broker, w) == each, f"window {window} is stored")
        with Producer(broker.address, sync=True, acks="flushed") as producer:
            producer.send("audit", audit.take())
        wait_for(lambda: _messages(broker, "audit"), "the counts are there")
        counted = [json.loads(payload) for payload in _messages(broker, "audit")]
        stored = {window: _window(broker, window) for window in range(WINDOWS)}
    sent = {one["window_start_ms"] // WINDOW_MS: one["count"] for one in counted}
    for window in range(WINDOWS):
        bench.point("sent, says the audit", window, sent.get(window, 0))
        bench.point("stored", window, stored[window])
    return {
        "sent": sum(sent.values()),
        "stored": sum(stored.values()),
        "noticed_by_the_producer": known_lost,
        "short": {str(window): count - stored[window] for window, count in sent.items() if count != stored[window]},
        "each": each,
    }


def judge(figures: Figures) -> Judgement:
    """Lost in silence, and found by counting."""
    lost = figures["sent"] - figures["stored"]
    figure = (
        f"{lost} of {figures['sent']} messages were lost that the producer took for sent, and it noticed "
        f"{figures['noticed_by_the_producer']}; the audit is short by {figures['short'] or 'nothing'} (window: "
        "messages)"
    )
    silent = lost > 0 and figures["noticed_by_the_producer"] == 0
    named = figures["short"] == {str(BAD): figures["each"]}
    return Judgement(Verdict.HOLDS if silent and named else Verdict.FAILS, figure)


def _publish(broker: ClaimBroker, audit: Audit, window: int, count: int, *, acks: bool) -> int:
    """Publish the messages of one window; how many the producer knows to be lost."""
    payloads = [b"%012d click" % (window * WINDOW_MS + n) for n in range(count)]
    with Producer(
        broker.address,
        sync=True,
        acks="flushed" if acks else "none",
        audit=None,
        timeout_s=0.5,
        retries=0,
        on_drop=lambda topic, n, reason: None,
    ) as producer:
        try:
            producer.send("clicks", payloads)
        except Kafka2011Error:
            return count
        audit.count("clicks", payloads)
        return 0


def _window(broker: ClaimBroker, window: int) -> int:
    """How many messages of a window are stored."""
    return sum(int(payload[:12]) // WINDOW_MS == window for payload in _messages(broker, "clicks"))


def _messages(broker: ClaimBroker, topic: str) -> list[bytes]:
    """Everything the broker has of a topic, once that is flushed."""
    with broker.connect() as connection:
        found, offset = [], 0
        while data := connection.fetch(topic, 0, offset):
            messages = decode_set(data, offset)
            found += [message.payload for message in messages]
            offset = messages[-1].next_offset
        return found
