"""Kernels from functions of single values: what neither Arrow nor numpy computes for whole columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import repeat
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    column_bytes,
    compute,
    concatenate,
    make_array,
    nulls,
    take,
    take_shared,
)
from bamquery.engine.execution.string_limits import require_room
from bamquery.errors import ExecutionError
from bamquery.statement_context.cancellation import check_cancelled

AnyText = TypeVar("AnyText", str, bytes)

_ASKED: Final = 1 << 20
"""Characters of strings from which on it is asked whether there is room."""
_MANY: Final = 256
"""Groups of rows beyond which a call of a kernel for each takes longer than one of Python's for each row."""


_ROWS: Final = 1024
"""Values computed between two questions whether the query goes on."""
_PIECE: Final = 1 << 16
"""Characters or bytes of one value worked on between two such questions."""


def pieces(text: AnyText) -> Iterator[AnyText]:
    """A text or bytes in pieces, as long as the query goes on.

    Raises:
        CancelledError: it does not.
    """
    for start in range(0, len(text), _PIECE):
        check_cancelled()
        yield text[start : start + _PIECE]


def unknown_character(text: str, known: Set[str]) -> str | None:
    """The first character of a text that is none of those; None where all are."""
    for piece in pieces(text):
        unknown = set(piece) - known
        if unknown:
            return next(character for character in piece if character in unknown)
    return None


def python_value(datum: Datum) -> Any:
    """A constant's value for Python."""
    assert isinstance(datum, pa.Scalar), "not a column"
    return datum.as_py()


def row_count(arguments: Sequence[Datum]) -> int:
    """Rows of the first argument that is an array."""
    return next(len(a) for a in arguments if isinstance(a, pa.Array))


def per_value(function: Callable[..., Any]) -> Implementation:
    """A kernel that calls a function of plain Python values; null in, null out.

    Of one column each distinct value is computed once. A `ValueError` is the value's fault, in words.
    """

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        rows = row_count(arguments)
        if any(isinstance(a, pa.Scalar) and not a.is_valid for a in arguments):
            return nulls(rows, kind)
        places = [i for i, a in enumerate(arguments) if isinstance(a, pa.Array)]
        try:
            if len(places) == 1:
                return _apply_to_distinct(function, arguments, places[0], kind)
            columns = [
                a.to_pylist() if isinstance(a, pa.Array) else repeat(a.as_py(), rows) for a in arguments
            ]
            answers = (None if None in row else function(*row) for row in zip(*columns, strict=True))
            return make_array(_require_string_room(answers, rows), kind)
        except (ValueError, OverflowError) as error:
            raise ExecutionError(str(error)) from None

    return apply


def _apply_to_distinct(
    function: Callable[..., Any], arguments: Sequence[Datum], place: int, kind: pa.DataType
) -> Column:
    column = arguments[place]
    encoded = compute("dictionary_encode", column)
    assert isinstance(encoded, pa.DictionaryArray)
    given: list[Any] = [None if isinstance(a, pa.Array) else a.as_py() for a in arguments]
    values = []
    for number, value in enumerate(encoded.dictionary.to_pylist()):
        if number % _ROWS == 0:
            check_cancelled()
        given[place] = value
        values.append(function(*given))
    return take_shared(make_array(values, kind), encoded.indices)


def _require_string_room(values: Iterable[Any], rows: int) -> list[Any]:
    """The values of so many rows, as long as there is room for their strings."""
    found: list[Any] = []
    size = 0
    for place, value in enumerate(values):
        if place % _ROWS == 0:
            check_cancelled()
        if isinstance(value, str | bytes):
            size += len(value)
            if size > _ASKED:
                require_room("strings", size, rows)
        found.append(value)
    return found


def with_constants(
    places: Sequence[int], kernel: Implementation, one: Callable[..., Any] | None = None
) -> Implementation:
    """A kernel for constants at some places, made into one that takes columns there too.

    Rows are computed together that have the same values there; where such values are many, and there is
    `one`, the same function of plain values, by that. A null there gives null, and beside a null in another
    column nothing is made of them: what would be wrong of them is not.
    """

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        rows = row_count(arguments)
        here = [i for i in places if i < len(arguments)]
        if not rows:
            return nulls(0, kind)
        if any(isinstance(arguments[i], pa.Scalar) and not arguments[i].is_valid for i in here):
            return nulls(rows, kind)
        varying = [i for i in here if isinstance(arguments[i], pa.Array)]
        if not varying:
            return kernel(arguments, kind)
        pieces: list[Column] = []
        size = 0
        order: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        others = [a for i, a in enumerate(arguments) if i not in varying and isinstance(a, pa.Array)]
        groups = _groups([arguments[i] for i in varying], others, rows)
        if one is not None and len(groups) > _MANY:
            return per_value(one)(arguments, kind)
        for values, positions in groups:
            order.append(positions)
            if values is None:
                pieces.append(nulls(len(positions), kind))
                continue
            chosen: Any = pa.array(positions)
            given: list[Datum] = [take(a, chosen) if isinstance(a, pa.Array) else a for a in arguments]
            for i, value in zip(varying, values, strict=True):
                given[i] = value
            if any(isinstance(a, pa.Array) for a in given):
                pieces.append(kernel(given, kind))
            else:
                given[0] = as_column(given[0], 1)
                pieces.append(as_column(kernel(given, kind)[0], len(positions)))
            size += column_bytes(pieces[-1])
            require_room("strings", size, rows)
        back = np.empty(rows, np.int64)
        back[np.concatenate(order)] = np.arange(rows)
        return take(concatenate(pieces), back)

    return apply


def _groups(
    columns: Sequence[Datum], others: Sequence[Column], rows: int
) -> list[tuple[list[Any] | None, Any]]:
    """Distinct values of the columns together, each with the rows that have them.

    None in place of values where one is null, of the columns or the others.
    """
    codes = np.zeros(rows, np.int64)
    known = np.ones(rows, np.bool_)
    for other in others:
        known &= other.is_valid().to_numpy(zero_copy_only=False)
    dictionaries: list[Any] = []
    for column in columns:
        encoded = compute("dictionary_encode", column)
        assert isinstance(encoded, pa.DictionaryArray)
        size = max(len(encoded.dictionary), 1)
        indices = encoded.indices
        known &= indices.is_valid().to_numpy(zero_copy_only=False)
        codes = codes * size + indices.fill_null(0).to_numpy(zero_copy_only=False)
        dictionaries.append(encoded.dictionary)
    codes = np.where(known, codes, -1)
    order = np.argsort(codes, kind="stable").astype(np.int64)
    _, starts = np.unique(codes[order], return_index=True)
    found: list[tuple[list[Any] | None, Any]] = []
    for positions in np.split(order, starts[1:]):
        code = int(codes[positions[0]])
        if code < 0:
            found.append((None, positions))
            continue
        values: list[Any] = []
        for dictionary in reversed(dictionaries):
            code, index = divmod(code, max(len(dictionary), 1))
            values.insert(0, dictionary[index])
        found.append((values, positions))
    return found
