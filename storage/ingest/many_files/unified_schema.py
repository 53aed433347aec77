"""One schema for many files whose columns drifted: names by any case, widened types, missing columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_each
from bamquery.storage.format.storable_types import DataType
from bamquery.text.identifiers import fold_case

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
class ReaderSchema:
    """The columns of one reader, types normalised (null where it has no value), names unique in any case."""

    name: str
    schema: pa.Schema
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Unified:
    """What `unify` found."""

    schema: pa.Schema
    mapping: tuple[tuple[int | None, ...], ...]
    """For each reader, for each column of `schema`: its position in the reader, None where it is missing."""
    drift: tuple[str, ...]
    """How readers differ from `schema` in spelling, type or missing columns, one sentence each."""


def unify(readers: Sequence[ReaderSchema]) -> Unified:
    """The schema that holds every value of all readers; columns and spellings as they first appear.

    Raises:
        IngestError: no type holds both of two readers' values; names all such columns, and two readers each.
    """
    spelling: dict[str, str] = {}
    for reader in check_each(readers):
        for name in reader.schema.names:
            spelling.setdefault(fold_case(name), name)
    positions = [
        {fold_case(name): i for i, name in enumerate(reader.schema.names)} for reader in check_each(readers)
    ]
    fields = []
    drift: list[str] = []
    impossible: dict[str, str] = {}
    for folded, name in spelling.items():
        holders = [
            _Holder(reader.name, reader.schema.field(position[folded]), reader.is_text)
            for reader, position in check_each(zip(readers, positions, strict=True))
            if folded in position
        ]
        type_ = _column_type(holders)
        if isinstance(type_, _Conflict):
            impossible[name] = f'column "{name}" is {type_}'
            continue
        fields.append(pa.field(name, type_))
        for holder in check_each(holders):
            if holder.field.name != name:
                drift.append(f'{holder.reader}: column "{name}" is spelled "{holder.field.name}"')
            if holder.type != type_:
                drift.append(f'{holder.reader}: column "{name}" is {_difference(holder.type, type_)}')
        drift += [
            f'{reader.name}: column "{name}" is missing, read as null'
            for reader, position in check_each(zip(readers, positions, strict=True))
            if folded not in position
        ]
    if impossible:
        names = ", ".join(f'"{name}"' for name in impossible)
        raise IngestError(
            f"{'; '.join(impossible.values())}. No type holds both: load these files into two tables, or "
            f"leave out what differs with exclude=[{names}]"
        )
    mapping = tuple(tuple(position.get(folded) for folded in spelling) for position in check_each(positions))
    return Unified(pa.schema(fields), mapping, tuple(drift) if len(readers) > 1 else ())


@dataclass(frozen=True, slots=True)
class _Holder:
    """A reader that has the column in question."""

    reader: str
    field: pa.Field[Any]
    is_text: bool

    @property
    def type(self) -> DataType:
        type_: DataType = self.field.type
        return type_


@dataclass(frozen=True, slots=True)
class _Conflict:
    """Two holders whose values no type holds."""

    first: _Holder
    second: _Holder

    def __str__(self) -> str:
        first, second = type_name(self.first.type), type_name(self.second.type)
        if first == second:  # SQL has one name for instants of all zones, and for strings however encoded
            first, second = str(self.first.type), str(self.second.type)
        return f"{first} in {self.first.reader} but {second} in {self.second.reader}"


def _difference(own: DataType, union: DataType) -> str:
    if pa.types.is_null(own):
        return f"without values, read as {type_name(union)}"
    if type_name(own) == type_name(union):
        return f"{own}, read as {union}"
    return f"{type_name(own)}, read as {type_name(union)}"


def _column_type(holders: Sequence[_Holder]) -> DataType | _Conflict:
    """The union over all readers; text (CSV) gives way to what typed readers say, or is kept as strings."""
    typed = [holder for holder in holders if not holder.is_text]
    text = [holder for holder in holders if holder.is_text]
    typed_union = union_types(holder.type for holder in check_each(typed))
    if typed_union is None:
        return _conflict(itertools.combinations(typed, 2))
    text_union = union_types(holder.type for holder in check_each(text)) or pa.large_string()
    union = union_types((typed_union, text_union))
    if union is None:
        # Any text can be had as strings, if that is what the typed readers have.
        union = union_types((typed_union, pa.large_string()))
        if union is None:
            return _conflict(itertools.product(typed, text))
    if pa.types.is_null(union):
        # As DuckDB: a CSV column without values is VARCHAR, any other INTEGER.
        return pa.int32() if typed else pa.large_string()
    return union


def _conflict(pairs: Iterable[tuple[_Holder, _Holder]]) -> _Conflict:
    """The first pair that does not go together; there is one where all together do not."""
    return next(_Conflict(*pair) for pair in pairs if union_types((pair[0].type, pair[1].type)) is None)


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
