"""One schema for many files whose columns drifted: names by any case, widened types, missing columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.naming import fold
from bamquery.storage.types import DataType

_DIGITS: Final = {
    pa.int8(): 3,
    pa.uint8(): 3,
    pa.int16(): 5,
    pa.uint16(): 5,
    pa.int32(): 10,
    pa.uint32(): 10,
    pa.int64(): 19,
    pa.uint64(): 20,
}
_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED: Final = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_UNITS: Final = ("s", "ms", "us", "ns")
_MAX_PRECISION: Final = 38


@dataclass(frozen=True, slots=True)
class PartSchema:
    """The columns of one part, types normalised (null where it has no value), names unique in any case."""

    name: str
    schema: pa.Schema
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Unified:
    """What `unify` found."""

    schema: pa.Schema
    mapping: tuple[tuple[int | None, ...], ...]
    """For each part, for each column of `schema`: its position in the part, None where it is missing."""
    drift: tuple[str, ...]
    """How parts differ from `schema` in spelling, type or missing columns, one sentence each."""


def unify(parts: Sequence[PartSchema]) -> Unified:
    """The schema that holds every value of all parts; columns and spellings as they first appear.

    Raises:
        IngestError: no type holds both of two parts' values; names the column and both parts.
    """
    spelling: dict[str, str] = {}
    for part in parts:
        for name in part.schema.names:
            spelling.setdefault(fold(name), name)
    positions = [{fold(name): i for i, name in enumerate(part.schema.names)} for part in parts]
    fields = []
    drift: list[str] = []
    for folded, name in spelling.items():
        holders = [
            (part, part.schema.field(position[folded]))
            for part, position in zip(parts, positions, strict=True)
            if folded in position
        ]
        type_ = _column_type(name, [(part, field.type) for part, field in holders])
        fields.append(pa.field(name, type_))
        for part, field in holders:
            if field.name != name:
                drift.append(f'{part.name}: column "{name}" is spelled "{field.name}"')
            if field.type != type_:
                values = "without values" if pa.types.is_null(field.type) else str(field.type)
                drift.append(f'{part.name}: column "{name}" is {values}, read as {type_}')
        drift += [
            f'{part.name}: column "{name}" is missing, read as null'
            for part, position in zip(parts, positions, strict=True)
            if folded not in position
        ]
    mapping = tuple(tuple(position.get(folded) for folded in spelling) for position in positions)
    return Unified(pa.schema(fields), mapping, tuple(drift) if len(parts) > 1 else ())


def _column_type(column: str, holders: Sequence[tuple[PartSchema, DataType]]) -> DataType:
    """The union over all parts; text (CSV) gives way to what typed parts say, or is kept as strings."""
    typed = [(part, type_) for part, type_ in holders if not part.is_text]
    text = [(part, type_) for part, type_ in holders if part.is_text]
    typed_union = union_types(type_ for _, type_ in typed)
    if typed_union is None:
        raise _impossible(column, itertools.combinations(typed, 2))
    text_union = union_types(type_ for _, type_ in text) or pa.large_string()
    union = union_types((typed_union, text_union))
    if union is None:
        # Any text can be had as strings, if that is what the typed parts have.
        union = union_types((typed_union, pa.large_string()))
        if union is None:
            raise _impossible(column, itertools.product(text, typed))
    if pa.types.is_null(union):
        # As DuckDB: a CSV column without values is VARCHAR, any other INTEGER.
        return pa.int32() if typed else pa.large_string()
    return union


def _impossible(
    column: str, pairs: Iterable[tuple[tuple[PartSchema, DataType], tuple[PartSchema, DataType]]]
) -> IngestError:
    """The error that names the first pair that does not go together; there is one if all do not."""
    (first, first_type), (second, second_type) = next(
        pair for pair in pairs if union_types((pair[0][1], pair[1][1])) is None
    )
    return IngestError(
        f'column "{column}" is {first_type} in {first.name} but {second_type} in {second.name}, and no type '
        f'holds both: load these files into two tables, or leave the column out with exclude=["{column}"]'
    )


def union_types(types: Iterable[DataType]) -> DataType | None:
    """The narrowest stored type that holds all values of all `types`, or None; null for no type at all.

    It depends on the set of types only, not on their order. Integers and decimals go to double exactly or
    not at all, and timestamps to a finer unit only where they stay in range: `convert` looks at each value.
    """
    distinct = {type_ for type_ in types if not pa.types.is_null(type_)}
    if len(distinct) > 1:
        # Dictionaries of the same values were normalised to the same type: these hold different things.
        distinct = {t.value_type if pa.types.is_dictionary(t) else t for t in distinct}
    if not distinct:
        return pa.null()
    if len(distinct) == 1:
        return distinct.pop()
    for rule in (_numbers, _dates_and_timestamps, _times):
        union = rule(distinct)
        if union is not None:
            return union
    return None


def _numbers(types: set[DataType]) -> DataType | None:
    integers = {t for t in types if pa.types.is_integer(t)}
    decimals = {t for t in types if pa.types.is_decimal(t)}
    floats = {t for t in types if pa.types.is_floating(t)}
    if len(integers) + len(decimals) + len(floats) < len(types):
        return None
    if floats:
        return pa.float64()
    signed = max((t.bit_width for t in integers if pa.types.is_signed_integer(t)), default=0)
    unsigned = max((t.bit_width for t in integers if pa.types.is_unsigned_integer(t)), default=0)
    if not decimals and not (signed and unsigned == 64):
        if not signed:
            return _UNSIGNED[unsigned]
        return _SIGNED[max(signed, 2 * unsigned)]
    scale = max((t.scale for t in decimals), default=0)
    whole = max([t.precision - t.scale for t in decimals] + [_DIGITS[t] for t in integers])
    return pa.decimal128(min(whole + scale, _MAX_PRECISION), scale)


def _dates_and_timestamps(types: set[DataType]) -> DataType | None:
    stamps = [t for t in types if pa.types.is_timestamp(t)]
    dates = [t for t in types if pa.types.is_date(t)]
    if not stamps or len(stamps) + len(dates) < len(types):
        return None
    zones = {t.tz for t in stamps}
    # A date has no zone in which to find its midnight, and a local time no place among instants.
    if (None in zones and len(zones) > 1) or (dates and zones != {None}):
        return None
    unit = max((t.unit for t in stamps), key=_UNITS.index)
    return pa.timestamp(unit, zones.pop() if len(zones) == 1 else "UTC")


def _times(types: set[DataType]) -> DataType | None:
    return pa.time64("ns") if all(pa.types.is_time(t) for t in types) else None
