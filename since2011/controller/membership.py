"""Brokers come and go: what the controller does then.

A broker whose node has another number than before was away and is back (its session ended, or it was restarted in
time): it is first treated as one that has gone, for others may have to lead what it led, and then as one that has come.
Order: the new ones learn everything, the others learn who is new, then what has lost its leader gets another.
"""

from __future__ import annotations

from since2011.controller import deletion, reassignment
from since2011.controller.context import Context
from since2011.controller.partitions import settle, tell_replicas
from since2011.controller.reading import read_brokers
from since2011.controller.steps import Steps, read_states, send


def brokers_changed(context: Context) -> Steps[None]:
    """Look who is there, and do what follows from it."""
    before, now = context.brokers, (yield from read_brokers(context))
    gone = {one for one in before if one not in now}
    back = {one for one in before if one in now and now[one].epoch != before[one].epoch}
    new = now.keys() - before.keys()
    if not (gone or back or new):
        if now != before:  # another address
            context.brokers = now
            context.outbox.tell_all(context)
            yield from send(context)
        return
    away = gone | back
    context.shutting_down -= away
    context.failed = {(one, key) for one, key in context.failed if one not in away}
    if away:
        context.brokers = {one: broker for one, broker in now.items() if one not in back}
        if new:
            yield from _welcome(context, new)
        yield from read_states(context, context.of_brokers(away))
        yield from settle(context, context.of_brokers(away))
        context.outbox.tell_all(context)
        yield from send(context)
    if back or (new and not away):
        context.brokers = now
        yield from _welcome(context, back or new)
    came = back | new
    if came:
        tell_replicas(context, came)
        yield from settle(context, context.of_brokers(came))
        yield from send(context)
        yield from reassignment.resume(context)
        yield from deletion.resume(context, came)


def _welcome(context: Context, new: set[int]) -> Steps[None]:
    """Tell the old brokers who is new, and the new ones everything: before one is told to follow another."""
    context.outbox.tell(context.brokers.keys() - new)
    yield from send(context)
    context.outbox.tell(new)
    yield from send(context)
    context.outbox.tell(new, [key for key, partition in context.partitions() if partition.state is not None])
    yield from send(context)
