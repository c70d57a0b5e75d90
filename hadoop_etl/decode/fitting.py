"""Rows of Python values to columns of given types, with a reason for each row that does not fit.

Only batches that cannot be read at once come this way, so it is the speed of a load whose data is odd: what to do with
a value is decided once per column, not once per value.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from typing import Any

import pyarrow as pa

Fit = Callable[[Any], Any]
"""A value as Arrow wants it; raises if it is none of the column's type."""


def rows_to_table(rows: Sequence[Mapping[str, Any]], columns: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
    """Rows as columns of these types, and the reason for each row that does not fit them."""
    bad: dict[int, str] = {}
    good: list[pa.Table] = []
    fitted: list[tuple[int, dict[str, Any]]] = []
    fits = [(column.name, fitter(column.type)) for column in columns]
    for place, row in enumerate(rows):
        try:
            fitted.append((place, {name: fit(row.get(name)) for name, fit in fits}))
        except Exception as error:
            # Whatever its class, it is this row's doing.
            bad[place] = _misfit(error)

    def convert(first: int, last: int) -> None:
        try:
            good.append(pa.Table.from_pylist([row for _, row in fitted[first:last]], schema=columns))
        except Exception as error:
            # Half a letter, a number too large: it is some row's doing, and halving finds which.
            if last - first == 1:
                bad[fitted[first][0]] = _misfit(error)
            else:
                middle = (first + last) // 2
                convert(first, middle)
                convert(middle, last)

    if fitted:
        convert(0, len(fitted))
    return pa.concat_tables(good) if good else columns.empty_table(), bad


def fitter(kind: pa.DataType) -> Fit:
    """How a value of a column of this type is made ready: maps as pairs, what is kept as text as JSON."""
    fit = _fitter(kind)
    return lambda value: None if value is None else fit(value)


def _fitter(kind: pa.DataType) -> Fit:
    if pa.types.is_string(kind):
        return lambda value: value if isinstance(value, str) else _as_json(value)
    if pa.types.is_map(kind):
        return _map(kind)
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_list(kind):
        return _list(kind)
    if pa.types.is_boolean(kind):
        return _checked(kind, lambda value: isinstance(value, bool))
    if pa.types.is_integer(kind):
        return _integer(kind)
    if pa.types.is_floating(kind):
        return _checked(kind, _is_exact)
    return _checked(kind, lambda value: not isinstance(value, (bool, Mapping)))


def _is_exact(value: Any) -> bool:
    """Tell whether a double can hold a value as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < 2**63 and float(value) == value
    return isinstance(value, float)


def _checked(kind: pa.DataType, is_right: Callable[[Any], bool]) -> Fit:
    def fit(value: Any) -> Any:
        if is_right(value):
            return value
        raise TypeError(f"{_short(value)} is not {kind}")

    return fit


def _integer(kind: pa.DataType) -> Fit:
    def fit(value: Any) -> Any:
        if type(value) is int and -(2**63) <= value < 2**63:
            return value
        # Arrow itself would cut a fraction off without a word.
        if isinstance(value, (bool, int, Mapping)) or (isinstance(value, float) and not value.is_integer()):
            raise TypeError(f"{_short(value)} is not {kind}")
        return int(value) if isinstance(value, float) else value

    return fit


def _map(kind: pa.DataType) -> Fit:
    inner, check = fitter(kind.item_type), _checked(kind, lambda value: isinstance(value, Mapping))
    return lambda value: [(key, inner(part)) for key, part in check(value).items()]


def _struct(kind: pa.DataType) -> Fit:
    parts = [(part.name, fitter(part.type)) for part in kind]
    check = _checked(kind, lambda value: isinstance(value, Mapping))

    def fit(value: Any) -> Any:
        get = check(value).get
        return {name: inner(get(name)) for name, inner in parts}

    return fit


def _list(kind: pa.DataType) -> Fit:
    inner = fitter(kind.value_type)

    def fit(value: Any) -> Any:
        if not isinstance(value, list):
            raise TypeError(f"{_short(value)} is not a list")
        return [inner(part) for part in value]

    return fit


def _as_json(value: Any) -> str:
    return dumps(value, default=_text, sort_keys=True, allow_nan=False)


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _misfit(error: Exception) -> str:
    return f"a field has the wrong type: {shown(error)}"


def _short(value: Any) -> str:
    return reprlib.repr(value)


def shown(error: BaseException, most: int = 300) -> str:
    """What an error says, in a length that a table can hold; values inside it may be of any size."""
    text = str(error) or type(error).__name__
    text = text if len(text) <= most else f"{text[:most]}…"
    return text.encode(errors="backslashreplace").decode()
