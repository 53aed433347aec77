"""PEP 249's type objects, which type codes of `Cursor.description` equal, and its constructors."""

from __future__ import annotations

import datetime
from typing import Final

import pyarrow as pa


class TypeObject:
    """Equal to the type codes of one kind of type: `column[1] == NUMBER`.

    A type code is the type as SQL spells it, such as `DECIMAL(9,2)`.
    """

    __hash__ = None  # type: ignore[assignment]  # it equals many texts of different hashes

    def __init__(self, name: str, *types: str) -> None:
        """Of types by their names without parameters."""
        self._name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._types == other._types
        return isinstance(other, str) and other.partition("(")[0] in self._types

    def __repr__(self) -> str:
        return f"bamquery.dbapi.{self._name}"


STRING: Final = TypeObject("STRING", "VARCHAR")
BINARY: Final = TypeObject("BINARY", "BLOB")
NUMBER: Final = TypeObject(
    "NUMBER",
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("DECIMAL", "FLOAT", "DOUBLE"),
)
DATETIME: Final = TypeObject(
    "DATETIME",
    *("DATE", "TIME", "TIME_NS", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("TIMESTAMP WITH TIME ZONE", "INTERVAL"),
)
ROWID: Final = TypeObject("ROWID")
"""No type is one."""

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802 (PEP 249's name)
    """The local date at `ticks` seconds since 1970."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 (PEP 249's name)
    """The local time of day at `ticks` seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802 (PEP 249's name)
    """The local date and time at `ticks` seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks)


def precision_and_scale(kind: pa.DataType) -> tuple[int | None, int | None]:
    """Digits of a DECIMAL, all and behind the point; None of other types."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (None, None)
