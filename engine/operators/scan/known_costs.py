"""What reads of columns cost, known from reads before: of whole vectors kept with their fragment."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.open_fragments import OpenFragment
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import vectors_of
from bamquery.storage.read_planner.column_demands import ReaderShape, stored_demands
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.cost_model import SINGLE_ROWS, Cost, CostModel
from bamquery.storage.read_planner.planner import VERIFIED_FIRST, Choice, Strategy, plan_reads

_STEPS: Final = 2
"""Densities of rows between one and its double, that are told apart."""
_PICKED: Final = 0.99
"""To pick nearly all vectors is no better than a stream."""
_NO_ROWS: Final = np.empty(0, np.int64)

_Key: TypeAlias = "tuple[str, Strategy, int | None, bool]"
"""Of a read: column, way, density of rows (None: all), and whether values are wanted."""
_Counted: TypeAlias = "tuple[Choice, int]"
"""A choice as it was counted, and for how many vectors or, of single blocks, rows."""


class FragmentCosts:
    """What whole vectors of one fragment's columns cost one model and reader. Threads may find one twice.

    Attributes:
        whole: reads as they were counted once.
        seconds: of a vector, by column, density and the ways that were open.
    """

    def __init__(self, model: CostModel, shape: ReaderShape) -> None:
        self.model: Final = model
        self.shape: Final = shape
        self.whole: Final[dict[_Key, _Counted]] = {}
        self.seconds: Final[dict[tuple[str, int, tuple[Strategy, ...]], float]] = {}


_COSTS: Final[WeakKeyDictionary[Fragment, FragmentCosts]] = WeakKeyDictionary()
_lock = threading.Lock()


def costs_of(fragment: Fragment, opened: OpenFragment[Any]) -> FragmentCosts:
    """Those that statements before have found out; none yet where reads cost something else now."""
    with _lock:
        found = _COSTS.get(fragment)
        if found is None or found.shape != opened.shape or found.model != opened.model:
            found = _COSTS[fragment] = FragmentCosts(opened.model, opened.shape)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class AskedRead:
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


class KnownCosts:
    """What reads of a scan's columns cost: counted once, about the same wherever rows are as dense."""

    def __init__(self) -> None:
        self._fragments: dict[str, FragmentCosts] = {}
        self._blocks: dict[tuple[str, _Key], _Counted] = {}
        """Reads of single blocks, by fragment: how rows lie is a matter of the scan's conditions."""

    def of_fragment(self, fragment: Fragment, opened: OpenFragment[Any]) -> FragmentCosts:
        """What is known of it."""
        found = self._fragments.get(fragment.id)
        if found is None:
            found = self._fragments[fragment.id] = costs_of(fragment, opened)
        return found

    def pick(
        self,
        asked: AskedRead,
        column: str,
        strategies: Sequence[Strategy],
        corrections: Corrections,
        *,
        explores: bool = False,
    ) -> Choice:
        """The best of ways to read a column by itself; see `plan_reads`."""
        whole = [
            self._choice(asked, column, strategy, corrections)
            for strategy in strategies
            if strategy is not Strategy.FETCH_BLOCKS
        ]
        best = min(whole, key=_price) if whole else None
        if Strategy.FETCH_BLOCKS not in strategies or asked.rows is None:
            assert best is not None, "blocks are of rows"
            return best
        model = asked.opened.model
        if best is not None:
            rate = model.processor.decode.get(SINGLE_ROWS.format(best.demand.form), math.inf)
            factor = corrections.factor(Strategy.FETCH_BLOCKS, None)
            if factor * len(asked.rows) / rate > best.cost_seconds:
                return best
        blocks = self._choice(asked, column, Strategy.FETCH_BLOCKS, corrections)
        if best is None:
            return blocks
        unchecked = blocks.demand.bytes / model.processor.checksum if asked.opened.shape.verifies else 0.0
        dear = VERIFIED_FIRST if asked.opened.shape.verifies else 1.0
        if (blocks.cost_seconds + unchecked) / dear < _price(best):
            best = blocks
        return (corrections.choose_untried(best, [*whole, blocks]) or best) if explores else best

    def _choice(self, asked: AskedRead, column: str, strategy: Strategy, corrections: Corrections) -> Choice:
        piece, rows, opened = asked.piece, asked.rows, asked.opened
        picks = strategy is not Strategy.STREAM and rows is not None
        vectors = max(len(vectors_of(rows)) if picks and rows is not None else len(piece.vectors), 1)
        density = None if rows is None else round(_STEPS * math.log2(max(len(rows), 1) / vectors))
        key = column, strategy, density, asked.decodes
        of_blocks = strategy is Strategy.FETCH_BLOCKS and rows is not None
        if of_blocks:
            known = self._blocks.get((piece.fragment.id, key))
        else:
            known = self.of_fragment(piece.fragment, opened).whole.get(key)
        units = len(rows) if of_blocks and rows is not None else vectors
        if known is None:
            stored = piece.fragment.column(column)
            wanted = _NO_ROWS if rows is None else rows
            demands = stored_demands(
                stored, wanted, piece.vectors, opened.shape, (strategy,), decodes=asked.decodes
            )
            (choice,) = plan_reads([demands], opened.model)
            known = choice, units
            if of_blocks:
                self._blocks[piece.fragment.id, key] = known
            else:
                self.of_fragment(piece.fragment, opened).whole[key] = known
        base, counted = known
        predicted, demand = base.predicted, base.demand
        if units != counted:
            predicted = _scaled(predicted, units / counted)
            demand = demand.with_bytes(demand.bytes * units // counted)
        cost = corrections.apply(strategy, predicted)
        return Choice(strategy, demand, predicted, cost, opened.model.seconds((cost,)), base.host_seconds)


def _price(choice: Choice) -> float:
    dear = 1 / _PICKED if choice.strategy is Strategy.FETCH_VECTORS else 1.0
    return dear * choice.cost_seconds


def _scaled(cost: Cost, factor: float) -> Cost:
    latency, link, commands, work, carried = cost
    return latency, factor * link, factor * commands, factor * work, factor * carried
