"""Functions of strings as functions of one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.operators.recursion.by_row.values import (
    LeftToDeviceError,
    RowFunction,
    short,
    strict_unary,
)
from bamquery.plan.expressions import Expression, Literal

_TEXT: Final = pa.large_string()


def _plain(value: str) -> str:
    """Of others Python may know another case than a device, or more of Unicode."""
    if not value.isascii():
        raise LeftToDeviceError
    return value


def _ascii_function(compute: Callable[[str], Any]) -> Callable[..., RowFunction | None]:
    def make(
        functions: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> RowFunction | None:
        if [*kinds] != [_TEXT]:
            return None
        return strict_unary(lambda value: compute(_plain(value)), functions[0])

    return make


def _replace(
    functions: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction | None:
    if [*kinds] != [_TEXT] * 3:
        return None

    def function(row: Any) -> Any:
        value, wanted, instead = (argument(row) for argument in functions)
        if value is None or wanted is None or instead is None:
            return None
        return short(value.replace(wanted, instead)) if wanted else value

    return function


def substring(function: RowFunction, places: Sequence[Expression]) -> RowFunction | None:
    """So many code points from a place on that is the same for all rows, and not counted from the end."""
    found = [place.value.as_py() for place in places if isinstance(place, Literal)]
    match found:
        case [int(start), int(length)] if start >= 1 and length >= 0:
            return strict_unary(lambda value: value[start - 1 : start - 1 + length], function)
        case [int(start), None] if start >= 1 and len(places) == 2:
            return strict_unary(lambda value: value[start - 1 :], function)
        case _:
            return None


TEXT_CALLS: Final[Mapping[str, Callable[..., RowFunction | None]]] = MappingProxyType(
    {
        "length": _ascii_function(len),
        "lower": _ascii_function(str.lower),
        "upper": _ascii_function(str.upper),
        "replace": _replace,
    }
)
