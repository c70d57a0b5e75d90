"""Topics appear, grow and vanish: the nodes are written by whoever is asked, and the controller follows.

a node below /brokers/topics     its partitions get their first leaders
the node has more partitions     these do
the node is gone                 it is forgotten (the controller itself removes them, ``deletion``)
"""

from __future__ import annotations

from collections.abc import Collection

from since2011.controller.context import Context
from since2011.controller.partitions import create
from since2011.controller.reading import read_topics
from since2011.controller.steps import Steps, read_states, send
from zk_registry.modern import paths
from zk_registry.operations import Children


def topics_changed(context: Context) -> Steps[None]:
    """Look which topics there are."""
    names: tuple[str, ...] = yield Children(paths.TOPICS, context.watch(paths.TOPICS))
    context.forget(context.topics.keys() - set(names))
    yield from topics_written(context, set(names) - context.topics.keys())


def topics_written(context: Context, names: Collection[str]) -> Steps[None]:
    """Read these topics again, and bring to life what is new in them."""
    new = yield from read_topics(context, names)
    # A broker of a release without a controller has written states itself; so has a controller that crashed.
    yield from read_states(context, new)
    yield from create(context, new)
    known = [key for key in new if context[key].state is not None]
    for key in known:
        context.outbox.lead_or_follow(key, context.present(key, context[key].replicas))
    yield from send(context)
