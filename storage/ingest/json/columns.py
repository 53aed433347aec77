"""Columns of JSON values that Arrow's parser was not given, or not trusted with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.json.blocks import JsonBlock
from bamquery.storage.ingest.json.values import WrittenFloat, as_text, kind_of, read_values

HUGE: Final = pa.decimal128(38, 0)
_SMALLEST, _LARGEST, _LARGEST_UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_MOST_DIGITS: Final = 38


def natural_type(kind: DataType) -> DataType:
    """What values are to be parsed as that become a declared type; text where what is written decides."""
    if pa.types.is_uint64(kind) or kind == HUGE:
        return HUGE
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(_MOST_DIGITS, kind.scale)
    return kind if pa.types.is_boolean(kind) else pa.large_string()


def infer_columns(block: JsonBlock, path: Path) -> tuple[int, dict[str, DataType]]:
    """How many rows a block has, and its members with their types.

    Raises:
        IngestError: something is no object, or a member has values of several types; names the place.
    """
    types: dict[str, DataType] = {}
    rows = 0
    for place, row in read_values(block, path):
        rows += 1
        for name, value in (row or {}).items():
            if name not in types and not _is_encodable(name):
                raise IngestError(f"{place}: the name of a member has half a surrogate pair", path)
            before = types.get(name, pa.null())
            type_ = common_type(before, _type_of(value))
            if type_ is None:
                raise IngestError(conflict(place, name, kind_of(value), before), path)
            types[name] = type_
    return rows, types


def conflict(place: str, name: str, found: str, before: DataType) -> str:
    """What to say of a member with values of several types."""
    return (
        f'{place}: member "{name}" is {found}, and {type_words(before)} before: '
        f"columns={{'{name}': 'VARCHAR', …}} takes any"
    )


def common_type(one: DataType, other: DataType) -> DataType | None:
    """What holds the values of both types, None if there is none."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if _is_number(one) and _is_number(other):
        return pa.float64() if pa.float64() in (one, other) else HUGE
    for is_kind in (pa.types.is_struct, pa.types.is_list):
        if is_kind(one) and is_kind(other):
            return one  # neither can be stored, and both can be left out
    return None


@dataclass(frozen=True, slots=True)
class Built:
    """Columns of a block."""

    rows: int
    arrays: tuple[pa.Array[Any], ...]
    misfits: frozenset[str]
    """Names of columns with values that do not fit their types; these are null here."""


def build_columns(block: JsonBlock, schema: pa.Schema, path: Path, declared: Mapping[str, DataType]) -> Built:
    """The block's values under `schema`; text takes whatever is written, in words that cast to `declared`.

    Raises:
        IngestError: something is no object, or a text cannot be encoded; names the place.
    """
    columns: list[list[Any]] = [[] for _ in schema]
    fields = [(field.name, field.type, declared.get(field.name)) for field in schema]
    misfits = set()
    rows = 0
    for place, row in read_values(block, path, frozenset(schema.names)):
        rows += 1
        for (name, type_, kind), values in zip(fields, columns, strict=True):
            given = None if row is None else row.get(name)
            try:
                value = None if given is None else _convert(given, type_, kind)
            except RecursionError as error:
                raise IngestError(f"{place}: is nested too deeply", path) from error
            if given is not None and value is None:
                misfits.add(name)
            if isinstance(value, str) and not _is_encodable(value):
                raise IngestError(f'{place}: member "{name}" has half a surrogate pair', path)
            values.append(value)
    arrays = tuple(pa.array(values, type_) for values, (_, type_, _) in zip(columns, fields, strict=True))
    return Built(rows, arrays, frozenset(misfits))


def _type_of(value: Any) -> DataType:
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        if _SMALLEST <= value <= _LARGEST:
            return pa.int64()
        # As DuckDB: only what 64 bits hold is an integer by itself.
        return HUGE if 0 < value <= _LARGEST_UNSIGNED else pa.float64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, str):
        return pa.large_string()
    return pa.list_(pa.null()) if isinstance(value, list) else pa.struct([])


def _is_number(type_: DataType) -> bool:
    return type_ in (pa.int64(), HUGE, pa.float64())


def type_words(type_: DataType) -> str:
    """What values of a type are, in words."""
    if _is_number(type_):
        return "a number"
    if pa.types.is_boolean(type_):
        return "a boolean"
    if pa.types.is_struct(type_):
        return "an object"
    return "an array" if pa.types.is_list(type_) else "a text"


def _convert(value: Any, type_: DataType, kind: DataType | None) -> Any:
    """A value for an array of the type, None if it is not such a value."""
    if pa.types.is_large_string(type_):
        return as_text(value) if kind is None or isinstance(value, str) else _castable(value, kind)
    if pa.types.is_boolean(type_):
        return value if isinstance(value, bool) else None
    if isinstance(value, (bool, str, list, dict)) or pa.types.is_null(type_):
        return None
    if pa.types.is_floating(type_):
        return _double(value)
    if pa.types.is_decimal(type_):
        return _decimal(value, type_)
    return value if isinstance(value, int) and _SMALLEST <= value <= _LARGEST else None


def _castable(value: Any, kind: DataType) -> str:
    """Text of a value that is none, so that it casts to `kind` as DuckDB converts the value."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if pa.types.is_boolean(kind) and is_number:
        return as_text(value != 0)
    if isinstance(value, bool) and (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    ):
        return str(int(value))
    if isinstance(value, WrittenFloat):
        if (pa.types.is_integer(kind) or kind == HUGE) and math.isfinite(value):
            return str(round(value))
        if pa.types.is_decimal(kind):
            return value.text
    return as_text(value)


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _decimal(value: float, type_: DataType) -> Decimal | None:
    """The number as it is written, None if the type has not enough digits for it."""
    assert isinstance(type_, pa.Decimal128Type)
    number = Decimal(value.text if isinstance(value, WrittenFloat) else value)
    if not number.is_finite():
        return None
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    whole = len(digits) + exponent
    fits = -exponent <= type_.scale and max(whole, 0) + type_.scale <= type_.precision
    return number if fits else None


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
