"""min, max, bool_and and bool_or. NaN is the greatest number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    Gathered,
    StateColumns,
    drop_nulls,
    groups_with_rows,
)
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    boolean_values,
    compute,
    from_values,
    numpy_type,
    stored_values,
    take,
)
from bamquery.engine.cpu.numeric.small_decimals import from_small
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.plan.expressions import AggregateCall


def extreme(kind: pa.DataType, *, greatest: bool) -> Accumulator:
    """Min or max of a type."""
    if pa.types.is_boolean(kind):
        return BooleanExtreme(greatest=greatest)
    if pa.types.is_decimal(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return RankedExtreme(greatest=greatest)
    return StoredExtreme(kind, greatest=greatest)


def extremes(codes: Codes, values: NDArray[Any], groups: int, *, greatest: bool) -> NDArray[Any]:
    """Least or greatest of each group's values; anything for a group without any."""
    function: Any
    if values.dtype.kind == "f":
        values = quiet_nans(values)
        # maximum propagates NaN, fmin avoids it: NaN comes out greatest both ways.
        function, start = (np.maximum, -np.inf) if greatest else (np.fmin, np.nan)
    else:
        limits = np.iinfo(values.dtype)
        function, start = (np.maximum, limits.min) if greatest else (np.minimum, limits.max)
    found = np.full(groups, start, values.dtype)
    with np.errstate(invalid="ignore"):  # some NaNs are of the signalling kind
        if groups == 1:
            found[0] = function.reduce(values, initial=found[0])
        else:
            function.at(found, codes, values)
    return found


def quiet_nans(values: NDArray[Any]) -> NDArray[Any]:
    """The same floats, each NaN of the quiet kind: beside others fmin loses numbers on some processors."""
    missing = np.isnan(values)
    return np.where(missing, values.dtype.type(np.nan), values) if missing.any() else values


class StoredExtreme(Accumulator):
    """Of types whose stored values are numbers: integers, floats, dates, times, timestamps."""

    def __init__(self, kind: pa.DataType, *, greatest: bool) -> None:
        self._kind = kind
        self._greatest = greatest
        least = np.fmin if pa.types.is_floating(kind) else np.minimum
        self.scans = (np.maximum if greatest else least, np.logical_or)

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The extreme, and whether there was a value."""
        column, codes = drop_nulls(column, codes)
        values = stored_values(column)
        assert values.dtype == numpy_type(self._kind)
        return self._extremes(values, codes, groups)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Words, or doubles."""
        if pa.types.is_floating(self._kind):
            return AggregateKind.GREATEST_DOUBLE if self._greatest else AggregateKind.LEAST_DOUBLE
        return AggregateKind.GREATEST if self._greatest else AggregateKind.LEAST

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """The extreme, and whether there was a value."""
        numbers = gathered.values.view(np.float64) if pa.types.is_floating(self._kind) else gathered.values
        return (numbers.astype(numpy_type(self._kind), copy=False), gathered.counts > 0)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The extremes' extreme."""
        values, seen = (np.asarray(column) for column in state)
        return self._extremes(values[seen], codes[seen], groups)

    def final(self, state: StateColumns) -> Column:
        """Null where there was no value."""
        values, seen = (np.asarray(column) for column in state)
        return from_values(values, self._kind, boolean_column(seen))

    def _extremes(self, values: NDArray[Any], codes: Codes, groups: int) -> StateColumns:
        return (extremes(codes, values, groups, greatest=self._greatest), groups_with_rows(codes, groups))


class BooleanExtreme(Accumulator):
    """Of booleans: false is less than true, so `bool_and` is min and `bool_or` is max."""

    def __init__(self, *, greatest: bool) -> None:
        self._greatest = greatest
        self.scans = (np.maximum if greatest else np.minimum, np.logical_or)

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The extreme as a number, and whether there was a value."""
        column, codes = drop_nulls(column, codes)
        return self._extremes(boolean_values(column).view(np.uint8), codes, groups)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The extremes' extreme."""
        values, seen = (np.asarray(column) for column in state)
        return self._extremes(values[seen], codes[seen], groups)

    def final(self, state: StateColumns) -> Column:
        """Null where there was no value."""
        values, seen = (np.asarray(column) for column in state)
        return compute(
            "if_else",
            boolean_column(seen),
            boolean_column(values == 1),
            pa.scalar(None, pa.bool_()),
        )

    def _extremes(self, values: NDArray[Any], codes: Codes, groups: int) -> StateColumns:
        return (extremes(codes, values, groups, greatest=self._greatest), groups_with_rows(codes, groups))


class RankedExtreme(Accumulator):
    """Of strings, bytes and decimals: by the rank of each distinct value."""

    def __init__(self, *, greatest: bool) -> None:
        self._greatest = greatest

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The extreme value, null where there was none."""
        column, codes = drop_nulls(column, codes)
        encoded = compute("dictionary_encode", column)
        assert isinstance(encoded, pa.DictionaryArray)
        order = compute("array_sort_indices", encoded.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[stored_values(order)] = np.arange(len(order))
        rank = extremes(codes, ranks[stored_values(encoded.indices)], groups, greatest=self._greatest)
        seen = groups_with_rows(codes, groups)
        positions = from_values(np.where(seen, rank, 0), pa.int64(), boolean_column(seen))
        return (take(encoded.dictionary, take(order, positions)),)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Words of decimals."""
        if not pa.types.is_decimal128(value_type(call.arguments[0].type)):
            return None
        return AggregateKind.GREATEST if self._greatest else AggregateKind.LEAST

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """The extreme value, null where there was none."""
        return (from_small(gathered.values, kind, boolean_column(gathered.counts > 0)),)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The extremes' extreme."""
        (values,) = state
        assert isinstance(values, pa.Array)
        return self.partial(values, codes, groups)

    def final(self, state: StateColumns) -> Column:
        """The extremes."""
        (values,) = state
        assert isinstance(values, pa.Array)
        return values
