"""Files in the warehouse, on this machine or anywhere pyarrow can write (hdfs://, s3://, gs:// …).

On this machine a file counts as written when it and its directory entry are on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlparse

from pyarrow import fs


def local_path(uri: str) -> Path | None:
    """The directory behind ``uri`` if it is on this machine."""
    parsed = urlparse(uri)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    return Path(uri).absolute() if len(parsed.scheme) < 2 else None


def absolute(uri: str) -> str:
    """The same place, whatever the working directory: executors have another one."""
    path = local_path(uri)
    return uri.rstrip("/") if path is None else str(path)


@contextmanager
def writing(uri: str) -> Iterator[IO[bytes] | Any]:
    """Open a new file for writing; on leaving it is whole and, on this machine, on disk."""
    path = local_path(uri)
    if path is None:
        system, name = fs.FileSystem.from_uri(uri)
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
    system, name = fs.FileSystem.from_uri(uri)
    with system.open_input_stream(name) as stream:
        text: bytes = stream.read()
    return text.decode()


def names(uri: str) -> list[str]:
    """The names in a directory, sorted; empty if there is none."""
    system, name = _system(uri)
    found = system.get_file_info(fs.FileSelector(name, allow_not_found=True))
    return sorted(info.base_name for info in found)


def exists(uri: str) -> bool:
    """Tell whether a file is there."""
    system, name = _system(uri)
    return bool(system.get_file_info(name).type != fs.FileType.NotFound)


def _system(uri: str) -> tuple[Any, str]:
    path = local_path(uri)
    if path is not None:
        return fs.LocalFileSystem(), str(path)
    system, name = fs.FileSystem.from_uri(uri)
    return system, name
