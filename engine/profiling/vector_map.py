"""What a scan did with every vector of every column, recorded where the setting `profile_vectors` is on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.read_planner.planner import Strategy


class VectorState(IntEnum):
    """What became of a vector; of several reads of one, the highest counts."""

    NOT_REACHED = 0
    """The scan ended before it: nobody wanted more rows."""
    PRUNED = 1
    """Zone maps, or what joins and sorts had learned, ruled it out."""
    PASSED_OVER = 2
    """It might have matched, but none of its rows was alive when the column's turn came."""
    BLOCKS = 3
    """The blocks that hold surviving rows were fetched."""
    VECTOR = 4
    """It was fetched whole, for surviving rows."""
    STREAMED = 5
    """It was read with its neighbours, in large requests."""


STATE_OF_STRATEGY = {
    Strategy.STREAM: VectorState.STREAMED,
    Strategy.FETCH_VECTORS: VectorState.VECTOR,
    Strategy.FETCH_BLOCKS: VectorState.BLOCKS,
}


@dataclass(frozen=True, slots=True)
class FragmentVectors:
    """A fragment of the table: its id and how many vectors and rows it has."""

    id: str
    vectors: int
    rows: int


class VectorMap:
    """A byte for each vector of each column of one scan, fragments in row order; thread-safe.

    Attributes:
        fragments: of the table's version.
    """

    def __init__(self, fragments: Sequence[FragmentVectors], columns: Sequence[str]) -> None:
        self.fragments = tuple(fragments)
        self._firsts: dict[str, int] = {}
        count = 0
        for fragment in fragments:
            self._firsts[fragment.id] = count
            count += fragment.vectors
        self._states = {column: np.zeros(count, np.uint8) for column in columns}
        self._lock = threading.Lock()

    def reach(self, fragment: str, begin: int, end: int, left: NDArray[np.int64]) -> None:
        """The scan came to the fragment's vectors [begin, end), of which those `left` were not ruled out."""
        first = self._firsts[fragment]
        with self._lock:
            for states in self._states.values():
                reached = states[first + begin : first + end]
                np.maximum(reached, np.uint8(VectorState.PRUNED), out=reached)
                _raise_to(states, first + left, VectorState.PASSED_OVER)

    def read(self, column: str, fragment: str, vectors: NDArray[np.int64], strategy: Strategy) -> None:
        """Something of those vectors was read, in that way."""
        with self._lock:
            places = self._firsts[fragment] + vectors
            _raise_to(self._states[column], places, STATE_OF_STRATEGY[strategy])

    @property
    def columns(self) -> tuple[str, ...]:
        """In the order in which they were first read."""
        return tuple(self._states)

    def states(self, column: str) -> NDArray[np.uint8]:
        """A `VectorState` for each vector, those of the first fragment first; a copy."""
        with self._lock:
            return self._states[column].copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: runs of equal states, as (state, how many) in row order."""
        return {
            "fragments": [{"id": f.id, "vectors": f.vectors, "rows": f.rows} for f in self.fragments],
            "columns": {column: state_runs(self.states(column)) for column in self.columns},
        }


def state_runs(states: NDArray[np.uint8]) -> list[tuple[str, int]]:
    """Runs of equal states: the state's name in lower case, and how many vectors."""
    if not len(states):
        return []
    heads = np.concatenate([[0], np.flatnonzero(np.diff(states)) + 1])
    lengths = np.diff(heads, append=len(states))
    return [
        (VectorState(int(states[head])).name.lower(), int(length))
        for head, length in zip(heads, lengths, strict=True)
    ]


def _raise_to(states: NDArray[np.uint8], places: NDArray[np.int64], state: VectorState) -> None:
    states[places] = np.maximum(states[places], np.uint8(state))
