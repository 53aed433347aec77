"""Whether two answers are one: types, rows, and their order where one was asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bamquery.data_types.names import type_name
from tests.values import plain

_RELATIVE, _ABSOLUTE = 1e-9, 1e-9


def difference(ours: pa.Table, theirs: pa.Table, ordered: Sequence[int]) -> str:
    """What tells them apart, "" if nothing does.

    `ordered` are the places of columns that rows are in the order of; rows that these do not tell apart may
    come in any order. Floats are equal if they are so within 1e-9.
    """
    kinds = [pa.int32() if pa.types.is_null(field.type) else field.type for field in theirs.schema]
    mine, other = [type_name(field.type) for field in ours.schema], [type_name(kind) for kind in kinds]
    if mine != other:
        return f"types {mine}, DuckDB's {other}"
    if ours.num_rows != theirs.num_rows:
        return f"{ours.num_rows} rows, DuckDB's {theirs.num_rows}"
    our_rows, their_rows = _rows(ours), _rows(theirs)
    if our_rows == their_rows:
        return ""
    if ordered:
        keys = [[tuple(row[place] for place in ordered) for row in rows] for rows in (our_rows, their_rows)]
        if keys[0] != keys[1]:
            place = next(i for i, pair in enumerate(zip(*keys, strict=True)) if pair[0] != pair[1])
            return f"row {place} in order is {keys[0][place]}, DuckDB's {keys[1][place]}"
    if Counter(our_rows) == Counter(their_rows):
        return ""
    only_ours = list((Counter(our_rows) - Counter(their_rows)).elements())
    only_theirs = list((Counter(their_rows) - Counter(our_rows)).elements())
    # Floats near each other: rows that are alike but for them are neighbours in this order.
    only_ours.sort(key=_key)
    only_theirs.sort(key=_key)
    for one, two in zip(only_ours, only_theirs, strict=True):
        if not all(_nearly_equal(a, b) for a, b in zip(one, two, strict=True)):
            return f"{one}, DuckDB's {two}"
    return ""


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    if not table.num_columns:
        return [()] * table.num_rows
    return list(
        zip(*([_canonical(value) for value in plain(column)] for column in table.columns), strict=True)
    )


def _canonical(value: Any) -> Any:
    """Equal values alike: one NaN, one zero, and what `typeof` says of HUGEINT (docs/sql.md)."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return "HUGEINT" if value == "DECIMAL(38,0)" else value


def _key(row: tuple[Any, ...]) -> tuple[list[str], list[float], list[float]]:
    exact = [str(value) for value in row if not isinstance(value, float)]
    floats = [value for value in row if isinstance(value, float)]
    return exact, [round(value, 6) + 0.0 for value in floats], floats


def _nearly_equal(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return one == two or math.isclose(one, two, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(one == two)
