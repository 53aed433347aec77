"""Typed doors to `pyarrow.compute` and numpy, which the rest of this folder goes through.

A datum is an array (one value a row of the frame) or a scalar (the same value on every row).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.shared_copies import append, gather
from bamquery.engine.execution.string_limits import current_string_limits, require_room
from bamquery.statement_context.cancellation import interruptible

if TYPE_CHECKING:
    import pyarrow.compute as pc

Column: TypeAlias = "pa.Array[Any]"
Constant: TypeAlias = "pa.Scalar[Any]"
Datum: TypeAlias = "pa.Array[Any] | pa.Scalar[Any]"
Implementation: TypeAlias = Callable[[Sequence[Datum], pa.DataType], Column]
"""A scalar function: arguments (at least one an array, none a dictionary) and the result's type."""
Kind: TypeAlias = Any
"""A `pa.DataType` whose family the caller knows, for its unit, precision or index type."""

# The stubs' overloads choose by types that are known at run time only.
_pa: Any = pa

_NULL: Final = pa.null().id

_LONG: Final = 64 << 20
"""Bytes from which a call is made so that Ctrl-C need not wait for its end: it takes a tenth of a second."""
_SLOW: Final = MappingProxyType({"match_substring_regex": 1 << 16, "replace_substring_regex": 1 << 16})
"""Functions whose arguments count for so many times their bytes: patterns may look at each so often."""
_LONG_SORT: Final = 8 << 20
"""The same of a sort, which takes longer."""
_TEXTS: Final = (pa.LargeStringScalar, pa.LargeBinaryScalar)
_LONG_TEXT: Final = 64
"""Bytes of a constant from which on it matters how many rows have it: less than what else a row takes."""

AnyDatum = TypeVar("AnyDatum", "pa.Array[Any]", "pa.Scalar[Any]", "pa.Array[Any] | pa.Scalar[Any]")


@functools.cache
def _pc() -> Any:
    import pyarrow.compute  # noqa: PLC0415 (it makes 300 functions, which not every query needs)

    return pyarrow.compute


def compute(name: str, *arguments: Datum, options: pc.FunctionOptions | None = None) -> Column:
    """A function of `pyarrow.compute`; at least one argument is an array.

    Raises:
        pa.ArrowInvalid: the kernel cannot compute a value.
    """
    columns = [datum for datum in arguments if isinstance(datum, pa.Array)]
    weight = _SLOW.get(name, 1)
    return cast(Column, _call(columns, _pc().call_function, name, arguments, options, weight=weight))


def _call(values: Sequence[Any], function: Callable[..., Any], *arguments: Any, weight: int = 1) -> Any:
    """A function of Arrow's, of values (arrays, batches, tables) which it works on."""
    long, size = _LONG // weight, 0
    for value in values:
        # Slices count with all that they are slices of, and to be exact takes twenty times as long.
        size += value.get_total_buffer_size()
    if size >= long and sum(v.nbytes for v in values) >= long:
        return interruptible(function, *arguments)
    return function(*arguments)


def match_parts(column: Column, pattern: str, *, at_start: bool, at_end: bool) -> Column:
    """Whether strings are as a LIKE pattern whose only signs are percent signs, with other text between.

    `at_start`, `at_end`: no percent sign is there.
    """
    if not len(column):
        return nulls(0, _pa.bool_())
    validity, offsets, data = column.buffers()
    parts = [part.encode() for part in pattern.split("%") if part]
    shift = column.offset if column.null_count else 0
    arguments = offsets, data or b"", column.offset, len(column), parts, at_start, at_end, shift
    # Each byte of a string may be compared with a part's first ones.
    found = _call([column], native.match_parts, *arguments, weight=max(map(len, parts)))
    buffers = [validity if column.null_count else None, _pa.py_buffer(found)]
    return cast(Column, _pa.Array.from_buffers(_pa.bool_(), len(column), buffers, offset=shift))


def is_constant(datum: Datum) -> bool:
    """Whether the datum is a scalar."""
    return isinstance(datum, pa.Scalar)


def constant(value: object, kind: pa.DataType) -> Constant:
    """A scalar of a type."""
    scalar: Constant = _pa.scalar(value, type=kind)
    return scalar


