"""A producer's side of transactions, as a state machine without I/O.

    NEW ── initialize ──► INITIALIZING ──► READY ── begin ──► OPEN ── commit ──► COMMITTING ──► READY
                                             ▲                 │  └── abort ───► ABORTING ────┘
                                             │                 ▼                  ▲
                                             └──────── MUST_ABORT ── abort ───────┘        FAILED: nothing goes any more

One question to a coordinator is under way at a time: where it is, who we are (``INIT_PRODUCER_ID``, which ends what an
older producer of the same name left open and fences it), which partitions take part (before their first batch is
sent), which offsets, and the end. A commit waits until every batch is acknowledged; if one of them failed there is
nothing to commit, and the transaction has to be aborted. After a failure the abort also raises the epoch, so that
sequences begin anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kafka2011.errors import Kafka2011Error
from since2011.client.backoff import Backoff
from since2011.producer import transaction_requests as ask
from since2011.producer.batch import Identity, PartitionQueue
from since2011.producer.errors import AbortableError, FatalError, Kind, SendError, error_of, kind_of, known
from since2011.producer.idempotence import Idempotence
from since2011.producer.transaction_requests import GroupMetadata, Node, Offsets, Question, Step
from since2011.producer.transaction_state import Call, State, Wrong
from since2011.wire.codec import Struct
from since2011.wire.error_codes import ErrorCode

E = ErrorCode
_WHILE_ENDING_S = 0.02
"""The transaction before gets its markers meanwhile: the first question of the next one is asked again soon."""
_ELSEWHERE = (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
_FENCED = (E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED)


@dataclass(slots=True, eq=False)
class _Group:
    """Offsets on their way into the transaction."""

    metadata: GroupMetadata
    offsets: Offsets
    call: Call
    added: bool = False


class Transactions:
    """The transactions of one producer. Under its lock; time is an argument."""

    def __init__(self, name: str, timeout_ms: int, idempotence: Idempotence, backoff: Backoff) -> None:
        self.name, self._timeout_ms = name, timeout_ms
        self._idempotence, self._backoff = idempotence, backoff
        self.state = State.NEW
        self.error: SendError | None = None
        """Why the transaction must be aborted, or why nothing goes any more."""
        self._call: Call | None = None
        self._coordinator: Node | None = None
        self._group_coordinators: dict[str, Node] = {}
        self._new: dict[PartitionQueue, None] = {}
        self._added: set[PartitionQueue] = set()
        self._groups: list[_Group] = []
        self._something_to_end = False
        self._end_told = False
        self._raise_epoch = False
        self._under_way: Question | None = None
        self._failures = 0
        self._not_before = 0.0

    # -- calls of the application ---------------------------------------------------------------------------------

    def initialize(self) -> Call:
        """init_transactions()"""
        if self.state is State.NEW:
            self.state = State.INITIALIZING
            self._call = Call("init_transactions")
        elif not self._is_under_way("init_transactions"):
            raise self._wrong("init_transactions", "it is called once, before everything else")
        return self._current()

    def begin(self) -> None:
        """begin_transaction()"""
        if self.state is not State.READY or self._call is not None:
            raise self._wrong("begin_transaction", "end the one before, or call init_transactions() first")
        self.state = State.OPEN

    def commit(self) -> Call:
        """commit_transaction()"""
        if self.state is State.OPEN:
            self.state = State.COMMITTING
            self._call = Call("commit_transaction")
        elif not self._is_under_way("commit_transaction"):
            raise self._wrong("commit_transaction", "there is nothing to commit")
        return self._current()

    def abort(self) -> Call:
        """abort_transaction()"""
        if self.state in (State.OPEN, State.MUST_ABORT):
            self.state = State.ABORTING
            self._new.clear()
            self._drop_groups(AbortableError("the transaction was aborted before its offsets were stored"))
            self._call = Call("abort_transaction")
        elif not self._is_under_way("abort_transaction"):
            raise self._wrong("abort_transaction", "no transaction is open")
        return self._current()

    def send_offsets(self, offsets: Offsets, group: GroupMetadata) -> Call:
        """send_offsets_to_transaction()"""
        if self.state is not State.OPEN:
            raise self._wrong("send_offsets_to_transaction", "call begin_transaction() first")
        for waiting in self._groups:
            if waiting.metadata == group and waiting.offsets == offsets:
                return waiting.call
        call = Call("send_offsets_to_transaction")
        if offsets:
            self._groups.append(_Group(group, dict(offsets), call))
        else:
            call.done = True
        return call

    def check_send(self) -> None:
        """send()"""
        if self.state is not State.OPEN:
            raise self._wrong("send", "call begin_transaction() first")

    def take_part(self, queue: PartitionQueue) -> None:
        """A record is sent to this partition."""
        if queue not in self._added:
            self._new[queue] = None

    def finished(self, call: Call) -> None:
        """The application has seen the end of its call."""
        if call is self._call:
            self._call = None

    # -- what the producer's sender asks --------------------------------------------------------------------------

    def may_send(self, queue: PartitionQueue) -> bool:
        """Whether the coordinator knows that this partition takes part."""
        return queue in self._added and self.state in (State.OPEN, State.COMMITTING)

    @property
    def dropping(self) -> bool:
        """Batches are not sent any more: the transaction is aborted, or nothing goes."""
        return self.state in (State.MUST_ABORT, State.ABORTING, State.FAILED)

    def left_a_gap(self) -> None:
        """A batch that had been sent is dropped: sequences begin anew when the transaction is aborted."""
        self._raise_epoch = True

    @property
    def hurrying(self) -> bool:
        """Everything is to be sent now: the transaction ends."""
        return self.state in (State.COMMITTING, State.ABORTING)

    def due_at(self, now: float) -> float:
        """When to call ``next``; infinite while an answer is awaited or there is nothing to ask."""
        return math.inf if self._under_way is not None else max(now, self._not_before)

    def asked(self, question: Question) -> None:
        """The question is on its way; an answer, or a loss, must follow."""
        self._under_way = question

    def next(self, *, incomplete: bool) -> Question | None:
        """The next question, if it is due; ``incomplete``: there are batches that are not settled."""
        if self.state is State.INITIALIZING:
            return self._at_coordinator(lambda node: ask.init_producer_id(
                node, self.name, self._timeout_ms, self._idempotence.identity))  # fmt: skip
        if self.state in (State.OPEN, State.COMMITTING):
            if self._new:
                partitions = [(queue.topic, queue.partition) for queue in self._new]
                return self._at_coordinator(
                    lambda node: ask.add_partitions(node, self.name, self._idempotence.identity, partitions)
                )
            if self._groups:
                return self._offsets(self._groups[0])
        if self.state in (State.COMMITTING, State.ABORTING) and not incomplete:
            return self._ending()
        return None

    def _offsets(self, group: _Group) -> Question:
        name, identity = group.metadata.group_id, self._idempotence.identity
        if not group.added:
            return self._at_coordinator(lambda node: ask.add_offsets(node, self.name, identity, name))
        node = self._group_coordinators.get(name)
        if node is None:
            return ask.find_coordinator(name, ask.OF_GROUP, Step.FIND_GROUP_COORDINATOR)
        return ask.commit_offsets(node, self.name, identity, group.metadata, group.offsets)

    def _ending(self) -> Question | None:
        commit = self.state is State.COMMITTING
        if self._something_to_end and not self._end_told:
            return self._at_coordinator(
                lambda node: ask.end(node, self.name, self._idempotence.identity, commit=commit)
            )
        if self._raise_epoch:
            return self._at_coordinator(lambda node: ask.init_producer_id(
                node, self.name, self._timeout_ms, self._idempotence.identity))  # fmt: skip
        self._ended()
        return None

    def _at_coordinator(self, question: Callable[[Node], Question]) -> Question:
        if self._coordinator is None:
            return ask.find_coordinator(self.name, ask.OF_TRANSACTION, Step.FIND_COORDINATOR)
        return question(self._coordinator)

    # -- answers --------------------------------------------------------------------------------------------------

    def lost(self, question: Question, now: float) -> None:
        """No answer came: ask again, and ask first who answers."""
        self._under_way = None
        self._forget_node(question)
        self._wait(now)

    def fail(self, error: Kafka2011Error) -> None:
        """The question cannot be asked (a broker that is too old)."""
        self._under_way = None
        self.failed(FatalError(str(error)))

    def answered(self, question: Question, body: Struct, now: float) -> None:
        """A broker answered."""
        self._under_way = None
        rows = [one for topic in body.topics for one in topic.partitions] if hasattr(body, "topics") else []
        codes = [known(row.error) for row in rows] if rows else [known(body.error)]
        # The first that is not success decides: the others were not attempted, or failed alike.
        bad = [code for code in codes if code not in (E.NONE, E.OPERATION_NOT_ATTEMPTED)]
        code = bad[0] if bad else E.NONE
        if code == E.NONE:
            self._failures = 0
            self._succeeded(question.step, body)
        else:
            self._refused(question, code, getattr(body, "error_message", None), now)

    def _succeeded(self, step: Step, body: Struct) -> None:
        if step is Step.FIND_COORDINATOR:
            self._coordinator = Node(body.node, (body.host, body.port))
        elif step is Step.FIND_GROUP_COORDINATOR and self._groups:
            self._group_coordinators[self._groups[0].metadata.group_id] = Node(body.node, (body.host, body.port))
        elif step is Step.INIT_PRODUCER_ID:
            self._idempotence.adopt(Identity(body.producer_id, body.epoch))
            self._raise_epoch = False
            if self.state is State.INITIALIZING:
                self.state = State.READY
                self._settle_call(None)
        elif step is Step.ADD_PARTITIONS:
            asked = {(topic.name, row.index) for topic in body.topics for row in topic.partitions}
            for queue in [queue for queue in self._new if (queue.topic, queue.partition) in asked]:
                del self._new[queue]
                self._added.add(queue)
            self._something_to_end = True
        elif step is Step.ADD_OFFSETS and self._groups:
            self._groups[0].added = self._something_to_end = True
        elif step is Step.COMMIT_OFFSETS and self._groups:
            self._groups.pop(0).call.done = True
        elif step is Step.END:
            self._end_told = True

    def _refused(self, question: Question, code: ErrorCode, said: str | None, now: float) -> None:
        step = question.step
        where = f"{step.value[0].name} for transactional.id {self.name}"
        if code in _ELSEWHERE or (step is Step.COMMIT_OFFSETS and code == E.REQUEST_TIMED_OUT):
            self._forget_node(question)
            self._wait(now)
        elif code == E.CONCURRENT_TRANSACTIONS and step is Step.ADD_PARTITIONS and not self._added:
            self._not_before = now + _WHILE_ENDING_S
        elif code in _FENCED:
            self.failed(error_of(where, E.PRODUCER_FENCED, said))
        elif kind_of(code) is Kind.RETRY:
            self._wait(now)
        elif kind_of(code) is Kind.ABORT or (code == E.TOPIC_AUTHORIZATION_FAILED and self._is_open()):
            self.failed(error_of(where, code, said, kind=Kind.ABORT if self._is_open() else Kind.FATAL))
        else:
            self.failed(error_of(where, code, said, kind=Kind.FATAL))

    def failed(self, error: SendError) -> None:
        """A batch or a question failed for good: the transaction has to be aborted, or nothing goes any more."""
        if self.state is State.FAILED:
            return
        fatal = isinstance(error, FatalError)
        if not fatal and not self._is_open():
            return  # between transactions a late batch harms nobody
        self.error = error
        self._raise_epoch = True
        if error.answered == E.INVALID_PRODUCER_ID_MAPPING:
            self._end_told = True  # the coordinator has nothing of ours to end
        if fatal:
            self.state = State.FAILED
        elif self.state is not State.ABORTING:
            self.state = State.MUST_ABORT
        else:
            return  # it is being aborted already
        self._new.clear()
        self._drop_groups(error)
        self._settle_call(error)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        return self.state in (State.OPEN, State.COMMITTING, State.ABORTING, State.MUST_ABORT)

    def _ended(self) -> None:
        self.state, self.error = State.READY, None
        self._added.clear()
        self._new.clear()
        self._something_to_end = self._end_told = False
        self._settle_call(None)

    def _settle_call(self, error: SendError | None) -> None:
        if self._call is not None and not self._call.done:
            self._call.done, self._call.error = True, error

    def _drop_groups(self, error: SendError) -> None:
        for group in self._groups:
            group.call.done, group.call.error = True, error
        self._groups.clear()

    def _forget_node(self, question: Question) -> None:
        if question.step is Step.COMMIT_OFFSETS:
            self._group_coordinators.clear()
        elif question.node is not None:
            self._coordinator = None

    def _wait(self, now: float) -> None:
        self._failures += 1
        self._not_before = now + self._backoff.after(self._failures)

    def _is_under_way(self, name: str) -> bool:
        return self._call is not None and self._call.name == name

    def _current(self) -> Call:
        assert self._call is not None
        return self._call

    def _wrong(self, call: str, hint: str) -> SendError:
        if self.error is not None:
            return type(self.error)(f"{call}() is not possible: {self.error}", self.error.answered)
        return Wrong(f"{call}() does not fit: the producer is {self.state.name.lower()}; {hint}")
