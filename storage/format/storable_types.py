"""Which Arrow types a table can hold, and what other types become on their way in.

One spelling for each kind of value keeps schemas of many files comparable: strings have 64-bit offsets,
dictionary indexes are signed, every column may hold nulls, and field and schema metadata are left behind.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.errors import StorageError
from bamquery.text.identifiers import fold_case

DataType: TypeAlias = pa.DataType
"""Short for annotations; Arrow's types are generic in the stubs only."""

_STORED: Final = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.time64("us"),
        pa.time64("ns"),
        pa.large_string(),
        pa.large_binary(),
    }
)
POLARS_OBJECT: Final = pa.opaque(pa.binary(8), "Object", "polars")
"""What stands for columns of Python objects in frames of polars, of which there are only pointers."""

_DECIMAL_DIGITS: Final = 38
_INDEX_TYPES: Final = frozenset({pa.int8(), pa.int16(), pa.int32()})


def is_stored_type(type_: DataType) -> bool:
    """True for the types of columns in fragments."""
    if pa.types.is_dictionary(type_):
        return (
            type_.index_type in _INDEX_TYPES
            and not pa.types.is_dictionary(type_.value_type)
            and is_stored_type(type_.value_type)
        )
    if pa.types.is_decimal128(type_):
        return bool(type_.scale >= 0)
    return type_ in _STORED or pa.types.is_timestamp(type_)


def normalize_type(type_: DataType, column: str) -> DataType:
    """The type under which values of `type_` are stored; null stays null (see `settle_nulls`).

    Raises:
        StorageError: no stored type holds such values; names the column and the way out.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return _normalize_extension(type_, column)
    if pa.types.is_null(type_) or (is_stored_type(type_) and not pa.types.is_dictionary(type_)):
        return type_
    if pa.types.is_dictionary(type_):
        value_type = normalize_type(type_.value_type, column)
        if pa.types.is_null(value_type) or pa.types.is_dictionary(value_type):
            return value_type
        # One width for all: the dictionaries of many batches together need more indexes than any of them.
        return _dictionary(value_type)
    if pa.types.is_run_end_encoded(type_):
        return normalize_type(type_.value_type, column)
    if pa.types.is_string(type_) or pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_binary(type_) or pa.types.is_binary_view(type_) or pa.types.is_fixed_size_binary(type_):
        return pa.large_binary()
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal(type_) and type_.precision - min(type_.scale, 0) <= _DECIMAL_DIGITS:
        # A negative scale becomes zeros before the point: few engines know any other decimals.
        return pa.decimal128(type_.precision - min(type_.scale, 0), max(type_.scale, 0))
    if pa.types.is_time32(type_):
        return pa.time64("us")
    if pa.types.is_date64(type_):
        return pa.date32()
    raise StorageError(f'column "{column}" has type {type_}, which tables cannot hold: {_way_out(type_)}')


def _normalize_extension(type_: Any, column: str) -> DataType:
    """Truth values and UUIDs are what they mean; other extensions what they are made of, as in DuckDB.

    Raises:
        StorageError: what it is made of says nothing, or cannot be stored.
    """
    if type_ == POLARS_OBJECT:
        raise StorageError(
            f'column "{column}" holds Python objects, of which polars gives nobody the values: cast it to a '
            "type of its own, or leave the column out (exclude it)"
        )
    if type_.extension_name == "pandas.period":
        raise StorageError(
            f'column "{column}" has periods of pandas, which tables cannot hold: make timestamps of them '
            "(.dt.to_timestamp()), or leave the column out (exclude it)"
        )
    if isinstance(type_, pa.Bool8Type):
        return pa.bool_()
    if isinstance(type_, pa.UuidType):
        return pa.large_string()
    return normalize_type(type_.storage_type, column)


def normalize_schema(schema: pa.Schema) -> pa.Schema:
    """The schema under which columns of `schema` are stored: types normalised, metadata dropped.

    Raises:
        StorageError: a column has a type that cannot be stored, no name, or a name that another column has
            (without regard to case).
    """
    seen: dict[str, str] = {}
    fields: list[pa.Field[Any]] = []
    for field in schema:
        if not field.name:
            raise StorageError(f"column {len(fields) + 1} has no name: give it one")
        other = seen.setdefault(fold_case(field.name), field.name)
        if other != field.name or len(seen) <= len(fields):
            raise StorageError(f'columns "{other}" and "{field.name}" have the same name: rename one of them')
        fields.append(pa.field(field.name, normalize_type(field.type, field.name)))
    return pa.schema(fields)


def settle_nulls(schema: pa.Schema) -> pa.Schema:
    """The schema with every column of type null, of which no value was ever seen, made int32."""
    return pa.schema([pa.field(f.name, pa.int32() if pa.types.is_null(f.type) else f.type) for f in schema])


def require_stored_schema(schema: pa.Schema) -> None:
    """Refuse a schema that `normalize_schema` and `settle_nulls` would change.

    Raises:
        StorageError: names the first column at fault.
    """
    for field in settle_nulls(normalize_schema(schema)):
        given = schema.field(field.name).type
        if not is_stored_type(given):
            raise StorageError(
                f'column "{field.name}" has type {given}, stored as {field.type}: cast it first'
            )


def is_string_like(type_: DataType) -> bool:
    """True for the types whose values have offsets."""
    return pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)


def value_bits(type_: DataType) -> int:
    """Bits of one value as stored: of the index for dictionaries, of the offset for strings."""
    if pa.types.is_dictionary(type_):
        return value_bits(type_.index_type)
    return 64 if is_string_like(type_) else int(type_.bit_width)


def value_kind(type_: DataType) -> str:
    """How values of a fixed-width type compare, as `bamquery._native.vector_statistics` calls it."""
    if pa.types.is_boolean(type_):
        return "bool"
    if pa.types.is_decimal128(type_):
        return "int128"
    if pa.types.is_integer(type_):
        return str(type_)
    if pa.types.is_floating(type_):
        return f"float{type_.bit_width}"
    return f"int{type_.bit_width}"


def is_packable(type_: DataType, *, has_dictionary: bool = False) -> bool:
    """Whether vectors of such columns can be packed: numbers of at most 64 bits, or indexes of a dictionary.

    Of decimals whether they fit 64 bits is a matter of their values.
    """
    if has_dictionary:
        return pa.types.is_dictionary(type_) or is_string_like(type_) or pa.types.is_floating(type_)
    return not is_string_like(type_) and not pa.types.is_dictionary(type_)


def stored_index(type_: Any, *, has_dictionary: bool) -> DataType:
    """The type of what a column's vectors hold: its own, or that of indexes of its dictionary."""
    if pa.types.is_dictionary(type_):
        index: DataType = type_.index_type
        return index
    return pa.int32() if has_dictionary else type_


def _dictionary(value_type: Any) -> DataType:
    type_: DataType = pa.dictionary(pa.int32(), value_type)
    return type_


def _way_out(type_: DataType) -> str:
    leave_out = "leave the column out (exclude it)"
    if pa.types.is_duration(type_):
        return f"cast it to int64, or {leave_out}"
    if pa.types.is_decimal(type_):
        return f"cast it to decimal128 (at most {_DECIMAL_DIGITS} digits) or double, or {leave_out}"
    if pa.types.is_struct(type_):
        return f"select its fields as columns of their own, or {leave_out}"
    return leave_out


def is_counted(kind: Any) -> bool:
    """Whether values are integers, or numbers of days, seconds and the like."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
    )