def as_column(datum: Datum, rows: int) -> Column:
    """The datum as an array of `rows` values.

    Raises:
        LargeStringError: a constant text on all rows takes too much memory.
    """
    if isinstance(datum, pa.Array):
        return datum
    if not datum.is_valid:
        return nulls(rows, datum.type)
    if rows > 1:
        require_room("a constant", constant_bytes(datum) * rows, rows)
    repeated: Column = _pa.repeat(datum, rows)
    return repeated


def constant_bytes(datum: Constant) -> int:
    """Bytes of a text; 0 for other constants and null."""
    return datum.as_buffer().size if isinstance(datum, _TEXTS) and datum.is_valid else 0


def column_bytes(column: Column) -> int:
    """Bytes of a column's strings, without a look at each; 0 where it has none."""
    if not _is_string(column.type) or not len(column):
        return 0
    offsets = string_offsets(column)
    return int(offsets[-1] - offsets[0])


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def string_offsets(column: Column) -> NDArray[np.int64]:
    """Where the strings of a column that has rows begin, and where the last one ends."""
    stored = np.frombuffer(memoryview(column.buffers()[1]), np.int64)  # type: ignore[arg-type]
    return stored[column.offset : column.offset + len(column) + 1]


def nulls(rows: int, kind: pa.DataType) -> Column:
    """`rows` nulls."""
    if kind.id == _NULL:  # of which Arrow would make a bitmap first
        untyped: Column = _pa.Array.from_buffers(kind, rows, [None])
        return untyped
    column: Column = _pa.nulls(rows, kind)
    return column


def convert(datum: AnyDatum, kind: pa.DataType) -> AnyDatum:
    """Arrow's own checked cast; see `bamquery.engine.cpu.casts` for SQL's.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    return datum if datum.type == kind else cast(AnyDatum, _pc().cast(datum, kind))


def convert_unchecked(datum: Column, kind: pa.DataType) -> Column:
    """Arrow's own cast that wraps, truncates and rounds where a value does not fit."""
    return datum if datum.type == kind else cast(Column, _pc().cast(datum, kind, safe=False))


def concatenate(columns: Sequence[Column]) -> Column:
    """Values of one or more arrays of one type."""
    return columns[0] if len(columns) == 1 else cast(Column, _call(columns, _append, columns))


def _append(columns: Sequence[Column]) -> Column:
    found = append(columns)
    return cast(Column, _pa.concat_arrays(columns)) if found is None else found


def take(column: Column, positions: Column | NDArray[np.int64]) -> Column:
    """Values at positions; null where the position is null."""
    if not isinstance(positions, pa.Array):
        return take_present(column, from_values(positions, pa.from_numpy_dtype(positions.dtype)))
    return cast(Column, _call([column, positions], _copied, column, positions, None))


@functools.cache
def _unchecked() -> Any:
    return _pc().TakeOptions(boundscheck=False)


def take_present(column: Column, positions: Column) -> Column:
    """Values at positions that are there, as they were found and not given; null where one is null."""
    return cast(Column, _call([column, positions], _copied, column, positions, _unchecked()))


def take_rows(batch: pa.RecordBatch, positions: Column) -> pa.RecordBatch:
    """The same of a batch's rows."""
    return cast(pa.RecordBatch, _call([batch, positions], _copied_rows, batch, positions))


def _copied(column: Column, positions: Column, options: Any) -> Column:
    found = gather([column], positions)
    if found is not None and found[0] is not None:
        return found[0]
    return cast(Column, _pc().call_function("take", [column, positions], options))


def _copied_rows(batch: pa.RecordBatch, positions: Column) -> pa.RecordBatch:
    found = gather(batch.columns, positions)
    if found is None:
        return cast(pa.RecordBatch, _pc().call_function("take", [batch, positions], _unchecked()))
    columns = [
        _pc().call_function("take", [column, positions], _unchecked()) if own is None else own
        for column, own in zip(batch.columns, found, strict=True)
    ]
    return cast(pa.RecordBatch, _pa.RecordBatch.from_arrays(columns, schema=batch.schema))


def filter_batch(batch: pa.RecordBatch, mask: Column) -> pa.RecordBatch:
    """The rows for which the mask is true."""
    return cast(pa.RecordBatch, _call([batch], batch.filter, mask))


