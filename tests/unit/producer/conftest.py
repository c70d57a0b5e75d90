"""Puppet brokers that are closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.unit.producer.puppet import Answer, PuppetBroker

MakeBroker = Callable[..., PuppetBroker]


@pytest.fixture
def make_broker() -> Iterator[MakeBroker]:
    brokers: list[PuppetBroker] = []

    def make(answer: Answer | None = None) -> PuppetBroker:
        brokers.append(PuppetBroker(answer))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest.fixture
def broker(make_broker: MakeBroker) -> PuppetBroker:
    return make_broker()
