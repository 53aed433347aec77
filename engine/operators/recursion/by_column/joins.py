"""Joins of a step's rows with others, by equal keys, as functions of numpy's arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.recursion.by_column.key_index import KeyIndex, Matches, Places
from bamquery.engine.operators.recursion.by_column.values import (
    Column,
    ColumnFunction,
    Columns,
    keep,
    numpy_type,
    present,
    spread,
    true_rows,
)
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError
from bamquery.plan.nodes import JoinKind

Reserve: TypeAlias = Callable[[int], None]
"""Is told that there will be so many rows; raises `LeftToDeviceError` where they are too many."""

KINDS: Final = ("inner", "left", "semi", "anti", "single")
"""Kinds of joins for rows that change with others."""
KINDS_FIXED_LEFT: Final = ("inner", "right")
"""Kinds for others, which are the same in each step, with rows that change."""


@dataclass(frozen=True, slots=True)
class ColumnJoin:
    """A join of rows that change, which are probed, with others, the build side.

    Attributes:
        kind: of the plan.
        probe_keys, build_keys: of each side's rows, of the types `key_kinds`.
        nulls_equal: of which keys null equals null.
        residual: of pairs; None: keys are all.
        build_kinds: types of the build side's columns.
        fixed_left: whether these come first in a pair.
    """

    kind: JoinKind
    probe_keys: Sequence[ColumnFunction]
    build_keys: Sequence[ColumnFunction]
    key_kinds: Sequence[pa.DataType]
    nulls_equal: Sequence[bool]
    residual: ColumnFunction | None
    build_kinds: Sequence[pa.DataType]
    fixed_left: bool

    @property
    def keeps_unmatched(self) -> bool:
        """Whether a probed row without a partner is in a pair with nulls."""
        return self.kind in ("left", "right", "single")


class BuildSide:
    """The rows that a join's rows are looked up among, in the order of their keys."""

    def __init__(self, join: ColumnJoin, columns: Columns, rows: int) -> None:
        """`columns`: of so many rows.

        Raises:
            LeftToDeviceError: keys cannot be computed, or have too many values.
        """
        self._join = join
        if not rows:
            columns = [Column(np.zeros(0, numpy_type(kind)), None) for kind in join.build_kinds]
        keys = [spread(key(columns), rows) for key in join.build_keys]
        self._index = KeyIndex(keys, join.key_kinds, join.nulls_equal, rows)
        order = self._index.order
        if order is not None:
            columns = [keep(column, order) for column in columns]
        if join.keeps_unmatched:
            columns = [_with_null_at_the_end(column) for column in columns]
        self._columns = columns

    @property
    def nbytes(self) -> int:
        """Memory held, about."""
        valid = (column.valid for column in self._columns)
        return (
            self._index.nbytes
            + sum(int(column.values.nbytes) for column in self._columns)
            + sum(each.nbytes for each in valid if each is not None)
        )

    def join(self, columns: Columns, rows: int, reserve: Reserve) -> tuple[Columns, int]:
        """The join with so many rows, at least one.

        Raises:
            LeftToDeviceError: a condition cannot be computed, or there are too many pairs.
        """
        join = self._join
        keys = [spread(key(columns), rows) for key in join.probe_keys]
        if join.kind in ("semi", "anti"):
            return self._rows_with_partner(columns, keys, rows, reserve)
        unmatched = join.keeps_unmatched and join.residual is None
        matches = self._index.find(keys, rows, reserve, unmatched=unmatched)
        if join.residual is not None:
            matches = self._filter(join.residual, columns, matches, rows)
            if join.keeps_unmatched:
                matches = _with_unmatched(matches, rows)
        if join.kind == "single" and _has_repeated(matches.probed):
            raise LeftToDeviceError
        return self._pairs(columns, matches), len(matches.found)

    def _rows_with_partner(
        self, columns: Columns, keys: Columns, rows: int, reserve: Reserve
    ) -> tuple[Columns, int]:
        join = self._join
        if join.residual is None:
            has_partner = self._index.has_match(keys, rows)
        else:
            matches = self._index.find(keys, rows, reserve, unmatched=False)
            matches = self._filter(join.residual, columns, matches, rows)
            has_partner = _marked(matches.probed, rows)
        places = (has_partner if join.kind == "semi" else ~has_partner).nonzero()[0]
        if len(places) == rows:
            return columns, rows
        return [keep(column, places) for column in columns], len(places)

    def _filter(self, residual: ColumnFunction, columns: Columns, matches: Matches, rows: int) -> Matches:
        """The pairs for which it is true."""
        probed = np.arange(rows) if matches.probed is None else matches.probed
        if not len(probed):
            return Matches(probed, matches.found)
        true = true_rows(spread(residual(self._pairs(columns, matches)), len(probed))).nonzero()[0]
        return Matches(probed[true], matches.found[true])

    def _pairs(self, columns: Columns, matches: Matches) -> Columns:
        probed, found = matches
        own = columns if probed is None else [keep(column, probed) for column in columns]
        others = [keep(column, found) for column in self._columns]
        return [*others, *own] if self._join.fixed_left else [*own, *others]


def _with_null_at_the_end(column: Column) -> Column:
    """The column, and a null in the place that -1 means."""
    values = column.values
    last = values[-1:] if len(values) else np.zeros(1, values.dtype)  # within the bounds
    valid = np.append(present(column), False)
    return Column(np.concatenate([values, last]), valid, column.low, column.high)


def _with_unmatched(matches: Matches, rows: int) -> Matches:
    """The pairs, and one for each row that is in none."""
    assert matches.probed is not None
    missing = (~_marked(matches.probed, rows)).nonzero()[0]
    found = np.concatenate([matches.found, np.full(len(missing), -1)])
    return Matches(np.concatenate([matches.probed, missing]), found)


def _has_repeated(probed: Places | None) -> bool:
    """Whether a row is in several pairs."""
    if probed is None:
        return False
    ordered = np.sort(probed)
    return bool((ordered[1:] == ordered[:-1]).any())


def _marked(probed: Places | None, rows: int) -> NDArray[np.bool_]:
    """Which rows are in a pair."""
    found = np.zeros(rows, np.bool_)
    found[slice(None) if probed is None else probed] = True
    return found