def sorted_places(columns: Sequence[Column], directions: Sequence[str]) -> Column:
    """Places of the values in order of the first column, then of the next: nulls last, NaN before them.

    The sort is stable; each direction is "ascending" or "descending".
    """
    table = _pa.table(list(columns), names=[str(i) for i in range(len(columns))])
    order = [(str(i), direction) for i, direction in enumerate(directions)]
    function = partial(_pc().sort_indices, sort_keys=order)
    if table.get_total_buffer_size() >= _LONG_SORT and table.nbytes >= _LONG_SORT:
        return cast(Column, interruptible(function, table))
    return cast(Column, function(table))


def any_true(mask: Column) -> bool:
    """Whether any value is true."""
    return bool(_true_count(mask))


def first_true(mask: Column) -> int:
    """Position of the first true value, -1 where there is none."""
    return int(_pc().index(mask, constant(True, pa.bool_())).as_py())


def where(mask: Column, chosen: Datum, otherwise: Datum) -> Column:
    """`chosen` where the mask is true, `otherwise` where it is false; null where it is null.

    Raises:
        LargeStringError: a constant text on so many rows takes too much memory.
    """
    rows = len(mask)
    sizes = [constant_bytes(d) if isinstance(d, pa.Scalar) else 0 for d in (chosen, otherwise)]
    if max(sizes) <= _LONG_TEXT or max(sizes) * rows <= current_string_limits().piece:
        return compute("if_else", mask, chosen, otherwise)
    true = _true_count(mask)
    require_room("a constant", sizes[0] * true + sizes[1] * (rows - true), rows)
    # Arrow's kernel takes memory as if all rows had the constant.
    known = boolean_values(compute("is_valid", mask)) if mask.null_count else None
    own = np.arange(rows)
    first, second = (
        as_column(datum, 1) if isinstance(datum, pa.Scalar) else datum for datum in (chosen, otherwise)
    )
    places = [0 if isinstance(chosen, pa.Scalar) else own, 0 if isinstance(otherwise, pa.Scalar) else own]
    which = np.where(boolean_values(mask), places[0], len(first) + places[1])
    return take(
        concatenate([first, second]),
        from_values(which, pa.int64(), None if known is None else boolean_column(known)),
    )


def null_where(mask: Column, column: Column) -> Column:
    """The values, null where the mask is true."""
    return where(mask, constant(None, column.type), column)


def fill_null(column: Column, datum: Datum) -> Column:
    """The values, those of the datum where they are null.

    Raises:
        LargeStringError: a constant text on so many rows takes too much memory.
    """
    if isinstance(datum, pa.Scalar) and constant_bytes(datum) > _LONG_TEXT:
        return where(compute("is_valid", column), column, datum)
    return compute("coalesce", column, datum)


def take_shared(values: Column, places: Column | NDArray[np.int64]) -> Column:
    """As `take`, of values that many rows may share.

    Raises:
        LargeStringError: as strings of each row they take too much memory.
    """
    rows = len(places)
    piece = current_string_limits().piece
    if len(values) and rows > 1 and _is_string(values.type) and column_bytes(values) * rows > piece:
        lengths = np.diff(string_offsets(values))
        if int(lengths.max()) * rows > piece:
            found = take(from_values(lengths, pa.int64()), places)
            require_room("strings that rows share", int(_pc().sum(found).as_py() or 0), rows)
    return take(values, places)


def _true_count(mask: Column) -> int:
    return mask.true_count if isinstance(mask, pa.BooleanArray) else 0


def valid_rows(*data: Datum) -> Column | None:
    """Rows on which no datum is null, or None where that is every row."""
    mask: Column | None = None
    for datum in data:
        if isinstance(datum, pa.Array) and datum.null_count:
            here = compute("is_valid", datum)
            mask = here if mask is None else compute("and", mask, here)
        elif isinstance(datum, pa.Scalar) and not datum.is_valid:
            rows = next(len(d) for d in data if isinstance(d, pa.Array))
            return as_column(constant(False, pa.bool_()), rows)
    return mask


def validity(column: Column) -> tuple[pa.Buffer | None, int]:
    """The bitmap of the values that are not null, and its first bit; None where all are."""
    return (column.buffers()[0], column.offset) if column.null_count else (None, 0)


