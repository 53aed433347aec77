"""Selections whose rows lie in all the ways that tables and conditions make them lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint
from bamquery.storage.format.layout import VECTOR_ROWS

VECTORS = 512
ROWS = VECTORS * VECTOR_ROWS
BLOCK = 512
SELECTIVITIES = tuple(float(share) for share in np.geomspace(1e-5, 1.0, 26))
KINDS = ("random", "time", "clustered", "sorted", "expression", "join")
WIDTHS = (2, 4, 13, 25, 64)


@dataclass(frozen=True)
class Selected:
    """Ascending rows, and the vectors that zone maps leave."""

    rows: NDArray[np.int64]
    candidates: NDArray[np.int64]


@cache
def select(kind: str, share: float) -> Selected:
    """About that share of the rows; at least one."""
    random = np.random.default_rng(round(-1e3 * np.log(share)))
    count = max(round(share * ROWS), 1)
    everything = np.arange(VECTORS, dtype=np.int64)
    if kind == "sorted":
        first = int(random.integers(0, ROWS - count + 1))
        rows = np.arange(first, first + count, dtype=np.int64)
    elif kind == "join":  # orders that pass, of four lines each
        orders = random.choice(ROWS // 4, max(count // 4, 1), replace=False)
        rows = np.sort((orders[:, None] * 4 + np.arange(4)).reshape(-1)).astype(np.int64)
    else:
        rows = np.sort(_ranked(kind)[-count:])
    pruned = kind in {"random", "time", "clustered", "sorted"}
    return Selected(rows, np.unique(rows // VECTOR_ROWS) if pruned else everything)


@cache
def _ranked(kind: str) -> NDArray[np.int64]:
    return np.argsort(_values(kind, np.random.default_rng(len(kind))))


def _values(kind: str, random: np.random.Generator) -> NDArray[np.float64]:
    noise = random.standard_normal(ROWS)
    if kind == "random":
        return noise
    place = np.arange(ROWS) / ROWS
    if kind == "clustered":  # long trips side by side, some elsewhere
        return noise + np.where(random.random(ROWS) < 0.98, 40 * place, 0.0)
    days = np.sin(2 * np.pi * 40 * place)
    hours = random.integers(1, 128, ROWS // 32)
    return noise + 2.0 * days + np.repeat(random.standard_normal(len(hours)), hours)[:ROWS]


class ImitatedColumn:
    """A `StoredColumn` of any bits a value, end to end from a block on: what a packed column comes to."""

    def __init__(self, bits: float) -> None:
        self.bits = bits

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        return ColumnShape((BufferShape(self.bits),))

    def vectors_footprint(self, vectors: NDArray[np.int64], block_size: int) -> Footprint:
        size = self.bits * VECTOR_ROWS / 8
        return _blocks((vectors * size) // block_size, ((vectors + 1) * size - 1) // block_size)

    def rows_footprint(
        self, rows: NDArray[np.int64], vectors: NDArray[np.int64], block_size: int
    ) -> Footprint:
        found = (rows * self.bits / 8) // block_size
        return _blocks(found, found)


def _blocks(first: NDArray[np.float64], last: NDArray[np.float64]) -> Footprint:
    """Of ascending ranges of blocks, both ends included, that may share blocks."""
    if not len(first):
        return Footprint(0, 0)
    behind = np.concatenate([[-2.0], np.maximum.accumulate(last)[:-1]])
    new = np.maximum(last - np.maximum(first, behind + 1) + 1, 0)
    return Footprint(int(((first > behind + 1) & (new > 0)).sum()), int(new.sum()))
