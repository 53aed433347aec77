"""How a filter is answered vector by vector: on codes, by sets of numbers, by programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.device import ConditionProgram, Device, Frame, has_programs
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.engine.operators.scan.open_fragments import FragmentReaders
from bamquery.engine.operators.scan.stored_filters.code_reads import CodeReads
from bamquery.engine.sources.scan_predicates import conjunction
from bamquery.plan.expressions import Call, ColumnRef, Expression, Members
from bamquery.storage.statistics.order_keys import KeyCondition

_KEPT: Final = 256
"""Steps whose parts are known, beyond which they are found anew: some steps live for a chunk only."""
_NOTHING: Final = KeyCondition((), nulls=False)


@dataclass(frozen=True, slots=True, eq=False)
class StepPart:
    """One condition of a step.

    Attributes:
        columns: names of the columns that it reads.
        conditions: on codes, a piece each; or
        numbers: a native set that the column's numbers must be among; or
        program: what computes it.
    """

    columns: tuple[str, ...]
    conditions: tuple[KeyCondition, ...] = ()
    numbers: Any = None
    program: ConditionProgram | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StepPlan:
    """A step, and parts that all must hold."""

    step: FilterStep
    parts: tuple[StepPart, ...]


class StepPlans(Generic[Frame]):
    """What the steps of one scan are to packed columns of mapped files. Thread-safe."""

    def __init__(
        self, device: Device[Frame], readers: FragmentReaders[Frame], codes: CodeReads[Frame]
    ) -> None:
        self._device = device if has_programs(device) else None
        self._readers = readers
        self._codes = codes
        self._lock = threading.Lock()
        self._parts: dict[int, tuple[FilterStep, tuple[FilterStep, ...]]] = {}
        self._plans: dict[tuple[int, str | None], tuple[StepPlan, tuple[Any, ...] | None]] = {}
        """Of chunks of one fragment, or of any (None) whose columns are numbers of those types."""
        self._failed: set[int] = set()
        """Numbers of steps whose programs could not compute some row."""

    def plan(
        self,
        step: FilterStep,
        pieces: Sequence[Piece],
        rows: Sequence[NDArray[np.int64] | None],
        name: Callable[[int], str | None],
    ) -> StepPlan | None:
        """How to take a step; None where it is to be taken otherwise.

        `rows` are those alive, a piece each (None: all); `name` a column's, None of one that is not read.
        """
        if step.can_fail:
            return None
        if len(pieces) > 1:
            return self._find(step, pieces, rows, name)
        names = [found for found in map(name, step.columns) if found is not None]
        if len(names) < len(step.columns):
            return None
        fragment = pieces[0].fragment
        types = self._types_of_numbers(pieces[0], names)
        key = id(step), fragment.id if types is None else None
        known = self._plans.get(key)
        if known is not None and known[0].step is step and known[1] == types:
            return known[0]
        found = self._find(step, pieces, rows, name)
        if found is not None and step.number not in self._failed:
            with self._lock:
                if len(self._plans) >= _KEPT:
                    self._plans.clear()
                self._plans[key] = found, types
        return found

    def _types_of_numbers(self, piece: Piece, names: Sequence[str]) -> tuple[Any, ...] | None:
        """Of columns that native calls read together, if none of them is codes of a dictionary."""
        columns = self._readers.get(piece.fragment).columns
        found = tuple([columns.number_type(name) for name in names])
        return None if None in found else found

    def _find(
        self,
        step: FilterStep,
        pieces: Sequence[Piece],
        rows: Sequence[NDArray[np.int64] | None],
        name: Callable[[int], str | None],
    ) -> StepPlan | None:
        names = [found for found in map(name, step.columns) if found is not None]
        asked = [piece for piece, ids in zip(pieces, rows, strict=True) if _has_rows(piece, ids)]
        if len(names) < len(step.columns) or not all(self._are_packed(piece, names) for piece in asked):
            return None
        whole = self._plan_codes(step, names, pieces, rows)
        if whole is not None:
            return StepPlan(step, (whole,))
        parts = []
        for part in self._split(step):
            found = None if part is step else self._plan_codes(part, names, pieces, rows)
            found = found or self._plan_set(part, names, asked)
            found = found or self._plan_program(part, names, asked)
            if found is None:
                return None
            parts.append(found)
        return StepPlan(step, tuple(parts))

    def give_up(self, plan: StepPlan, part: StepPart) -> None:
        """The part's program could not compute some row."""
        assert part.program is not None
        part.program.note_failure()
        with self._lock:
            self._failed.add(plan.step.number)
            self._plans.clear()

    def _are_packed(self, piece: Piece, names: Sequence[str]) -> bool:
        return self._readers.get(piece.fragment).columns.packed_columns(names) is not None

    def _plan_codes(
        self,
        step: FilterStep,
        names: Sequence[str],
        pieces: Sequence[Piece],
        rows: Sequence[NDArray[np.int64] | None],
    ) -> StepPart | None:
        conditions = []
        for piece, ids in zip(pieces, rows, strict=True):
            condition: KeyCondition | None = _NOTHING
            if _has_rows(piece, ids):
                opened = self._readers.get(piece.fragment)
                condition = self._codes.condition(step, names, piece, opened)
            if condition is None:
                return None
            conditions.append(condition)
        return StepPart(tuple(names), tuple(conditions))

    def _plan_set(self, step: FilterStep, names: Sequence[str], pieces: Sequence[Piece]) -> StepPart | None:
        members = _members(step.predicate)
        if self._device is None or members is None or not self._hold(pieces, names, [members.type]):
            return None
        numbers = self._device.number_set(members)
        return None if numbers is None else StepPart(tuple(names), numbers=numbers)

    def _plan_program(
        self, step: FilterStep, names: Sequence[str], pieces: Sequence[Piece]
    ) -> StepPart | None:
        if self._device is None or step.number in self._failed:
            return None
        program = self._device.condition_program(step.predicate)
        if program is None:
            return None
        inputs = tuple(names[column] for column in program.columns)
        return StepPart(inputs, program=program) if self._hold(pieces, inputs, program.types) else None

    def _hold(self, pieces: Sequence[Piece], names: Sequence[str], types: Sequence[Any]) -> bool:
        """Whether columns are numbers of those types in all pieces."""
        for piece in pieces:
            columns = self._readers.get(piece.fragment).columns
            found = columns.packed_columns(names)
            if found is None or not all(map(columns.holds_numbers, names)):
                return False
            if any(one.place.type != kind for one, kind in zip(found, types, strict=True)):
                return False
        return True

    def _split(self, step: FilterStep) -> tuple[FilterStep, ...]:
        """A step as several, the cheap ones first, where it looks for numbers among many."""
        with self._lock:
            known = self._parts.get(id(step))
        if known is not None and known[0] is step:
            return known[1]
        every = _conjuncts(step.predicate)
        sets = [one for one in every if _members(one) is not None]
        others = [one for one in every if _members(one) is None]
        split = [conjunction(others), *sets] if others else sets
        parts: tuple[FilterStep, ...] = (step,)
        if sets and len(split) > 1:
            parts = tuple(replace(step, predicate=one) for one in split)
        with self._lock:
            if len(self._parts) >= _KEPT:
                self._parts.clear()
            self._parts[id(step)] = step, parts
        return parts


def _conjuncts(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Call) and predicate.function == "and":
        return [one for argument in predicate.arguments for one in _conjuncts(argument)]
    return [predicate]


def _members(predicate: Expression) -> Members | None:
    """What a column is looked for among, if that is the whole condition."""
    match predicate:
        case Call(function="in", arguments=(ColumnRef(), Members() as members)):
            return members
    return None


def _has_rows(piece: Piece, ids: NDArray[np.int64] | None) -> bool:
    return bool(piece.rows if ids is None else len(ids))
