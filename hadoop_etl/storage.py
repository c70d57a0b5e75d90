"""Files in the warehouse: on this machine, in an object store or in HDFS.

Remote files go through the same library and the same settings as the tables' logs (delta-rs): where a commit can be
made, a file can be written. On this machine a file counts as written when it and its directory entry are on disk.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyarrow import fs

from hadoop_etl.errors import WarehouseError

REMOTE = ("s3", "s3a", "hdfs", "viewfs", "gs", "az", "abfs", "abfss")
"""Where delta-rs creates a log entry only if it is absent, which is what keeps two loads apart."""


def local_path(uri: str) -> Path | None:
    """The directory behind ``uri`` if it is on this machine."""
    parsed = urlparse(uri)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    return Path(uri).absolute() if len(parsed.scheme) < 2 else None


def absolute(uri: str) -> str:
    """The same place, whatever the working directory: executors have another one. Refuses what is no warehouse."""
    path = local_path(uri)
    if path is not None:
        return str(path)
    scheme, rest = urlparse(uri).scheme, uri.partition("://")[2]
    if scheme not in REMOTE:
        known = ", ".join(f"{name}://" for name in REMOTE)
        raise WarehouseError(
            f"{scheme}:// cannot hold a warehouse: a log entry must be created only if it is absent, and that is known "
            f"only of a directory, file:// and {known}. Mount it as a directory, or use one of these"
        )
    if not rest.strip("/"):
        raise WarehouseError(f"{uri} names no place; a warehouse is like {scheme}://host-or-bucket/warehouse")
    return uri.rstrip("/")


@contextmanager
def writing(uri: str) -> Iterator[IO[bytes] | Any]:
    """Open a new file for writing; on leaving it is whole and, on this machine, on disk."""
    path = local_path(uri)
    if path is None:
        with reaching(uri):
            system, name = arrow_place(uri)
            with system.open_output_stream(name) as stream:
                yield stream
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a directory's entries durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(uri: str, text: str) -> None:
    """Write a small file so that a reader sees the old one or the new one."""
    path = local_path(uri)
    if path is None:
        with writing(uri) as stream:
            stream.write(text.encode())
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with writing(str(draft)) as file:
        file.write(text.encode())
    os.replace(draft, path)
    sync_directory(path.parent)


def read_text(uri: str) -> str:
    """Read a small file; raises FileNotFoundError."""
    path = local_path(uri)
    if path is not None:
        return path.read_text()
    with reaching(uri):
        system, name = arrow_place(uri)
        with system.open_input_stream(name) as stream:
            text: bytes = stream.read()
    return text.decode()


def names(uri: str) -> list[str]:
    """The names in a directory, sorted; empty if there is none."""
    path = local_path(uri)
    if path is not None:
        # Arrow would ask for the size of each.
        return sorted(os.listdir(path)) if path.is_dir() else []
    with reaching(uri):
        system, name = arrow_place(uri)
        found = system.get_file_info(fs.FileSelector(name, allow_not_found=True))
    return sorted(info.base_name for info in found)


def exists(uri: str) -> bool:
    """Tell whether a file is there."""
    with reaching(uri):
        system, name = arrow_place(uri)
        return bool(system.get_file_info(name).type != fs.FileType.NotFound)


def remove(uri: str) -> None:
    """Remove a file, if it is there."""
    if exists(uri):
        with reaching(uri):
            system, name = arrow_place(uri)
            system.delete_file(name)


@contextmanager
def reaching(uri: str) -> Iterator[None]:
    """Turn what a remote store's library says, over many lines, into one sentence; a local error is left as it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if local_path(uri) is not None:
            raise
        raise WarehouseError(
            f"{uri} cannot be reached: {plain(error)}. Is it up, and does the environment say how to get there? "
            "Then run again"
        ) from error


def plain(error: Exception) -> str:
    """The cause first, then what was tried, on one line and without colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    first, *_, last = [line.strip(" ↳") for line in text.splitlines() if line.strip()] or [type(error).__name__] * 2
    return last if first == last else f"{last} ({first})"


def arrow_place(uri: str) -> tuple[Any, str]:
    """The Arrow file system a place is in, and its name there."""
    path = local_path(uri)
    if path is not None:
        return fs.LocalFileSystem(), str(path)
    scheme, _, rest = uri.partition("://")
    host, _, name = rest.partition("/")
    return _remote(f"{scheme}://{host}"), name


@cache
def _remote(base: str) -> Any:
    """The file system of a bucket or a name node, as delta-rs sees it."""
    from deltalake.fs import DeltaStorageHandler

    class Handler(DeltaStorageHandler):  # type: ignore[misc]  # deltalake's types are not followed
        def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
            return pa.PythonFile(_Bytes(self._handler.open_output_stream(path, metadata)), mode="w")

    return fs.PyFileSystem(Handler(f"{base}/"))


class _Bytes:
    """A stream of delta-rs, which takes bytes and nothing else; pyarrow writes buffers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(bytes(data)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
