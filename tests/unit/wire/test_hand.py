"""Handing messages out one by one: what is in hand, and what a gate lets through (issue 23, point 2)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable

import pytest

from kafka2011.wire import MessageAndOffset, ReadSet, encode_set, read_set, walk


def handing(*chunks: Iterable[str] | None, may_pass: bool = True) -> walk.Hand:
    given = list(chunks)
    return walk.Hand(lambda: given.pop(0) if given else None, lambda: may_pass)


def test_messages_come_chunk_by_chunk() -> None:
    """An end can be asked again, and the last message stays in hand until then."""
    hand = handing("ab", [], "c", None, "d")
    assert hand.in_hand is None
    assert [(message, hand.in_hand) for message in hand] == [("a", "a"), ("b", "b"), ("c", "c")]
    assert hand.in_hand == "c"
    assert next(hand) == "d"
    with pytest.raises(StopIteration):
        next(hand)


def test_two_loops_share_one_hand() -> None:
    """Breaking off a loop loses nothing: the next one goes on."""
    hand = handing("abc")
    for _message in hand:
        break
    assert list(hand) == ["b", "c"]


def test_a_gate_drops_the_rest_of_the_chunk() -> None:
    """What may not pass is not handed out, nor what follows it in its chunk."""
    hand = handing("ab", "c", may_pass=False)
    assert next(hand) == "a"
    hand.gate = True
    with pytest.raises(StopIteration):
        next(hand)
    assert hand.in_hand == "c"


def test_the_rest_can_be_taken_away() -> None:
    """A message may pass as the last of its chunk."""

    def may_pass() -> bool:
        hand.rest = None
        hand.gate = False
        return True

    given = [iter("abc"), iter("d")]
    hand = walk.Hand(lambda: given.pop(0) if given else None, may_pass)
    got = []
    for message in hand:
        got.append(message)
        hand.gate = message == "a"
    assert got == ["a", "b", "d"]
    hand.rest = iter("e")
    assert next(hand) == "e"


def test_errors_come_out() -> None:
    """An error of whoever gives messages, or of the gate, is the reader's to see; nothing is lost after it."""

    def fail() -> bool:
        raise KeyError("gate")

    hand = walk.Hand(lambda: iter("ab"), fail)
    assert next(hand) == "a"
    hand.gate = True
    with pytest.raises(KeyError):
        next(hand)
    hand = walk.Hand(lambda: [1 // 0], lambda: True)
    with pytest.raises(ZeroDivisionError):
        next(hand)


def test_a_hand_is_collected() -> None:
    """A hand and its owner refer to each other, and are freed nevertheless."""

    class Owner:
        def __init__(self, messages: ReadSet) -> None:
            self.messages = messages
            self.hand = walk.Hand(self.more, self.may_pass)

        def more(self) -> Iterable[MessageAndOffset]:
            return self.messages

        def may_pass(self) -> bool:
            return True

    # The bytes of a fetch, as the client hands them over. They are older than their owner, so the collector comes to
    # them first: it must not take them away while the messages still need them.
    owner = Owner(read_set(memoryview(bytearray(encode_set([b"a", b"b"])))))
    next(owner.hand)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
