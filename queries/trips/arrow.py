"""pyarrow as mypy can follow it: its stubs bind one type to each overload, here types are run-time values."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

Array: TypeAlias = "pa.Array[Any]"

arrow: Final[Any] = pa
arrow_csv: Final[Any] = pyarrow.csv
compute: Final[Any] = pyarrow.compute


def nulls(rows: int, data_type: pa.DataType) -> Array:
    """An array of `rows` nulls."""
    array: Array = arrow.nulls(rows, data_type)
    return array


def true_places(mask: Array) -> list[int]:
    """Where a boolean array is true; null counts as false."""
    return [int(place) for place in compute.indices_nonzero(mask).to_pylist()]


def distinct(array: Array) -> tuple[list[Any], Array]:
    """The distinct values of an array, and for each row the place of its value among them."""
    encoded: Any = array if pa.types.is_dictionary(array.type) else compute.dictionary_encode(array)
    return encoded.dictionary.to_pylist(), encoded.indices
