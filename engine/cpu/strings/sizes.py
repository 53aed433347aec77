"""Bytes that functions of strings would make, known before they do: so no batch of rows takes all memory.

What is asked is an upper bound where the size itself would need another pass over the strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    column_bytes,
    compute,
    constant_bytes,
    operand,
)
from bamquery.engine.cpu.value_kernels import row_count
from bamquery.engine.execution.string_limits import require_room

Size: TypeAlias = Callable[[Sequence[Datum]], "float | np.floating[Any]"]
"""Of arguments, at least one of them an array: bytes of the result."""

_CHARACTER: Final = 4
"""Bytes of a code point at most."""


def with_room_check(name: str, kernel: Implementation, size: Size) -> Implementation:
    """The kernel, which is not called where its strings would take too much memory."""

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        require_room(f"{name}()", int(size(arguments)), row_count(arguments))
        return kernel(arguments, kind)

    return apply


def column_string_bytes(datum: Datum, rows: int) -> int:
    """Bytes of a column's strings, or of a constant on all rows; 0 where it has none."""
    return constant_bytes(datum) * rows if isinstance(datum, pa.Scalar) else column_bytes(datum)


def joined_size(arguments: Sequence[Datum]) -> float:
    """All strings, end to end, the first of them between the others, too, where it is a separator."""
    rows = row_count(arguments)
    between = column_string_bytes(arguments[0], rows) * max(len(arguments) - 2, 0)
    return between + sum(column_string_bytes(argument, rows) for argument in arguments)


def concatenated_size(arguments: Sequence[Datum]) -> float:
    """All strings, end to end."""
    rows = row_count(arguments)
    return sum(column_string_bytes(argument, rows) for argument in arguments)


def repeated_size(arguments: Sequence[Datum]) -> float | np.floating[Any]:
    """Each text so many times."""
    return total_over_rows(sizes(arguments[0]) * np.maximum(_numbers(arguments[1]), 0.0), arguments)


def padded_size(arguments: Sequence[Datum]) -> float | np.floating[Any]:
    """Each text as long as is asked, of characters as large as there are."""
    rows = row_count(arguments)
    width: float = _CHARACTER
    padding = arguments[2]
    if isinstance(padding, pa.Scalar) and padding.is_valid:
        text = padding.as_py()
        width = max((len(character.encode()) for character in text), default=0)
    lengths = total_over_rows(np.maximum(_numbers(arguments[1]), 0.0), arguments)
    return lengths * width + column_string_bytes(arguments[0], rows)


def replaced_size(arguments: Sequence[Datum]) -> float | np.floating[Any]:
    """Each text with as many parts replaced as may be in it; in one text they are counted."""
    text, old, new = arguments
    rows = row_count(arguments)
    own = column_string_bytes(text, rows)
    if isinstance(old, pa.Scalar) and isinstance(new, pa.Scalar):
        removed, added = column_string_bytes(old, 1), column_string_bytes(new, 1)
        if added <= removed or not removed:
            return own
        if rows > 1:
            return own * added / removed
    if rows == 1:
        strings: list[str | None] = [as_column(argument, 1)[0].as_py() for argument in arguments]
        whole, part, other = strings
        if whole is None or not part or other is None:
            return own
        return own + whole.count(part) * len(other.encode())
    return total_over_rows(sizes(text) * np.maximum(sizes(new) / np.maximum(sizes(old), 1.0), 1.0), arguments)


def translated_size(arguments: Sequence[Datum]) -> float:
    """Each text as if all its characters became the largest of the others, where that is larger."""
    others = arguments[2]
    width = _CHARACTER
    if isinstance(others, pa.Scalar) and others.is_valid:
        width = max((len(character.encode()) for character in others.as_py()), default=1)
    return column_string_bytes(arguments[0], row_count(arguments)) * width


def sizes(datum: Datum) -> NDArray[Any]:
    """Bytes of each text, 0 for null; of a constant one number."""
    if isinstance(datum, pa.Scalar):
        return np.asarray(float(column_string_bytes(datum, 1)))
    return _numbers(compute("binary_length", datum))


def _numbers(datum: Datum) -> NDArray[Any]:
    """The values, 0 for null."""
    values = np.asarray(operand(datum), np.float64)
    if isinstance(datum, pa.Array) and datum.null_count:
        return np.where(datum.is_valid().to_numpy(zero_copy_only=False), values, 0.0)
    return values


def occurrences(datum: Datum, part: str) -> NDArray[Any]:
    """How often a part is in each text, 0 for null; of a constant one number."""
    import pyarrow.compute as pc  # noqa: PLC0415 (few strings are looked through for parts)

    column = as_column(datum, 1) if isinstance(datum, pa.Scalar) else datum
    return _numbers(compute("count_substring", column, options=pc.MatchSubstringOptions(part)))


def total_over_rows(values: NDArray[Any], arguments: Sequence[Datum]) -> np.floating[Any]:
    """The sum over all rows of a number for each, or of one for all."""
    return np.float64(np.broadcast_to(values, (row_count(arguments),)).sum())
