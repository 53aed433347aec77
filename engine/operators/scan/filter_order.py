"""In which order a scan's conditions are checked: decided chunk by chunk from what was seen so far."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from bamquery.engine.sources.scan_predicates import Conjunct, conjunction, over_own_columns
from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.plan.rewriting import substitute
from bamquery.statement_context.cancellation import check_cancelled

_PRIOR_ROWS: Final = 1024.0
"""Rows that the first guess of a selectivity counts for."""
_WORTH: Final = 0.7
"""Share of the rows that an optional step may let through at most."""


@dataclass(frozen=True, slots=True, eq=False)
class FilterStep:
    """Conditions that read the same columns, checked together.

    Attributes:
        number: place among the scan's steps.
        columns: positions in the source's schema, ascending: the columns of `predicate`, in its order.
        predicate: over a frame of just those columns.
        conjuncts: what it is made of.
        can_fail: some value makes it an error, so it sees only rows that pass all conditions written before
            it and all that cannot fail.
    """

    number: int
    columns: tuple[int, ...]
    predicate: Expression
    conjuncts: tuple[Conjunct, ...]
    can_fail: bool
    optional: bool = False
    """The answer is the same without it: whether it is taken depends on what it was seen to save."""


def combine_steps(steps: Sequence[FilterStep], columns: Sequence[int], schema: pa.Schema) -> Expression:
    """All steps' conditions as one, over a frame of those columns of a schema; one step at least."""
    found = []
    for step in steps:
        fields = [schema.field(column) for column in step.columns]
        references = [
            ColumnRef(columns.index(column), field.name, field.type)
            for column, field in zip(step.columns, fields, strict=True)
        ]
        found.append(substitute(step.predicate, references))
    return found[0] if len(found) == 1 else Call("and", tuple(found), found[0].type)


def optional_steps(conjuncts: Sequence[Conjunct], first: int) -> list[FilterStep]:
    """Steps for conditions that need not be checked, numbered from `first` on."""
    return [
        replace(step, number=first + step.number, optional=True)
        for step in filter_steps([conjunct for conjunct in conjuncts if not conjunct.can_fail])
        if step.columns
    ]


def filter_steps(conjuncts: Sequence[Conjunct]) -> list[FilterStep]:
    """Group conditions by their columns; those that can fail stay alone, in the order written, at the end."""
    groups: dict[tuple[int, ...], list[Conjunct]] = {}
    for conjunct in conjuncts:
        check_cancelled()
        if not conjunct.can_fail:
            groups.setdefault(conjunct.columns, []).append(conjunct)
    ordered = list(groups.values()) + [[conjunct] for conjunct in conjuncts if conjunct.can_fail]
    return [
        FilterStep(
            number,
            group[0].columns,
            conjunction([over_own_columns(conjunct.expression) for conjunct in group]),
            tuple(group),
            group[0].can_fail,
        )
        for number, group in enumerate(ordered)
    ]


class AdaptiveFilterOrder:
    """Picks the next step by selectivity and cost; learns from every chunk. Thread-safe."""

    def __init__(
        self, scan_steps: Sequence[FilterStep], guesses: Sequence[float] | Callable[[], Sequence[float]]
    ) -> None:
        """`guesses` are the steps' selectivities before anything was seen, or give them at first use."""
        self._lock = threading.Lock()
        self._rows_in = [_PRIOR_ROWS] * len(scan_steps)
        self._guesses = guesses
        self._rows_out: list[float] | None = None

    def selectivity(self, step: FilterStep) -> float:
        """Share of rows expected to pass, of those that reach the step."""
        with self._lock:
            passed = self._rows_out or self._passed()
            return passed[step.number] / self._rows_in[step.number]

    def _passed(self) -> list[float]:
        if self._rows_out is None:
            guesses = self._guesses() if callable(self._guesses) else self._guesses
            self._rows_out = [_PRIOR_ROWS * guess for guess in guesses]
        return self._rows_out

    def is_worth(self, step: FilterStep) -> bool:
        """Whether it removes enough rows for what it costs, if it need not be taken."""
        return not step.optional or self.selectivity(step) < _WORTH

    def learn(self, step: FilterStep, rows_in: int, rows_out: int) -> None:
        """Note what a step let through."""
        with self._lock:
            self._rows_in[step.number] += rows_in
            self._passed()[step.number] += rows_out

    def choose_next(self, waiting: Sequence[FilterStep], cost: Callable[[FilterStep], float]) -> FilterStep:
        """The step among one or more that removes rows at the least cost.

        Cost over the share of rows removed: in that order a sequence of independent conditions costs least
        (Hellerstein and Stonebraker, "Predicate Migration", SIGMOD 1993).
        """
        certain = [step for step in waiting if not step.can_fail]
        if not certain:
            return waiting[0]
        if len(certain) == 1:
            return certain[0]
        return min(certain, key=lambda step: self._rank(step, cost(step)))

    def in_order(
        self, waiting: Sequence[FilterStep], cost: Callable[[FilterStep], float]
    ) -> list[FilterStep]:
        """The steps as `choose_next` would take them one by one, if none changed what the others cost."""
        certain = [step for step in waiting if not step.can_fail]
        if len(certain) > 1:
            ranks = {id(step): self._rank(step, cost(step)) for step in certain}
            certain.sort(key=lambda step: ranks[id(step)])
        return certain + [step for step in waiting if step.can_fail]

    def _rank(self, step: FilterStep, cost: float) -> float:
        # A column in memory already costs next to nothing, but never exactly that: ties go by selectivity.
        return max(cost, 1e-9) / max(1.0 - self.selectivity(step), 1e-6)
