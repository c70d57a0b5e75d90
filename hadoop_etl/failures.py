"""Keep a failure where it belongs: one topic's is not the night's.

Libraries raise what they like, some of it not even an Exception (a panic inside polars or delta-rs is a BaseException
of its own). Whatever it is, it is put into one sentence, and that sentence is on the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafka2011.errors import Kafka2011Error

LONGEST = 600


def sentence(error: BaseException) -> str:
    """What an error says, on one line; with its class if it is not one of ours."""
    text = " ".join(str(error).split()).encode(errors="backslashreplace").decode()
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    if isinstance(error, (Kafka2011Error, OSError)):
        return text or type(error).__name__
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def isolated(report: Callable[[str], None]) -> Iterator[None]:
    """Hand any failure inside to ``report`` as a sentence; a wish to end the program goes through."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        report(sentence(error))
