"""The shape of an aggregate function on this device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.aggregation import Aggregation
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.aggregates.reductions import Reduction, reduce_by_codes
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.plan.expressions import AggregateCall

StateColumns: TypeAlias = tuple[plc.Column, ...]
"""An aggregate's state: a few columns with one value a group."""

DOUBLE: Final[Any] = pa.float64()


class Accumulator(ABC):
    """One aggregate call. `merge` is associative, in the order of the states.

    Attributes:
        exact: states are integers, null or 0 where there is no value, and those of rows a to b are those of
            all rows to b less those to a.
        scans: for each state column of a row the libcudf aggregation that joins two states', where
            there is a value; empty where there is none.
    """

    exact: bool = False
    scans: tuple[Aggregation, ...] = ()

    @abstractmethod
    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """States of the groups after these rows; `rows` are the arguments, nulls included.

        A call without arguments has one column of nulls; sort keys of the call come last.
        """

    @abstractmethod
    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """States of the groups, each from those of its number."""

    @abstractmethod
    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The aggregate's value in each group.

        Raises:
            ExecutionError: it does not fit the type.
        """


@dataclass(frozen=True, slots=True)
class GatheredWords:
    """What programs gathered for an aggregate, int64 columns with a value a group, never null.

    Attributes:
        count: rows that counted.
        value: the value, where there is one; of a sum of whole numbers the sum of their low halves.
        high: of such a sum that of the high halves, each 2**32.
    """

    count: plc.Column
    value: plc.Column | None
    high: plc.Column | None

    def column(self, kernels: Kernels, words: plc.Column | None) -> plc.Column:
        """The words, null where no row counted."""
        assert words is not None
        none = kernels.test(BinaryOperator.EQUAL, self.count, kernels.number(0))
        return kernels.null_where(none, words, pa.int64())


class ReductionAggregate(Accumulator):
    """An aggregate whose states are reductions of each group's values, done together with those of others."""

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """What a program gathers for the call; None where it cannot."""
        return None

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """The same states as `partial` gives, from what a program has gathered (`program_kind`).

        `kind` is the argument's type.
        """
        raise AssertionError("a program gathers nothing for it")

    @abstractmethod
    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """What a state is made of; `rows` as for `partial`."""

    @abstractmethod
    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """What one state of several is made of."""

    def state(self, kernels: Kernels, reduced: Sequence[plc.Column], *, of_rows: bool) -> StateColumns:
        """The state, from what rows, or else states, were reduced to."""
        return tuple(reduced)

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """The reductions of rows."""
        reduced = reduce_by_codes(kernels, codes, self.row_reductions(kernels, rows))
        return self.state(kernels, reduced, of_rows=True)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The reductions of states."""
        reduced = reduce_by_codes(kernels, codes, self.state_reductions(kernels, state))
        return self.state(kernels, reduced, of_rows=False)


def sum_counts(kernels: Kernels, counts: plc.Column, codes: GroupCodes) -> plc.Column:
    """Sums of int64 numbers, 0 for a group without any."""
    sums = codes.reduce(kernels, counts, plc.aggregation.sum(), INT64)
    return kernels.fill_null(sums, kernels.number(0))


def concatenate_state_columns(kernels: Kernels, states: Sequence[StateColumns]) -> StateColumns:
    """One aggregate's columns of several states, one after the other."""
    return tuple(kernels.concatenate(columns) for columns in zip(*states, strict=True))
