"""Random tables: few values that meet each other, many nulls, NaN and infinities, ties, empty tables.

Every table has `id`, which tells its rows apart, and some of the columns of `POOL`, in any order.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN, INFINITY = float("nan"), float("inf")
_INTEGERS = [0, 1, -1, 2, 3, -3, 7, 10, 100, -100]
_DOUBLES = [0.0, -0.0, 0.5, -1.5, 2.25, 100.0, NAN, INFINITY, -INFINITY]
_DAY = datetime.date(2024, 1, 1)
_NOON = datetime.datetime(2024, 1, 1, 12)
_SECONDS = [-43_201, -43_200, 0, 1, 59, 43_199, 43_200, 5_184_000]
_TEXTS = ["", "a", "A", "b", "ab", "aé", "b%", "x y", "12", "-7", "2.5", "Zürich_1", "日本", "2024-01-01"]
_TIMES = [datetime.time(0), datetime.time(12), datetime.time(1, 2, 3, 450_000), datetime.time(23, 59, 59)]

POOL: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "i": ("int", pa.int32(), _INTEGERS),
    "j": ("int", pa.int64(), _INTEGERS),
    "k": ("int", pa.int8(), _INTEGERS),
    "u": ("int", pa.uint16(), [0, 1, 2, 3, 200]),
    "d": ("flt", pa.float64(), [*_DOUBLES, 1e10]),
    "e": ("flt", pa.float64(), [0.0, 0.25, -0.5, 1.0, 2.0, 7.75]),
    "f": ("flt", pa.float32(), _DOUBLES),
    "m": ("dec", pa.decimal128(6, 2), [Decimal(x) for x in ("0.00", "1.25", "-2.50", "99.99", "2.00")]),
    "n": ("dec", pa.decimal128(12, 3), [Decimal(x) for x in ("0.000", "1.250", "-2.500", "7.001")]),
    "s": ("txt", pa.large_string(), _TEXTS),
    "g": ("txt", pa.dictionary(pa.int8(), pa.large_string()), ["red", "green", "blue", "a"]),
    "t": ("date", pa.date32(), [_DAY + datetime.timedelta(days) for days in (-2, -1, 0, 1, 30, 59, 60)]),
    "p": (
        "ts",
        pa.timestamp("us"),
        [_NOON + datetime.timedelta(seconds=s, microseconds=m) for s in _SECONDS for m in (0, 500_000)],
    ),
    "q": ("ts", pa.timestamp("s"), [_NOON + datetime.timedelta(seconds=seconds) for seconds in _SECONDS]),
    "c": ("time", pa.time64("us"), _TIMES),
    "b": ("bool", pa.bool_(), [True, False]),
}
OTHER_TYPES = {"i": [pa.int64(), pa.int16()], "j": [pa.int32(), pa.uint8()], "d": [pa.float32()]}
"""Columns that have another type in some tables, so that joins and set operations meet both."""


@dataclass(frozen=True)
class Table:
    """A table of both databases: what it holds, and the kind of each column by name."""

    name: str
    data: pa.Table
    kinds: dict[str, str]
    narrow: frozenset[str]
    """Columns of which sums and products may overflow."""


def random_table(name: str, rows: int, choose: random.Random) -> Table:
    """A table of so many rows."""
    names = choose.sample(list(POOL), choose.randint(7, 12))
    nulls = choose.choice([0.0, 0.2, 0.2, 0.5])
    columns, narrow = [], set()
    for column in names:
        _, kind, values = POOL[column]
        if column in OTHER_TYPES and choose.random() < 0.3:
            kind = choose.choice(OTHER_TYPES[column])
        if pa.types.is_unsigned_integer(kind) or kind in (pa.int8(), pa.int16()):
            narrow.add(column)
        if kind == pa.uint8():
            values = [abs(value) for value in values]
        few = choose.sample(values, choose.randint(1, len(values)))
        chosen = [None if choose.random() < nulls else choose.choice(few) for _ in range(rows)]
        if pa.types.is_dictionary(kind):
            columns.append(pa.array(chosen, kind.value_type).dictionary_encode().cast(kind))
        else:
            columns.append(pa.array(chosen, kind))
    order = list(range(rows))
    choose.shuffle(order)
    place = choose.randint(0, len(names))
    columns.insert(place, pa.array(order, pa.int32()))
    names.insert(place, "id")
    kinds = {column: "int" if column == "id" else POOL[column][0] for column in names}
    return Table(name, pa.table(columns, names=names), kinds, frozenset(narrow))


def decode_dictionaries(table: pa.Table) -> pa.Table:
    """The table without dictionaries, as DuckDB is given it: with one a column would be an ENUM there."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(
                place, field.name, table.column(place).combine_chunks().dictionary_decode()
            )
    return table


def random_tables(choose: random.Random) -> list[Table]:
    """The tables of a database; one database in twenty has one with several vectors' worth of rows."""
    sizes = [choose.choice([0, 1, 3, 8, 8, 12, 20, 20, 40]) for _ in range(3)]
    if choose.random() < 1 / 20:
        sizes[0] = 2500
    return [
        random_table(name, rows, choose) for name, rows in zip(("alpha", "beta", "delta"), sizes, strict=True)
    ]
