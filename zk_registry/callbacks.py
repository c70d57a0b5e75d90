"""The thread in which callbacks of states and watches run, one after the other, so that they may ask the session."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from kafka2011.events import Journal
from zk_registry.events import CallbackFailed
from zk_registry.states import SessionState, StateCallback


class Callbacks:
    """Thread: any; what is handed in runs in its own."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._listeners: list[StateCallback] = []
        self._tokens: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="zookeeper-session", daemon=True)

    def start(self) -> None:
        self._worker.start()

    def stop(self, timeout_s: float) -> None:
        """End after what is in hand; wait for it no longer than ``timeout_s``."""
        self._tokens.put(None)
        if self._worker.is_alive() and threading.current_thread() is not self._worker:
            self._worker.join(timeout_s)

    def later(self, token: Callable[[], None]) -> None:
        """Let ``token`` run after everything that was handed in before."""
        self._tokens.put(token)

    def on_state(self, listener: StateCallback) -> Callable[[], None]:
        """Tell ``listener`` of every state; return a function that ends it."""
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._forget(listener)

    def tell(self, state: SessionState) -> None:
        """Call every listener, here and now."""
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            self.call(listener, state)

    def call(self, callback: Callable[[Any], None], argument: object) -> None:
        """Call one. Its fault must not silence the others: it becomes an event, with the place."""
        try:
            callback(argument)
        except Exception as error:
            self._journal.emit(CallbackFailed(callback=repr(callback), error=repr(error)))

    def _work(self) -> None:
        while (token := self._tokens.get()) is not None:
            token()

    def _forget(self, listener: StateCallback) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)
