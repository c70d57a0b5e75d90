"""Answers on their way out: bytes and file ranges, in order, by the kernel's own copy.

Paper: §3.1, "Efficient transfer": with sendfile the kernel moves the bytes from the file to the socket; the broker
never holds them.

An Outbox is the only writer of its connection. That is what keeps the order: a head written to Twisted's buffer
could be overtaken by file bytes sent directly, so nothing here ever goes through that buffer. The head is sent
with MSG_MORE and travels in one segment with the first bytes of the file, because some clients take a reply for
complete when its last bytes are still missing.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.internet.interfaces import IPullProducer
from zope.interface import implementer

from kafka2011.wire.file_range import FileRange

TURN_BYTES = 4 << 20
"""Sent to one connection before the others have their turn."""
COPY_BYTES = 64 << 10


class Transport(Protocol):
    """What is asked of Twisted's TCP and TLS transports (``startWriting`` of TCP only)."""

    def getHandle(self) -> socket.socket: ...
    def registerProducer(self, producer: object, streaming: bool) -> None: ...
    def unregisterProducer(self) -> None: ...
    def startWriting(self) -> None: ...
    def pauseProducing(self) -> None: ...
    def resumeProducing(self) -> None: ...
    def loseConnection(self) -> None: ...
    def abortConnection(self) -> None: ...
    def write(self, data: bytes) -> None: ...


class FileTooShort(Exception):
    """A file ended before the range that was promised in the head; the connection cannot go on."""


@implementer(IPullProducer)
class Outbox:
    """Send parts in order as fast as the reader takes them, holding nothing but file ranges. Thread: reactor.

    ``busy`` is true while something is left to send; ``drained`` is called when a busy outbox has become empty,
    ``broken`` when the connection must be dropped.
    """

    path = "sendfile"

    def __init__(
        self,
        transport: Transport,
        *,
        drained: Callable[[], None],
        broken: Callable[[str], None],
        sent: Callable[[str, int], None],
    ) -> None:
        self._transport = transport
        self._drained, self._broken, self._sent = drained, broken, sent
        self._parts: deque[bytes | FileRange] = deque()
        self._done = 0
        """Bytes of the first part that are already sent."""
        self._registering = False
        self.busy = False

    def send(self, parts: Sequence[bytes | FileRange]) -> None:
        """Send what the socket takes now; the rest follows as the reader takes it."""
        self._parts.extend(parts)
        if self.busy:
            return
        self.busy = True
        if self._turn():
            self.busy = False
        elif self.busy:
            # Twisted asks a pull producer for data from inside registerProducer: not now, the socket is full.
            self._registering = True
            self._transport.registerProducer(self, False)
            self._registering = False

    def resumeProducing(self) -> None:
        """Twisted's buffer is empty and the socket takes bytes again."""
        if not self.busy:
            return
        if not self._registering and self._turn():
            self.busy = False
            self._transport.unregisterProducer()
            self._drained()
        elif self.busy:
            self._ask_again()

    def stopProducing(self) -> None:
        """The connection is gone."""
        self.close()

    def close(self) -> None:
        """Let go of every file that is left."""
        self.busy = False
        for part in self._parts:
            if not isinstance(part, bytes):
                part.close()
        self._parts.clear()

    def _turn(self) -> bool:
        """Send for one turn; True when nothing is left."""
        try:
            return self._send_some()
        except BlockingIOError:
            return False
        except FileTooShort as error:
            reason = str(error)
        except OSError as error:
            reason = f"cannot send: {error.strerror}"
        self.close()
        self._broken(reason)
        return False

    def _send_some(self) -> bool:
        connection = self._transport.getHandle()
        left = TURN_BYTES
        parts = self._parts
        while parts and left > 0:
            part = parts[0]
            if isinstance(part, bytes):
                n = connection.send(part[self._done :], socket.MSG_MORE if len(parts) > 1 else 0)
                size = len(part)
            else:
                size = part.size
                n = os.sendfile(
                    connection.fileno(), part.fd, part.position + self._done, min(size - self._done, left)
                )
                if n == 0:
                    raise FileTooShort(f"the file ends {size - self._done} bytes before the range that was promised")
                self._sent(self.path, n)
            left -= n
            self._advance(n, size)
        return not parts

    def _advance(self, n: int, size: int) -> None:
        self._done += n
        if self._done == size:
            part = self._parts.popleft()
            if not isinstance(part, bytes):
                part.close()
            self._done = 0

    def _ask_again(self) -> None:
        self._transport.startWriting()


class CopyingOutbox(Outbox):
    """The same through a transport that must see the bytes: TLS."""

    path = "copy"

    def _send_some(self) -> bool:
        if not self._parts:
            return True
        part = self._parts[0]
        if isinstance(part, bytes):
            data, size = part, len(part)
        else:
            size = part.size
            data = os.pread(part.fd, min(size - self._done, COPY_BYTES), part.position + self._done)
            if not data:
                raise FileTooShort(f"the file ends {size - self._done} bytes before the range that was promised")
            self._sent(self.path, len(data))
        self._transport.write(data)
        self._advance(len(data), size)
        # Not done before Twisted has passed it on and asks again: else a reader that reads nothing fills its buffer.
        return False

    def _ask_again(self) -> None:
        """Twisted asks by itself, once what was written has left."""
