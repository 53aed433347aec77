"""What zone maps tell of a table before anything is read: for the planner's guesses, not for answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.data_types.type_groups import value_type
from bamquery.engine.sources.scan_predicates import split_conjuncts
from bamquery.plan.expressions import Expression
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.statistics.predicate import RangePredicate
from bamquery.storage.statistics.zone_map import Zones

_MOST_VECTORS: Final = 4096
"""Looked at of a table, evenly over all fragments: guesses need no more."""
_MOST_FRAGMENTS: Final = 64
_MOST_SHARES: Final = 256
_FEW: Final = 4
_EQUAL: Final = 0.05
_OTHER: Final = 0.3
"""Shares of rows for conditions on values that are no numbers, of vectors that zone maps leave."""
_BOUNDS: Final = ("<", "<=", ">", ">=")


class TableStatistics:
    """A table version's; made of zone maps at first use, and kept."""

    def __init__(self, fragments: Sequence[Fragment], schema: pa.Schema) -> None:
        step = -(-len(fragments) // _MOST_FRAGMENTS) or 1
        self._fragments = fragments[::step]
        self._schema = schema
        self._columns: dict[str, _ColumnStatistics | None] = {}
        self._shares: dict[Expression, float | None] = {}
        self._spans: dict[int, float | None] = {}

    def share(self, predicate: Expression) -> float | None:
        """About which share of the rows fulfils it; None where zone maps say nothing of it.

        It is one condition on a column, or a conjunction of bounds of one column. The last answers are kept:
        who makes a plan asks several times.
        """
        if predicate in self._shares:
            return self._shares[predicate]
        if len(self._shares) >= _MOST_SHARES:
            self._shares = {}
        found = self._shares[predicate] = self._work_out_share(predicate)
        return found

    def _work_out_share(self, predicate: Expression) -> float | None:
        conjuncts = split_conjuncts([predicate], self._schema)
        ranges = [found for conjunct in conjuncts for found in conjunct.ranges]
        if not ranges or len(ranges) < len(conjuncts) or len({found.column for found in ranges}) > 1:
            return None
        column = self._column(ranges[0].column)
        if column is None:
            return None
        return column.share(ranges[0]) if len(ranges) == 1 else column.share_between(ranges)

    def span(self, column: int) -> float | None:
        """How many values there are between a column's bounds; None where there may be any number."""
        if column not in self._spans:
            found = self._column(self._schema.field(column).name)
            self._spans[column] = None if found is None else found.span()
        return self._spans[column]

    def _column(self, name: str) -> _ColumnStatistics | None:
        if name not in self._columns:
            self._columns[name] = self._read_column(name)
        return self._columns[name]

    def _read_column(self, name: str) -> _ColumnStatistics | None:
        known = [fragment for fragment in self._fragments if name in fragment.schema.names]
        if len(known) < len(self._fragments) or not known:
            return None
        total = sum(fragment.vector_count for fragment in known)
        step = -(-total // _MOST_VECTORS) or 1
        zones = [fragment.zone_map.column(name) for fragment in known]
        return _ColumnStatistics.from_zone_maps(zones, step, self._schema.field(name).type)


@dataclass(frozen=True)
class _ColumnStatistics:
    """Some vectors of one column.

    Attributes:
        lows, highs: bounds of vectors that have values, as numbers; None for values that are none.
        share_known: share of rows that are neither null nor NaN.
        is_whole: whether values are whole numbers, or numbers of days and the like.
        kind: their type.
    """

    zones: list[Zones]
    lows: NDArray[np.float64] | None
    highs: Any
    share_known: float
    share_null: float
    is_whole: bool
    kind: pa.DataType

    @staticmethod
    def from_zone_maps(zones: list[Zones], step: int, kind: pa.DataType) -> _ColumnStatistics:
        chosen = [
            Zones(
                rows=zone.rows[::step],
                minimum=zone.minimum[::step],
                maximum=zone.maximum[::step],
                nulls=zone.nulls[::step],
                nans=zone.nans[::step],
                known=zone.known[::step],
                unbounded=zone.unbounded[::step],
            )
            for zone in zones
        ]
        rows = max(int(sum(zone.rows.sum() for zone in chosen)), 1)
        nulls = int(sum(zone.nulls.sum() for zone in chosen))
        nans = int(sum(zone.nans.sum() for zone in chosen))
        lows = highs = None
        if _is_number(kind):
            known = np.concatenate([zone.known & ~zone.unbounded for zone in chosen])
            lows = np.concatenate([_numbers(zone.minimum) for zone in chosen])[known]
            highs = np.concatenate([_numbers(zone.maximum) for zone in chosen])[known]
        whole = not pa.types.is_floating(kind) and not pa.types.is_decimal(kind)
        return _ColumnStatistics(chosen, lows, highs, (rows - nulls - nans) / rows, nulls / rows, whole, kind)

    def span(self) -> float | None:
        """How many values there are between the bounds; None where there may be any number."""
        if self.lows is None or not len(self.lows) or not self.is_whole:
            return None
        return float(self.highs.max() - self.lows.min() + 1)

    def share(self, predicate: RangePredicate) -> float:
        """About which share of the rows fulfils it."""
        found = self._share(predicate)
        return min(found + self.share_null, 1.0) if predicate.or_null else found

    def share_between(self, bounds: Sequence[RangePredicate]) -> float | None:
        """About which share is within all of several bounds; None where that is not known."""
        if self.lows is None or not len(self.lows):
            return None
        below, above = np.ones(len(self.lows)), np.ones(len(self.lows))
        for bound in bounds:
            numbers = _numbers_of([value for value in bound.values if value.is_valid], self.kind)
            if bound.operator not in _BOUNDS or bound.or_null or not np.isfinite(numbers).all():
                return None
            if not len(numbers):
                return 0.0
            side = below if bound.operator in ("<", "<=") else above
            np.minimum(side, self._shares_by_vector(bound.operator, numbers), out=side)
        # Bounds leave out rows at one end of a vector's values or at the other.
        return self.share_known * float(np.mean(np.clip(below + above - 1.0, 0.0, 1.0)))

    def _share(self, predicate: RangePredicate) -> float:
        match predicate.operator:
            case "is_null":
                return self.share_null
            case "is_not_null":
                return 1.0 - self.share_null
        values = [value for value in predicate.values if value.is_valid]
        if not values:
            return 0.0
        if self.lows is None or not len(self.lows):
            alive = float(np.mean(np.concatenate([zone.possible(predicate) for zone in self.zones])))
            usual = _EQUAL if predicate.operator in ("=", "in") else _OTHER
            return alive * min(usual * len(values), 1.0)
        numbers = _numbers_of(values, values[0].type)
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            return 0.0 if predicate.operator in ("=", "in", ">", ">=") else 1.0
        return self.share_known * float(np.mean(self._shares_by_vector(predicate.operator, numbers)))

    def _shares_by_vector(self, operator: str, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each vector's values, if they were spread evenly between its bounds."""
        lows, highs = self.lows, self.highs
        assert lows is not None
        with np.errstate(invalid="ignore"):  # of a vector of nothing but infinities
            width = highs - lows + (1.0 if self.is_whole else 0.0)
        if operator in ("=", "!=", "in"):
            # Of numbers that are not whole, nobody knows how many there are.
            each = 1.0 / np.clip(width, 1.0, None) if self.is_whole else np.full(len(lows), 1e-3)
            ordered = np.sort(numbers)
            hits = np.searchsorted(ordered, highs, "right") - np.searchsorted(ordered, lows, "left")
            equal: NDArray[np.float64] = np.minimum(hits * each, 1.0)
            return 1.0 - equal if operator == "!=" else equal
        (number,) = numbers
        with np.errstate(divide="ignore", invalid="ignore"):
            below = (number - lows + (1.0 if self.is_whole and operator in ("<=", ">") else 0.0)) / width
        flat = np.where(lows <= number, 1.0, 0.0)
        share: NDArray[np.float64] = np.clip(np.where(width > 0, below, flat), 0.0, 1.0)
        return share if operator in ("<", "<=") else 1.0 - share


def _is_number(kind: pa.DataType) -> bool:
    """Whether values are numbers, or counts of days, seconds and the like."""
    plain = value_type(kind)
    return bool(
        plain == kind
        and (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_date(kind)
            or pa.types.is_time(kind)
            or pa.types.is_timestamp(kind)
        )
    )


def _numbers_of(values: Sequence[Any], kind: pa.DataType) -> NDArray[np.float64]:
    """As `_numbers`, of a few values, of which Arrow would take long to make an array and a copy of it."""
    if len(values) > _FEW or any(value.type != kind for value in values):
        return _numbers(pa.array(values, kind))
    is_count = pa.types.is_temporal(kind)
    return np.array([value.value if is_count else float(value.as_py()) for value in values], np.float64)


def _numbers(values: Any) -> NDArray[np.float64]:
    kind = values.type
    if pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    plain = pc.cast(values, pa.float64(), safe=False).fill_null(0.0)
    found: NDArray[np.float64] = plain.to_numpy(zero_copy_only=False)
    return found
