"""The column rowid of a table: which row of the table's version each one is, from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.operators.scan.chunks import Chunk, Piece
from bamquery.engine.sources.scan_predicates import Conjunct
from bamquery.engine.sources.scan_sources import NumberedTable
from bamquery.plan.nodes import ROW_NUMBER
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.statistics.predicate import RangePredicate

_LAST: Final = VECTOR_ROWS - 1


class RowNumbers:
    """The numbers of a table's rows; no file has them."""

    def __init__(self, table: NumberedTable) -> None:
        self._first = {
            id(fragment): first
            for fragment, first in zip(table.snapshot.fragments, table.first_rows, strict=True)
        }
        self.column = table.row_number
        """Its place in the source's schema."""

    def batch(self, pieces: Sequence[Piece], rows: Sequence[NDArray[np.int64] | None]) -> pa.RecordBatch:
        """The numbers of the rows of those ids, a piece each; where None, of all of a piece's vectors."""
        numbers = []
        for piece, ids in zip(pieces, rows, strict=True):
            found = piece.row_ids(np.arange(piece.rows, dtype=np.int64)) if ids is None else ids
            numbers.append(found + self._first[id(piece.fragment)])
        joined = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        return pa.record_batch([pa.array(joined, pa.int64())], [ROW_NUMBER])

    def prune(self, chunk: Chunk, ranges: Sequence[RangePredicate]) -> Chunk:
        """The chunk without vectors that hold no row whose number is in all of the ranges."""
        return Chunk(tuple(self._prune_piece(piece, ranges) for piece in chunk.pieces)) if ranges else chunk

    def _prune_piece(self, piece: Piece, ranges: Sequence[RangePredicate]) -> Piece:
        low = piece.vectors * VECTOR_ROWS + self._first[id(piece.fragment)]
        kept = np.ones(len(low), bool)
        for found in ranges:
            kept &= _possible(found, low, low + _LAST)
        return piece if kept.all() else replace(piece, vectors=piece.vectors[kept])


def split_ranges(column: int, conjuncts: Sequence[Conjunct]) -> tuple[list[RangePredicate], list[Conjunct]]:
    """The ranges of a column apart from the conditions."""
    ranges = [found for conjunct in conjuncts if conjunct.columns == (column,) for found in conjunct.ranges]
    return ranges, [replace(c, ranges=()) if c.columns == (column,) else c for c in conjuncts]


def _possible(found: RangePredicate, low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of runs of numbers whether the condition is true for some of each."""
    if found.operator in ("is_not_null", "!="):
        return np.ones(len(low), bool)
    if found.members is None and not any(value.is_valid for value in found.values):
        return np.zeros(len(low), bool)  # IS NULL, or a comparison with null
    values = found.ordered_values
    if not len(values):
        return np.zeros(len(low), bool)
    possible: NDArray[np.bool_]
    match found.operator:
        case "<":
            possible = low < values[0]
        case "<=":
            possible = low <= values[0]
        case ">":
            possible = high > values[0]
        case ">=":
            possible = high >= values[0]
        case _:
            possible = np.searchsorted(values, high, "right") > np.searchsorted(values, low, "left")
    return possible
