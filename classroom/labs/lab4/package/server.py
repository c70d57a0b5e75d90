"""Lab 4: a server for fetch requests. Fill the hole; the page README.md describes the bytes."""

from __future__ import annotations

import socket


def serve(listener: socket.socket, directory: str) -> None:
    """Accept connections and answer fetch requests from the segment files in ``directory``, for ever."""
    raise NotImplementedError("serve: accept, read a request, answer it with sendfile, again")
