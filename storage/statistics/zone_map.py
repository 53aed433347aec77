"""Which vectors can hold a row that a filter wants: pruning by minimum, maximum and counts."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bamquery.storage.format.layout import VECTOR_ROWS, vector_count
from bamquery.storage.format.storable_types import is_counted
from bamquery.storage.statistics.collect import ColumnStatistics
from bamquery.storage.statistics.late_values import LateValues
from bamquery.storage.statistics.order_keys import unscaled_value
from bamquery.storage.statistics.predicate import OPPOSITES, RangePredicate

_FEW_VALUES: Final = 8
"""IN lists that are not longer are looked up value by value."""
_ASKED_FIRST: Final = 512
"""Vectors of a column that are asked for a long list's values before all are."""
_NEARLY_ALL: Final = 0.97
_MOST_VALUES: Final = 64
"""Longer IN lists are pruned by their smallest and largest value only."""
_WORD_DIGITS: Final = 18
"""Of decimals whose unscaled values all fit 64 bits."""
_KEPT: Final = 32
"""Predicates whose answers are kept: of one statement, which asks again for each chunk."""


class ZoneMap:
    """One row of statistics a vector and column, as `bamquery.storage.statistics.collect` made them."""

    def __init__(self, statistics: Callable[[str], Any], rows: int) -> None:
        """`statistics` gives a column's, an array of structs; it is asked once, when they are wanted."""
        self._statistics = statistics
        vectors = np.arange(vector_count(rows), dtype=np.int64)
        self._rows = np.minimum(rows - vectors * VECTOR_ROWS, VECTOR_ROWS)
        self._zones: dict[str, Zones] = {}
        self._answers: dict[tuple[int, bool], tuple[weakref.ref[RangePredicate], NDArray[np.bool_]]] = {}

    def surviving_vectors(self, predicates: Sequence[RangePredicate]) -> NDArray[np.int64]:
        """Ascending vectors in which rows may be for which all `predicates` are true.

        A vector is left out only if its statistics rule out every row of it. NaN is greater than every number
        and equal to itself, -0 equals 0, and comparisons with null are never true.
        """
        return self.possible(predicates).nonzero()[0]

    def possible(self, predicates: Sequence[RangePredicate]) -> NDArray[np.bool_]:
        """The same as a bit for each vector."""
        if not predicates:
            return np.ones(len(self._rows), np.bool_)
        first, *others = predicates
        alive = self._answer(first, certain=False).copy()
        for predicate in others:
            if not alive.any():
                break
            alive &= self._answer(predicate, certain=False)
        return alive

    def certain(self, predicates: Sequence[RangePredicate]) -> NDArray[np.bool_]:
        """A bit for each vector, whether all of its rows are known to fulfil all `predicates`."""
        if not predicates:
            return np.ones(len(self._rows), np.bool_)
        first, *others = predicates
        certain = self._answer(first, certain=True).copy()
        for predicate in others:
            certain &= self._answer(predicate, certain=True)
        return certain

    def _answer(self, predicate: RangePredicate, *, certain: bool) -> NDArray[np.bool_]:
        """Vectors in which a predicate may be true for some row, or is known to be for all; read-only."""
        key = id(predicate), certain
        known = self._answers.get(key)
        if known is not None and known[0]() is predicate:
            return known[1]
        found = self._certain(predicate) if certain else self.column(predicate.column).possible(predicate)
        found.setflags(write=False)
        kept = dict(list(self._answers.items())[1 - _KEPT :])  # another thread may be here, too
        # Not the predicate itself: a join's keys, which may be a million, do not outlive their query.
        kept[key] = weakref.ref(predicate), found
        self._answers = kept
        return found

    def _certain(self, predicate: RangePredicate) -> NDArray[np.bool_]:
        # Of lists no bounds tell that; a comparison with null is never true.
        if predicate.operator == "in" or not all(value.is_valid for value in predicate.values):
            return np.zeros(len(self._rows), np.bool_)
        zones = self.column(predicate.column)
        opposite = RangePredicate(predicate.column, OPPOSITES[predicate.operator], predicate.values)
        failing = zones.possible(opposite)
        if not predicate.or_null and predicate.operator != "is_null":
            failing = failing | (zones.nulls > 0)
        return ~failing

    def surviving_of(
        self, vectors: NDArray[np.int64], predicates: Sequence[RangePredicate]
    ) -> NDArray[np.int64]:
        """As `surviving_vectors`, of some ascending vectors only."""
        if not len(vectors):
            return vectors
        first, last = int(vectors[0]), int(vectors[-1])
        alive = np.ones(last + 1 - first, np.bool_)
        for predicate in predicates:
            alive &= self.column(predicate.column).slice(first, last + 1).possible(predicate)
        return vectors[alive[vectors - first]]

    def column_statistics(self, column: str) -> ColumnStatistics:
        """Statistics of the column over the whole fragment."""
        zones = self.column(column)
        minimum = pc.min(zones.minimum)
        maximum = pc.max(zones.maximum)
        bounded = not zones.unbounded.any()
        return ColumnStatistics(
            minimum=minimum if minimum.is_valid else None,
            maximum=maximum if maximum.is_valid and bounded else None,
            null_count=int(zones.nulls.sum()),
            nan_count=int(zones.nans.sum()),
        )

    def null_counts(self, column: str) -> NDArray[np.int64]:
        """Nulls of each vector."""
        return self.column(column).nulls

    def column(self, name: str) -> Zones:
        """The statistics of one column."""
        zones = self._zones.get(name)
        if zones is None:
            zones = self._zones[name] = _zones(self._statistics(name), self._rows)
        return zones


