"""The thread of a member when ZooKeeper falls silent."""

from __future__ import annotations

import threading
from random import Random

import pytest

from consumers.algorithm1 import worker as module
from consumers.algorithm1.member import Member
from consumers.algorithm1.pause_detector import PauseDetector
from consumers.algorithm1.worker import Worker
from consumers.delivery import Delivery
from consumers.events import DeliveryHeld, DeliveryResumed
from consumers.stream import Stream
from kafka2011.clock import SYSTEM_CLOCK, ManualClock
from kafka2011.errors import Kafka2011Error
from kafka2011.events import Journal
from zk_registry.consumers import Subscription
from zk_registry.fake import FakeZooKeeper


class Bench:
    """A worker that is not started, on a registry in memory, with timers that the test lets run out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.timers: list[tuple[float, object]] = []
        self.is_down = False
        self.journal = Journal()
        self.session = FakeZooKeeper().session(timeout_s=6.0)
        member = Member(
            "g",
            Subscription.fixed({"t": 1}),
            new_id=lambda: "g_a",
            session_id=lambda: self.session.session_id,
            clock=SYSTEM_CLOCK,
            journal=self.journal,
            random=Random(0),
        )
        stream = self.stream = Stream("t-0")
        delivery = Delivery(lambda topic, index: stream, lambda *a, **o: pytest.fail("no fetcher"), SYSTEM_CLOCK)

        class Timer(threading.Timer):
            def start(timer) -> None:
                self.timers.append((timer.interval, timer.function))

        monkeypatch.setattr(module.threading, "Timer", Timer)
        self.worker = Worker(member, self.session, delivery, [stream], is_down=lambda: self.is_down)

    def run_out(self) -> None:
        self.timers[-1][1]()  # type: ignore[operator]

    def told(self) -> list[type]:
        return [type(e.event) for e in self.journal.since() if isinstance(e.event, DeliveryHeld | DeliveryResumed)]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def test_delivery_is_held_before_the_session_can_have_expired(bench: Bench) -> None:
    """A silence may be noticed when two thirds of the session are gone; delivery stops within the last one (§3.2)."""
    bench.session.suspend()
    (waits_s, _) = bench.timers[-1]
    assert bench.session.timeout_s * 2 / 3 + waits_s < bench.session.timeout_s

    bench.run_out()
    assert bench.told() == [DeliveryHeld]
    bench.session.resume()
    assert bench.told() == [DeliveryHeld, DeliveryResumed]


def test_a_process_that_overslept_asks_before_it_delivers(bench: Bench) -> None:
    """After a pause nothing is delivered until ZooKeeper has answered that the session lives (§3.2)."""
    bench.worker.overslept()
    assert bench.told() == [DeliveryHeld, DeliveryResumed]


def test_a_process_that_overslept_its_session_delivers_nothing(bench: Bench) -> None:
    """If the session ended meanwhile, what was owned is not delivered on (§3.2)."""
    bench.session.expire()
    bench.worker.overslept()
    assert bench.told() == [DeliveryHeld]


def test_a_process_that_overslept_waits_for_its_line(bench: Bench) -> None:
    """Without a connection nobody knows what became of the session: held until one is there (§3.2)."""
    bench.session.suspend()
    bench.worker.overslept()
    assert bench.told() == [DeliveryHeld]
    bench.session.resume()
    assert bench.told() == [DeliveryHeld, DeliveryResumed]


def test_a_lost_answer_does_not_end_the_asking(bench: Bench) -> None:
    """ZooKeeper is asked until it answers (§3.2)."""
    bench.session.lose_reply(applied=True)
    bench.worker.overslept()
    assert bench.told() == [DeliveryHeld, DeliveryResumed]


def test_an_application_hears_of_a_registry_that_will_not_come_back(bench: Bench) -> None:
    """No session can begin unless somebody does something: the stream raises the reason, instead of waiting for
    messages for ever (Issue 19 A3, B9)."""
    bench.session.failure = Kafka2011Error("too old")
    bench.session.expire()
    bench.worker.start()

    with pytest.raises(Kafka2011Error, match="too old"):
        next(iter(bench.stream))
    assert bench.worker.join(60)


def test_a_sleep_that_took_too_long_is_noticed() -> None:
    """A process that was stopped is told so by its own pulse; one that was not is left in peace (§3.2)."""
    clock = ManualClock()
    told = threading.Event()
    pulse = PauseDetector(clock, beat_s=0.001, limit_s=2.0, overslept=told.set)
    pulse.start()
    try:
        clock.advance(1.9)
        assert not told.wait(0.05)
        clock.advance(60.0)
        assert told.wait(60)
    finally:
        pulse.stop()


def test_messages_flow_while_the_servers_say_they_have_no_majority(bench: Bench) -> None:
    """Without a majority no session ends: nothing is held, and the servers are asked again and again (§3.2)."""
    bench.is_down = True
    bench.session.suspend()
    for _ in range(5):
        bench.run_out()
    assert bench.told() == [] and len(bench.timers) == 6

    bench.is_down = False
    bench.run_out()
    assert bench.told() == [DeliveryHeld]