_TEMPORAL_WIDTH_32 = (pa.types.is_date32, pa.types.is_time32)


@functools.lru_cache(maxsize=64)
def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """The numpy type of a fixed-width type's stored values: dates and timestamps are integers."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype())
    return np.dtype(np.int32 if any(test(kind) for test in _TEMPORAL_WIDTH_32) else np.int64)


def stored_values(column: Column) -> NDArray[Any]:
    """A fixed-width column's stored values without a copy; anything where it is null. Not for booleans."""
    dtype = numpy_type(column.type)
    buffer = column.buffers()[1]
    if buffer is None:
        return np.zeros(len(column), dtype)
    start, length = column.offset * dtype.itemsize, len(column)
    stored: NDArray[Any] = np.frombuffer(memoryview(buffer), dtype, count=length, offset=start)
    return stored


def operand(datum: Datum) -> NDArray[Any] | np.generic[Any]:
    """A datum for numpy: an array, or one value (0 where it is null)."""
    if isinstance(datum, pa.Array):
        return stored_values(datum)
    return cast("np.generic[Any]", stored_values(as_column(datum, 1))[0])


def boolean_values(column: Column) -> NDArray[np.bool_]:
    """A boolean column's values; false where it is null."""
    rows = len(column)
    flags = _unpack_bits(column.buffers()[1], column.offset, rows)
    if column.null_count:
        flags &= _unpack_bits(column.buffers()[0], column.offset, rows)
    return flags


def true_positions(mask: Column) -> NDArray[np.int64]:
    """Positions of the true values of a boolean column, ascending."""
    rows = len(mask)
    if mask.null_count or mask.offset:
        return np.flatnonzero(boolean_values(mask)).astype(np.int64, copy=False)
    bits = mask.buffers()[1]
    return np.zeros(0, np.int64) if bits is None else native.set_bits(bits, rows)


def _unpack_bits(bits: pa.Buffer | None, start: int, count: int) -> NDArray[np.bool_]:
    """Bits from `start` on as booleans."""
    if bits is None:
        return np.zeros(count, np.bool_)
    first = start // 8
    size = (start + count + 7) // 8 - first
    stored = np.frombuffer(memoryview(bits), np.uint8, size, first)
    flags = np.unpackbits(stored, count=start % 8 + count, bitorder="little")
    return flags[start % 8 :].view(np.bool_)


def from_values(values: NDArray[Any], kind: pa.DataType, validity: Column | None = None) -> Column:
    """A column of stored values; null where `validity` (booleans without nulls) is false."""
    stored = np.ascontiguousarray(values, dtype=numpy_type(kind))
    return from_buffer(_pa.py_buffer(stored), len(stored), kind, validity)


def from_buffer(buffer: pa.Buffer, rows: int, kind: pa.DataType, validity: Column | None) -> Column:
    """A fixed-width column over a buffer; null where `validity` (booleans without nulls) is false."""
    bitmap = None
    if validity is not None:
        if validity.offset:
            validity = cast(Column, _pa.concat_arrays([validity]))
        bitmap = validity.buffers()[1]
    return cast(Column, _pa.Array.from_buffers(kind, rows, [bitmap, buffer]))


def make_array(values: Sequence[Any], kind: pa.DataType) -> Column:
    """A column of Python values.

    Raises:
        pa.ArrowInvalid: a value does not fit.
    """
    column: Column = _pa.array(values, kind)
    return column


def boolean_column(values: NDArray[Any]) -> Column:
    """A boolean column of numpy booleans."""
    return booleans(values)


def booleans(values: NDArray[Any], validity: Column | None = None) -> Column:
    """A boolean column of numpy booleans; null where `validity` (booleans without nulls) is false."""
    bits = np.packbits(np.asarray(values, np.bool_), bitorder="little")
    return from_buffer(_pa.py_buffer(bits.data), len(values), _pa.bool_(), validity)


def format_constant(datum: Constant) -> str:
    """A constant as error messages show it."""
    if not datum.is_valid:
        return "NULL"
    if pa.types.is_large_string(datum.type) or pa.types.is_large_binary(datum.type):
        return repr(datum.as_py())
    return str(convert(datum, pa.string()).as_py())
