"""An answer as NumPy's arrays and torch's tensors in the host's memory, by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import value_type
from bamquery.errors import BamQueryError
from bamquery.plan.nodes import Field
from bamquery.relations.frames.frame_options import Decimals, HugeInts
from bamquery.relations.frames.host_columns import host_column, is_python_values, objects
from bamquery.text.identifiers import unique_names

if TYPE_CHECKING:
    import torch

Array = np.ndarray[Any, Any]


def numpy_arrays(table: pa.Table, hugeint: HugeInts, decimals: Decimals) -> dict[str, Array]:
    """The table's columns by name; see `RelationFrames.to_numpy`.

    Raises:
        ExecutionError: a value is beyond what its new type holds.
    """
    arrays: dict[str, Array] = {}
    for name, column in zip(unique_names(table.schema.names), table.columns, strict=True):
        converted = host_column(name, column, hugeint, decimals)
        as_objects = is_python_values(converted.type)
        values = objects(name, converted) if as_objects else _values(converted)
        if column.null_count:
            mask = np.asarray(pc.is_null(column))
            arrays[name] = np.ma.masked_array(values, mask)
        else:
            arrays[name] = values
    return arrays


def require_array_types(fields: Sequence[Field], instead: str) -> None:
    """Refuse, before anything is read, what tensors cannot hold.

    Raises:
        BamQueryError: a column is none of numbers, booleans, dates and times; names it and the way out.
    """
    for field in fields:
        if _number_type(field.type) is None:
            raise BamQueryError(
                f'column "{field.name}" of type {type_name(field.type)} is no array: cast it, leave it out, '
                f"or take {instead}"
            )


def host_tensors(torch: Any, table: pa.Table) -> dict[str, torch.Tensor]:
    """The table's columns by name in memory of their own; dates and times are their counts.

    Types have been looked at: see `require_array_types`.

    Raises:
        BamQueryError: a column has nulls; names it and the way out.
    """
    tensors = {}
    for name, column in zip(unique_names(table.schema.names), table.columns, strict=True):
        if column.null_count:
            raise BamQueryError(
                f'column "{name}" has nulls, which tensors have not: coalesce it, filter with IS NOT NULL, '
                "or take to_numpy(), which masks them"
            )
        tensors[name] = torch.from_numpy(_values(_counts(column)))
    return tensors


def _number_type(kind: pa.DataType) -> pa.DataType | None:
    """The type of a column's values as numbers; None where they are none."""
    plain = value_type(kind)
    if pa.types.is_date32(plain) or pa.types.is_time32(plain):
        return pa.int32()
    if pa.types.is_time64(plain) or pa.types.is_timestamp(plain):
        return pa.int64()
    if pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_boolean(plain):
        return plain
    return None


def _counts(column: Any) -> Any:
    """The column's values as numbers."""
    kind: Any = _number_type(column.type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.chunked_array([c if c.type == kind else c.view(kind) for c in column.chunks], kind)


def _values(column: Any) -> Array:
    """A column's values in memory of their own, which may be written to; something where it is null."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        counts: Any = pa.chunked_array([chunk.view(pa.int64()) for chunk in column.chunks], pa.int64())
        letter = "M" if pa.types.is_timestamp(kind) else "m"
        return _values(counts).view(f"{letter}8[{kind.unit}]")
    dtype = _dtype(kind)
    values = np.empty(len(column), dtype)
    end = 0
    for chunk in column.chunks:
        begin, end = end, end + len(chunk)
        if dtype.kind != "O":
            chunk = chunk.fill_null(False if pa.types.is_boolean(kind) else 0)  # noqa: PLW2901
        values[begin:end] = chunk.to_numpy(zero_copy_only=False)
    return values


def _dtype(kind: pa.DataType) -> Any:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if is_number else np.dtype(object)