@dataclass(frozen=True)
class Zones:
    """The statistics of one column, ready to be compared: one of each a vector.

    Attributes:
        rows: of the vector.
        minimum: of values that are neither null nor NaN; null where there is none. An Arrow array.
        maximum: the same; null as well where there is no upper bound.
        nulls: how many.
        nans: how many.
        known: whether there is a value that is neither null nor NaN.
        unbounded: whether there is such a value, but no upper bound.
    """

    rows: NDArray[np.int64]
    minimum: Any
    maximum: Any
    nulls: NDArray[np.int64]
    nans: NDArray[np.int64]
    known: NDArray[np.bool_]
    unbounded: NDArray[np.bool_]

    @classmethod
    def concatenate(cls, parts: Sequence[Zones]) -> Zones:
        """Those of one column of several fragments, in order; at least one."""
        if len(parts) == 1:
            return parts[0]
        found = []
        for field in fields(cls):
            own = [getattr(part, field.name) for part in parts]
            found.append(np.concatenate(own) if isinstance(own[0], np.ndarray) else pa.concat_arrays(own))
        return cls(*found)

    def slice(self, begin: int, end: int) -> Zones:
        """Those of vectors from `begin` on, before `end`."""
        return Zones(*(getattr(self, field.name)[begin:end] for field in fields(self)))

    def every(self, step: int) -> Zones:
        """Those of the first vector, of that `step` vectors behind it, and so on."""
        return Zones(*(getattr(self, field.name)[::step] for field in fields(self)))

    def possible(self, predicate: RangePredicate) -> NDArray[np.bool_]:
        """Vectors in which the predicate may be true for some row."""
        found = self._possible(predicate)
        return found | (self.nulls > 0) if predicate.or_null else found

    def _possible(self, predicate: RangePredicate) -> NDArray[np.bool_]:
        match predicate.operator:
            case "is_null":
                return self.nulls > 0
            case "is_not_null":
                return self.nulls < self.rows
            case "in" if predicate.members is not None:
                return self._any_member(predicate)
            case "in" if len(predicate.values) > _FEW_VALUES and self._counts_as(predicate.values[0].type):
                return self._any_between(predicate.ordered_values)
            case "in":
                return self._any_of([self._plain_value(value) for value in predicate.values])
            case _:
                (value,) = predicate.values
                return self._compare(predicate.operator, self._plain_value(value))

    def _compare(self, operator: str, value: Any) -> NDArray[np.bool_]:
        nothing = np.zeros(len(self.rows), np.bool_)
        nans = self.nans > 0
        if not value.is_valid:
            return nothing
        if self._counts_as(value.type) or self._has_digits_as(value.type):
            return self._compare_counts(operator, value)
        if pa.types.is_floating(value.type) and np.isnan(value.as_py()):
            by_operator = {
                "=": nans,
                "!=": self.known,
                "<": self.known,
                "<=": self.known | nans,
                ">": nothing,
                ">=": nans,
            }
            return by_operator[operator]
        match operator:
            case "=":
                return _where_true(pc.less_equal(self.minimum, value)) & self._reaches(value)
            case "!=":
                only = _where_true(pc.equal(self.minimum, value)) & _where_true(pc.equal(self.maximum, value))
                return (self.known & ~only) | nans
            case "<":
                return _where_true(pc.less(self.minimum, value))
            case "<=":
                return _where_true(pc.less_equal(self.minimum, value))
            case ">":
                return _where_true(pc.greater(self.maximum, value)) | self.unbounded | nans
            case _:
                return self._reaches(value) | nans

    def _reaches(self, value: Any) -> NDArray[np.bool_]:
        return _where_true(pc.greater_equal(self.maximum, value)) | self.unbounded

    def _any_of(self, values: list[Any]) -> NDArray[np.bool_]:
        if len(values) > _MOST_VALUES:
            array = pa.array(values, self.minimum.type)
            smallest, largest = pc.min(array), pc.max(array)
            any_nan = pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())
            inside = self._reaches(smallest) & _where_true(pc.less_equal(self.minimum, largest))
            return inside | (self.nans > 0) if any_nan else inside
        possible = np.zeros(len(self.rows), np.bool_)
        for value in values:
            possible |= self._compare("=", value)
        return possible

    def _any_member(self, predicate: RangePredicate) -> NDArray[np.bool_]:
        if isinstance(predicate.members, LateValues):  # their bounds are all that is at hand
            least, greatest = predicate.members.bounds
            return self.known & (self._lows <= greatest) & (self._highs >= least)
        if not len(predicate.members):
            return np.zeros(len(self.rows), np.bool_)
        if self._counts_as(predicate.members.type):
            return self._any_between(predicate.ordered_values)
        smallest, largest = (
            self._plain_value(bound) for bound in (pc.min(predicate.members), pc.max(predicate.members))
        )
        return self._reaches(smallest) & _where_true(pc.less_equal(self.minimum, largest))

    def _counts_as(self, kind: pa.DataType) -> bool:
        return bool(kind == self.minimum.type and is_counted(kind))

    def _has_digits_as(self, kind: pa.DataType) -> bool:
        """Whether bounds and values of that type are 64-bit counts of the same decimal unit."""
        own = self.minimum.type
        return (
            isinstance(own, pa.Decimal128Type)
            and isinstance(kind, pa.Decimal128Type)
            and own.scale == kind.scale
            and max(own.precision, kind.precision) <= _WORD_DIGITS
        )

    def _any_between(self, members: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether one of the values may be within a vector's bounds, for types that are counts of something.

        Of many vectors some are asked first: where nearly all of these may have one, all may. To look for
        each takes longer than the few vectors that could be left out: a join's keys are millions, mostly
        all over the table.
        """
        step = len(self.rows) // _ASKED_FIRST
        if step > 1 and self._have_between(members, step).mean() > _NEARLY_ALL:
            return self.known.copy()
        return self._have_between(members, 1)

    def _have_between(self, members: NDArray[Any], step: int) -> NDArray[np.bool_]:
        """Whether one of the values is within the bounds of each vector, or of each `step`-th one."""
        low, high, known = self._lows[::step], self._highs[::step], self.known[::step]
        following = np.searchsorted(members, low)
        found = known & (following < len(members))
        found[found] = members[following[found]] <= high[found]
        return found

    @cached_property
    def counted_bounds(self) -> tuple[int, int] | None:
        """Of all vectors together, for types that are counts of something; None for others, or no value."""
        if not is_counted(self.minimum.type) or not self.known.any():
            return None
        return int(self._lows[self.known].min()), int(self._highs[self.known].max())

    @cached_property
    def _lows(self) -> NDArray[Any]:
        """Minima of a type that counts something, a decimal's unit perhaps; anything where there is none."""
        return _counts(self.minimum)

    @cached_property
    def _highs(self) -> NDArray[Any]:
        return _counts(self.maximum)

    def _compare_counts(self, operator: str, value: Any) -> NDArray[np.bool_]:
        """As `_compare`, for types that count something: these have upper bounds and no NaN."""
        if pa.types.is_decimal(value.type):
            number = unscaled_value(value.as_py())
        else:
            number = value.as_py() if pa.types.is_integer(value.type) else value.value
        found: NDArray[np.bool_]
        match operator:
            case "=":
                found = (self._lows <= number) & (self._highs >= number)
            case "!=":
                found = (self._lows != number) | (self._highs != number)
            case "<":
                found = self._lows < number
            case "<=":
                found = self._lows <= number
            case ">":
                found = self._highs > number
            case _:
                found = self._highs >= number
        found &= self.known
        return found

    @staticmethod
    def _plain_value(value: Any) -> Any:
        return value.value if isinstance(value, pa.DictionaryScalar) else value


def _zones(statistics: Any, rows: NDArray[np.int64]) -> Zones:
    minimum, maximum = statistics.field("min"), statistics.field("max")
    nulls = statistics.field("null_count").to_numpy().astype(np.int64)
    has_nans = statistics.type.get_field_index("nan_count") != -1
    nans = statistics.field("nan_count").to_numpy().astype(np.int64) if has_nans else np.zeros_like(nulls)
    known = _valid(minimum)
    return Zones(
        rows=rows,
        minimum=minimum,
        maximum=maximum,
        nulls=nulls,
        nans=nans,
        known=known,
        unbounded=known & ~_valid(maximum),
    )


def _valid(values: Any) -> NDArray[np.bool_]:
    if not values.null_count:  # of most columns
        return np.ones(len(values), np.bool_)
    found: NDArray[np.bool_] = values.is_valid().to_numpy(zero_copy_only=False)
    return found


def _counts(values: Any) -> NDArray[Any]:
    """The values as integers of their width; nulls as anything."""
    kind = values.type
    if pa.types.is_decimal(kind):
        words = np.frombuffer(values.buffers()[1], np.int64, 2 * len(values), 16 * values.offset)
        return words[::2].copy()
    if not pa.types.is_integer(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    found: NDArray[Any] = (values.fill_null(0) if values.null_count else values).to_numpy()
    return found


def _where_true(comparison: Any) -> NDArray[np.bool_]:
    known = comparison.fill_null(False) if comparison.null_count else comparison
    result: NDArray[np.bool_] = known.to_numpy(zero_copy_only=False)
    return result
