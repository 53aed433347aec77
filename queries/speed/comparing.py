"""Whether two answers are the same, as exactly as systems can agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

_CLOSE: Final = 1e-9


@dataclass(frozen=True)
class Comparison:
    """What has to be equal.

    Attributes:
        relative, absolute: how far numbers may be apart, by either of them.
        exact: names of columns, and numbers but floating-point ones: these are added up in other orders.
        any_order: rows are compared in an order of their own if they differ in that of the answers.
    """

    relative: float = _CLOSE
    absolute: float = _CLOSE
    exact: bool = True
    any_order: bool = False

    def looser(self, other: Comparison) -> Comparison:
        """Of answers of two systems."""
        return Comparison(
            max(self.relative, other.relative),
            max(self.absolute, other.absolute),
            exact=self.exact and other.exact,
            any_order=self.any_order or other.any_order,
        )


EXACT: Final = Comparison()
CLOSE: Final = Comparison(exact=False)
"""Numbers to nine digits, whatever type they have."""
ROUNDED: Final = Comparison(1e-6, 0.01, exact=False, any_order=True)
"""`pdsh` rounds to hundredths, as polars does with products of decimals, and does not order what is equal."""


def difference(answer: pa.Table, right: pa.Table, how: Comparison = EXACT) -> str:
    """What differs between two answers, row by row in their order; empty where nothing does."""
    if how.exact and _names(answer) != _names(right):
        return f"columns {answer.column_names}, not {right.column_names}"
    if answer.num_columns != right.num_columns:
        return f"{answer.num_columns} columns, not {right.num_columns}"
    if answer.num_rows != right.num_rows:
        return f"{answer.num_rows:,} rows, not {right.num_rows:,}"
    mine, others = _rows(answer), _rows(right)
    found = _first_difference(mine, others, right.column_names, how)
    if found and how.any_order:
        places = _keys_first(right)
        mine.sort(key=lambda row: _order(row, places))
        others.sort(key=lambda row: _order(row, places))
        return found if _first_difference(mine, others, right.column_names, how) else ""
    return found


def _names(table: pa.Table) -> list[str]:
    return [name.lower() for name in table.column_names]


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _first_difference(
    mine: list[tuple[Any, ...]], others: list[tuple[Any, ...]], names: list[str], how: Comparison
) -> str:
    for number, (row, wanted_row) in enumerate(zip(mine, others, strict=True)):
        for name, value, wanted in zip(names, row, wanted_row, strict=True):
            if not _same_value(value, wanted, how):
                return f"row {number + 1}, {name}: {value!r}, not {wanted!r}"
    return ""


def _same_value(value: object, wanted: object, how: Comparison) -> bool:
    inexact = isinstance(value, float) and isinstance(wanted, float)
    if inexact or (not how.exact and _is_number(value) and _is_number(wanted)):
        one, other = float(value), float(wanted)  # type: ignore[arg-type]  # both are numbers
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=how.relative, abs_tol=how.absolute)
    return value == wanted


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal)


def _keys_first(right: pa.Table) -> list[int]:
    """Columns in the order by which rows are put in one: such as are never rounded first."""
    types = right.schema.types
    rounded = [pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in types]
    return sorted(range(len(types)), key=lambda place: rounded[place])


def _order(row: tuple[Any, ...], places: list[int]) -> tuple[tuple[bool, Any], ...]:
    return tuple((row[place] is None, 0 if row[place] is None else row[place]) for place in places)
