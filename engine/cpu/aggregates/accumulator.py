"""The shape of an aggregate function on this device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.engine.cpu.frame_memo import memoize
from bamquery.engine.cpu.frames import concatenate_columns
from bamquery.engine.cpu.kernels import Column, boolean_values, compute, validity
from bamquery.engine.cpu.shared_copies import append_numbers
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.plan.expressions import AggregateCall
from bamquery.statement_context.cancellation import check_cancelled

Codes: TypeAlias = NDArray[Any]
"""Group number of each row (or of each state)."""
StateColumn: TypeAlias = "NDArray[Any] | pa.Array[Any]"
StateColumns: TypeAlias = tuple[StateColumn, ...]
"""An aggregate's state: a few arrays with one value a group."""


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What a program has gathered of an aggregate, a group each.

    Attributes:
        counts: rows that counted.
        values: words of extremes, and of sums of doubles.
        sums: low and high words of sums in 128 bits, one row a group.
    """

    counts: NDArray[np.int64]
    values: NDArray[np.int64]
    sums: NDArray[np.int64] | None


class Accumulator(ABC):
    """One aggregate call. `merge` is associative, in the order of the states.

    Attributes:
        exact: states are integers, and those of rows a to b are those of all rows to b less those to a.
        scans: for each state column the numpy function that joins two states'; empty where there is none.
        state: what its states are; accumulators of the same name have the same states of the same rows.
    """

    exact: bool = False
    scans: tuple[np.ufunc, ...] = ()
    state: str | None = None

    @abstractmethod
    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """States of the groups after these rows; `column` is the argument, decoded, nulls included."""

    def from_average(self, state: StateColumns) -> StateColumns | None:
        """The same states as `partial` gives, from those of `avg` over the same rows; None if not of such."""
        return None

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """What a program gathers for the call; None where it cannot."""
        return None

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """The same states as `partial` gives, from what a program has gathered (`program_kind`).

        `kind` is the argument's type.
        """
        raise AssertionError("a program gathers nothing for it")

    def align(self, states: Sequence[StateColumns]) -> Sequence[StateColumns]:
        """The same states in columns of one form: a state may have another where its values allow that."""
        return states

    def unfold(self, state: StateColumns) -> StateColumns:
        """The same state in the form that any state may have."""
        return state

    @abstractmethod
    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """States of the groups, each from those of its number."""

    @abstractmethod
    def final(self, state: StateColumns) -> Column:
        """The aggregate's value in each group.

        Raises:
            ExecutionError: it does not fit the type.
        """


def concatenate_state_columns(columns: Sequence[StateColumn]) -> StateColumn:
    """One column of several states."""
    if isinstance(columns[0], np.ndarray):
        return append_numbers([column for column in columns if isinstance(column, np.ndarray)])
    return concatenate_columns([column for column in columns if isinstance(column, pa.Array)])


def drop_nulls(column: Column, codes: Codes) -> tuple[Column, Codes]:
    """The rows whose argument is not null."""
    if not column.null_count:
        return column, codes
    return column.drop_null(), codes[boolean_values(compute("is_valid", column))]


def sum_by_group(codes: Codes, values: NDArray[Any], groups: int) -> NDArray[Any]:
    """Sum of each group's values, of 64 bits: integers wrap, doubles are added row by row."""
    check_cancelled()
    if groups == 1:
        return np.atleast_1d(values.sum(dtype=values.dtype))
    values, codes = np.ascontiguousarray(values), native_codes(codes)
    if values.dtype == np.float64:
        return native.sum_doubles(codes, values, groups)
    return native.sum_whole(codes, values, groups)


def native_codes(codes: Codes) -> Codes:
    """Codes of 32 or 64 bits without gaps."""
    wide = codes if codes.dtype in (np.int32, np.int64) else codes.astype(np.int64)
    return np.ascontiguousarray(wide)


def count_by_group(codes: Codes, groups: int) -> NDArray[np.int64]:
    """Rows of each group."""
    check_cancelled()
    if groups == 1:
        return np.array([len(codes)])
    return memoize(
        ("rows", id(codes), groups),
        codes,
        lambda: native.count_groups(native_codes(codes), len(codes), groups),
    )


def count_values(column: Column, codes: Codes, groups: int) -> NDArray[np.int64]:
    """Rows of each group whose argument is not null."""
    if not column.null_count:
        return count_by_group(codes, groups)
    check_cancelled()
    if groups == 1:
        return np.array([len(column) - column.null_count])
    return native.count_groups(native_codes(codes), len(codes), groups, *validity(column))


def groups_with_rows(codes: Codes, groups: int) -> NDArray[np.bool_]:
    """Whether a group has a row."""
    if groups == 1:
        return np.array([len(codes) > 0])
    seen: NDArray[np.bool_] = count_by_group(codes, groups) > 0
    return seen
