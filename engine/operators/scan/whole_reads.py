"""Whether whole vectors are what to read, told without counting the blocks that hold single rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.open_fragments import OpenFragment
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.column_demands import stored_demands
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.cost_model import SINGLE_ROWS, Cost
from bamquery.storage.read_planner.planner import Choice, Strategy, plan_reads

_STEPS: Final = 2
"""Densities of rows between one and its double, that are told apart."""
_PICKED: Final = 0.99
"""To pick nearly all vectors is no better than a stream."""
_NO_ROWS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class WholeRead:
    """Rows that are to be read.

    Attributes:
        opened: the piece's file.
        piece: which holds them.
        rows: one or more ids; None: all of the piece's vectors.
        decodes: whether values are wanted, and not only comparisons of codes.
    """

    opened: OpenFragment[Any]
    piece: Piece
    rows: NDArray[np.int64] | None
    decodes: bool


class WholeReads:
    """What whole vectors of a scan's columns cost: counted for one chunk, about the same for all others."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, Strategy, int | None, bool], tuple[Choice, int]] = {}
        """By fragment, column, way and density; and of how many vectors. Threads may find one twice."""

    def pick(
        self, asked: WholeRead, column: str, strategies: Sequence[Strategy], corrections: Corrections
    ) -> Choice | None:
        """The best of ways of which single blocks are none; None where these may cost less."""
        whole = [
            self._choice(asked, column, strategy, corrections)
            for strategy in strategies
            if strategy is not Strategy.FETCH_BLOCKS
        ]
        if not whole:
            return None
        best = min(whole, key=_price)
        if Strategy.FETCH_BLOCKS in strategies and asked.rows is not None:
            rates = asked.opened.model.processor.decode
            rate = rates.get(SINGLE_ROWS.format(best.demand.form), math.inf)
            factor = corrections.factor(Strategy.FETCH_BLOCKS, None)
            if factor * len(asked.rows) / rate <= best.cost_seconds:
                return None
        return best

    def _choice(self, asked: WholeRead, column: str, strategy: Strategy, corrections: Corrections) -> Choice:
        piece, rows, opened = asked.piece, asked.rows, asked.opened
        picks = strategy is not Strategy.STREAM and rows is not None
        vectors = max(len(vectors_of(rows)) if picks and rows is not None else len(piece.vectors), 1)
        density = None if rows is None else round(_STEPS * math.log2(max(len(rows), 1) / vectors))
        key = piece.fragment.id, column, strategy, density, asked.decodes
        known = self._known.get(key)
        if known is None:
            stored = piece.fragment.column(column)
            wanted = _NO_ROWS if rows is None else rows
            demands = stored_demands(
                stored, wanted, piece.vectors, opened.shape, (strategy,), decodes=asked.decodes
            )
            (choice,) = plan_reads([demands], opened.model)
            known = self._known[key] = choice, vectors
        base, counted = known
        predicted = _scaled(base.predicted, vectors / counted)
        cost = corrections.apply(strategy, predicted)
        return replace(base, predicted=predicted, cost=cost, cost_seconds=opened.model.seconds((cost,)))


def _price(choice: Choice) -> float:
    dear = 1 / _PICKED if choice.strategy is Strategy.FETCH_VECTORS else 1.0
    return dear * choice.cost_seconds


def _scaled(cost: Cost, factor: float) -> Cost:
    latency, link, commands, work, carried = cost
    return latency, factor * link, factor * commands, factor * work, factor * carried
