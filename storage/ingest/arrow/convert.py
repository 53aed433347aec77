"""Batches as a source has them → batches of another schema. A value that would change is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bamquery.data_types.names import type_name
from bamquery.errors import IngestError
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.arrow.alignment import aligned, aligned_batch
from bamquery.storage.ingest.arrow.extension_values import plain, whole_microseconds
from bamquery.storage.ingest.sources.failures import reason
from bamquery.storage.ingest.sources.source import Chunk, SourceReader
from bamquery.storage.statistics.type_bounds import first_outside

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

_MISFITS: Final = (pa.ArrowException, ValueError, OverflowError)
_SHOWN_CHARACTERS: Final = 60

INTERVAL: Final = pa.month_day_nano_interval()
NO_VALUES: Final[Mapping[str, Any]] = MappingProxyType({})


def convert_chunk(
    chunk: Chunk, positions: Sequence[int | None], target: pa.Schema, reader: SourceReader
) -> pa.RecordBatch:
    """The chunk's rows under `target`: column i is column `positions[i]` of the chunk, or nulls.

    Raises:
        IngestError: a value has no equal in the target's type, is outside of its own, or a string that is
            not UTF-8; names reader, row and column.
    """
    try:
        # Parquet and streams may hold strings that are not UTF-8, and infinite dates; those of CSV were
        # looked at before.
        return _convert(chunk.batch, positions, target, check=not reader.is_text)
    except _MisfitError as misfit:
        place = f"row {chunk.first_row + misfit.row}" + (f" of {chunk.place}" if chunk.place else "")
        subject = "" if reader.path else f"{reader.name}: "
        raise IngestError(f"{subject}{place}, {misfit}", reader.path) from misfit


def convert_batch(
    batch: pa.RecordBatch,
    positions: Sequence[int | None],
    target: pa.Schema,
    name: str,
    first_row: int,
    *,
    missing: Mapping[str, Any] = NO_VALUES,
) -> pa.RecordBatch:
    """`batch`, which starts at row `first_row` (from 1) of the source `name`, under `target`, as above.

    Columns that it lacks get what `missing` has under their name instead of null.

    Raises:
        IngestError: a value has no equal in the target's type; names source, row and column.
    """
    if batch.schema.equals(target) and list(positions) == list(range(len(target))):
        return aligned_batch(batch)
    try:
        return _convert(batch, positions, target, missing, check=False)
    except _MisfitError as misfit:
        raise IngestError(f"{name}: row {first_row + misfit.row}, {misfit}") from misfit


def convert_array(array: Array, type_: DataType) -> Array:
    """`array` as `type_`, every value equal to what it was.

    Raises:
        pa.ArrowException, ValueError: some value cannot be had in that type.
    """
    if isinstance(array, pa.DictionaryArray) and pa.types.is_dictionary(type_):
        return _convert_dictionary(array, type_)
    if array.type == type_:
        return whole_microseconds(array) if type_ == INTERVAL else array
    if isinstance(array, pa.ExtensionArray):
        return convert_array(plain(array), type_)
    if pa.types.is_run_end_encoded(array.type):
        return convert_array(pc.call_function("run_end_decode", [array]), type_)
    if isinstance(array, pa.DictionaryArray):
        return convert_array(_decode_dictionary(array), type_)
    converted = array.cast(type_)
    if _rounds(array.type, type_) and not _same_values(array, converted.cast(array.type, safe=False)):
        raise ValueError("it would be rounded")
    return converted


def _convert_dictionary(array: Any, type_: Any) -> Array:
    """As above. Indexes of null become null: only these are taken for null from here on."""
    if array.type == type_ and not array.dictionary.null_count:
        unchanged: Array = array
        return unchanged
    values = convert_array(array.dictionary, type_.value_type)
    indices: Any = array.indices
    if values.null_count:
        present = values.is_valid()
        places = pc.subtract(pc.cumulative_sum(present.cast(pa.int32())), 1)
        indices = pc.take(pc.if_else(present, places, None), indices)
        values = values.drop_null()
    return pa.DictionaryArray.from_arrays(indices.cast(type_.index_type), values)


def _decode_dictionary(array: Any) -> Any:
    values = array.dictionary
    if isinstance(values, pa.ExtensionArray):
        values = plain(values)
    return pc.take(values, array.indices)


class _MisfitError(Exception):
    """The value of one row has no place in its column; the message names the column."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def _convert(
    batch: pa.RecordBatch,
    positions: Sequence[int | None],
    target: pa.Schema,
    missing: Mapping[str, Any] = NO_VALUES,
    *,
    check: bool,
) -> pa.RecordBatch:
    if not len(target):
        return batch.select([])
    arrays: list[Array] = []
    for position, field in zip(positions, target, strict=True):
        if position is None:
            value, rows = missing.get(field.name), batch.num_rows
            arrays.append(pa.nulls(rows, field.type) if value is None else pa.repeat(value, rows))
            continue
        array = batch.column(position)
        try:
            converted = convert_array(array, field.type)
            if check and _holds_strings(field.type):
                converted.validate(full=True)
        except _MISFITS as error:
            row = _first_misfit(array, field.type)
            found = f'column "{field.name}": {_show_value(array, row)} does not fit {type_name(field.type)}'
            raise _MisfitError(row, f"{found} ({reason(error)})") from error
        outside = first_outside(converted) if check else None
        if outside is not None:
            row, fault = outside
            raise _MisfitError(row, f'column "{field.name}": {type_name(field.type)} {fault}')
        arrays.append(aligned(converted))
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def _rounds(given: DataType, wanted: DataType) -> bool:
    """True for the casts that Arrow calls safe though they may change values."""
    if not pa.types.is_floating(wanted):
        return False
    return pa.types.is_decimal(given) or (pa.types.is_float64(given) and not pa.types.is_float64(wanted))


def _same_values(left: Array, right: Array) -> bool:
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return pc.all(equal, min_count=0).as_py() is True


def _holds_strings(type_: DataType) -> bool:
    return pa.types.is_large_string(type_.value_type if pa.types.is_dictionary(type_) else type_)


def _first_misfit(array: Array, type_: DataType) -> int:
    """Index of the first value that cannot be converted, by halving; `array` as a whole cannot."""
    start, stop = 0, len(array)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            convert_array(array.slice(start, middle - start), type_).validate(full=True)
            start = middle
        except _MISFITS:
            stop = middle
    return start


def _show_value(array: Array, row: int) -> str:
    try:
        text = str(array[row].as_py())
    except (ValueError, OverflowError):  # a string that is not UTF-8, a time out of Python's range
        return "the value"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
