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
from bamquery.storage.encodings.encoding import StoredColumn
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


@dataclass(slots=True, eq=False)
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


@dataclass(slots=True, eq=False)
class _Way:
    """One way to read rows of a piece, whatever column.

    Attributes:
        vectors: that it reads.
        density: of its rows; None: all of the vectors'.
        units: what costs go by: vectors or, of single blocks, rows.
        factor: what costs are corrected by; None: by what each column spends most on.
    """

    strategy: Strategy
    vectors: int
    density: int | None
    units: int
    factor: float | None

    @classmethod
    def of_rows(cls, asked: AskedRead, strategy: Strategy, corrections: Corrections) -> _Way:
        """That way to the rows that are asked for."""
        rows = asked.rows
        factor = None if asked.opened.model.overlaps else corrections.factor(strategy, None)
        if rows is None:
            vectors = max(len(asked.piece.vectors), 1)
            return cls(strategy, vectors, None, vectors, factor)
        vectors = max(len(asked.piece.vectors if strategy is Strategy.STREAM else vectors_of(rows)), 1)
        density = round(_STEPS * math.log2(max(len(rows), 1) / vectors))
        units = len(rows) if strategy is Strategy.FETCH_BLOCKS else vectors
        return cls(strategy, vectors, density, units, factor)


class KnownCosts:
    """What reads of a scan's columns cost: counted once, about the same wherever rows are as dense."""

    def __init__(self) -> None:
        self._fragments: dict[str, FragmentCosts] = {}
        self._blocks: dict[tuple[type[StoredColumn], _Key], _Counted] = {}
        """Reads of single blocks: how rows lie is a matter of the scan's conditions, in whatever fragment."""

    def of_fragment(self, fragment: Fragment, opened: OpenFragment[Any]) -> FragmentCosts:
        """What is known of it."""
        found = self._fragments.get(fragment.id)
        if found is None:
            found = self._fragments[fragment.id] = costs_of(fragment, opened)
        return found

    def pick_each(
        self,
        asked: AskedRead,
        columns: Sequence[str],
        strategies: Sequence[Strategy],
        corrections: Corrections,
        *,
        explores: bool = False,
    ) -> list[Choice]:
        """The best of ways to read each column by itself; see `plan_reads`."""
        ways = [_Way.of_rows(asked, strategy, corrections) for strategy in strategies]
        whole = [way for way in ways if way.strategy is not Strategy.FETCH_BLOCKS]
        blocks = None
        if asked.rows is not None:
            blocks = next((way for way in ways if way.strategy is Strategy.FETCH_BLOCKS), None)
        if blocks is None and len(whole) == 1:
            return [self._choice(asked, column, whole[0], corrections) for column in columns]
        return [self._pick(asked, column, whole, blocks, corrections, explores) for column in columns]

    def _pick(  # noqa: PLR0917 - a column, and ways to read it
        self,
        asked: AskedRead,
        column: str,
        ways: Sequence[_Way],
        single: _Way | None,
        corrections: Corrections,
        explores: bool,
    ) -> Choice:
        whole = [self._choice(asked, column, way, corrections) for way in ways]
        best = min(whole, key=_price) if whole else None
        if single is None:
            assert best is not None, "blocks are of rows"
            return best
        model = asked.opened.model
        if best is not None:
            rate = model.processor.decode.get(SINGLE_ROWS.format(best.demand.form), math.inf)
            factor = corrections.factor(Strategy.FETCH_BLOCKS, None)
            if factor * single.units / rate > best.cost_seconds:
                return best
        blocks = self._choice(asked, column, single, corrections)
        if best is None:
            return blocks
        unchecked = blocks.demand.bytes / model.processor.checksum if asked.opened.shape.verifies else 0.0
        dear = VERIFIED_FIRST if asked.opened.shape.verifies else 1.0
        if (blocks.cost_seconds + unchecked) / dear < _price(best):
            best = blocks
        return (corrections.choose_untried(best, [*whole, blocks]) or best) if explores else best

    def _choice(self, asked: AskedRead, column: str, way: _Way, corrections: Corrections) -> Choice:
        fragment, opened, strategy = asked.piece.fragment, asked.opened, way.strategy
        key = column, strategy, way.density, asked.decodes
        if strategy is Strategy.FETCH_BLOCKS:
            kind = type(fragment.column(column))
            known = self._blocks.get((kind, key))
            if known is None:
                known = self._blocks[kind, key] = self._count(asked, column, way)
        else:
            costs = self.of_fragment(fragment, opened)
            known = costs.whole.get(key)
            if known is None:
                known = costs.whole[key] = self._count(asked, column, way)
        base, counted = known
        predicted, demand = base.predicted, base.demand
        if way.units != counted:
            predicted = _scaled(predicted, way.units / counted)
            demand = demand.with_bytes(demand.bytes * way.units // counted)
        if way.factor is None:
            cost = corrections.apply(strategy, predicted)
            seconds = opened.model.seconds((cost,))
        else:
            cost = _scaled_all(predicted, way.factor)
            seconds = sum(cost)
        return Choice(strategy, demand, predicted, cost, seconds, base.host_seconds)

    @staticmethod
    def _count(asked: AskedRead, column: str, way: _Way) -> _Counted:
        stored = asked.piece.fragment.column(column)
        wanted = _NO_ROWS if asked.rows is None else asked.rows
        demands = stored_demands(
            stored, wanted, asked.piece.vectors, asked.opened.shape, (way.strategy,), decodes=asked.decodes
        )
        (choice,) = plan_reads([demands], asked.opened.model)
        return choice, way.units


def _price(choice: Choice) -> float:
    dear = 1 / _PICKED if choice.strategy is Strategy.FETCH_VECTORS else 1.0
    return dear * choice.cost_seconds


def _scaled_all(cost: Cost, factor: float) -> Cost:
    if factor == 1:
        return cost
    latency, link, commands, work, carried = cost
    return factor * latency, factor * link, factor * commands, factor * work, factor * carried


def _scaled(cost: Cost, factor: float) -> Cost:
    latency, link, commands, work, carried = cost
    return latency, factor * link, factor * commands, factor * work, factor * carried
