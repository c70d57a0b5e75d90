"""Topic filters that can be trusted with time: a pattern in a member's node is matched by every other member.

Python's ``re`` tries one way after the other, and ``(a+)+`` has more ways through a long name than there is time. So a
pattern is measured before it is used: how many ways through a topic's name (at most 255 characters) it has at most.

| part | ways |
|---|---|
| a character, a class, an anchor | 1 |
| one after the other | multiplied |
| ``a|b`` | added |
| ``x*``, ``x+``, ``x?``, ``x{2,9}`` | one for each number of times |
| the same of something that has several ways itself | refused |
| look-around, back references | refused |

More than ``MOST_WAYS`` is refused: that allows three ``.*`` in a row, a fraction of a second at worst. What people
write (``white.*``, ``a|b|c``, ``log-(eu|us)-.*``) is far below.

Paper: §3.2 (subscriptions are in the consumer registry); docs/consumer.md.
"""

from __future__ import annotations

import re

# The parser behind ``re.compile``. It has no public name since Python 3.11; a test watches that it stays as it is.
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from kafka2011.errors import ConfigError

MAX_LENGTH = 1000
MOST_WAYS = 20_000_000
_NAME_LENGTH = 255
_ONE_WAY = {code.LITERAL, code.NOT_LITERAL, code.ANY, code.IN, code.AT}
_REPEATS = {code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT}


def checked(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; ConfigError if it is none, is too long, or could take too long."""
    try:
        if len(pattern) > MAX_LENGTH:
            raise ConfigError(f"{len(pattern)} characters, the limit is {MAX_LENGTH}; subscribe to topics by name")
        ways = _sequence(parser.parse(pattern))
        if ways > MOST_WAYS:
            raise ConfigError("it repeats in too many places, one after the other; three are fine")
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"the topic filter {pattern[:100]!r} is not a regular expression: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"the topic filter {pattern[:100]!r} is refused: {error}") from None


def _sequence(parts: Any) -> int:
    ways = 1
    for kind, argument in parts:
        ways *= _ways(kind, argument)
    return ways


def _ways(kind: Any, argument: Any) -> int:
    if kind in _ONE_WAY:
        return 1
    if kind is code.SUBPATTERN:
        return _sequence(argument[-1])
    if kind is code.ATOMIC_GROUP:
        return _sequence(argument)
    if kind is code.BRANCH:
        return sum(_sequence(branch) for branch in argument[1])
    if kind in _REPEATS:
        least, most = (min(int(times), _NAME_LENGTH) for times in argument[:2])
        each = _sequence(argument[2])
        if most == 1:
            return each + 1 - least
        if each > 1:
            raise ConfigError("it repeats something that repeats or chooses itself, like (a+)+ or (a|ab)*")
        return most - least + 1
    raise ConfigError("look-around and back references are not for topic names")
