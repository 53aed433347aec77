"""Conditions that a scan gets while the query runs, as it prunes and filters by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter, column_under_casts
from bamquery.engine.operators.scan.chunks import Chunk
from bamquery.engine.operators.scan.filter_order import FilterStep, optional_steps
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.engine.sources.scan_predicates import Conjunct, split_conjuncts
from bamquery.plan.expressions import Expression, Literal

NOT_FOLLOWED: Final = "vectors are listed once: what rows tell of ORDER BY ... LIMIT prunes no more"
"""Of a device that reads chunks itself."""

_TRUTH: Final = Literal(pa.scalar(True))


@dataclass(frozen=True, eq=False)
class ScanDynamicFilter:
    """A filter on one of a scan's columns.

    Attributes:
        value: what it is about, over positions in the source's schema: a column, or a cast of one.
    """

    dynamic_filter: DynamicFilter
    value: Expression
    schema: pa.Schema

    def conditions(self) -> list[Expression]:
        """What is known by now."""
        return [condition.as_expression(self.value) for condition in self.dynamic_filter.conditions]

    def conjuncts(self, device: Device[Any]) -> list[Conjunct]:
        """The same, as a scan takes it."""
        return dynamic_conjuncts(self.conditions(), self.schema, device)

    @property
    def text(self) -> str:
        """For people."""
        column = column_under_casts(self.value)
        assert column is not None
        known = " AND ".join(condition.text(column.name) for condition in self.dynamic_filter.conditions)
        return f"{known or column.name} ({self.dynamic_filter.source})"


def dynamic_conjuncts(
    conditions: Iterable[Expression], schema: pa.Schema, device: Device[Any]
) -> list[Conjunct]:
    """Those that zone maps can prune by; none that the device cannot compute."""
    return [
        conjunct
        for conjunct in split_conjuncts(conditions, schema)
        if (conjunct.ranges or not conjunct.columns)
        and not device.capabilities.expression_refusals(conjunct.expression)
    ]


class MovingDynamicFilters:
    """Those of a scan's filters that become narrower while it runs: asked again for each chunk."""

    def __init__(self, taken: Iterable[ScanDynamicFilter], device: Device[Any], first: int) -> None:
        """`first`: the number of the first of their steps."""
        self._taken = [one for one in taken if one.dynamic_filter.moves]
        self._device = device
        self._first = first
        self._known: list[tuple[object, list[Conjunct]]] = [((), []) for _ in self._taken]

    @property
    def placeholders(self) -> list[FilterStep]:
        """Something for each step that may come."""
        return [FilterStep(self._first + i, (), _TRUTH, (), False) for i in range(len(self._taken))]

    @property
    def guesses(self) -> list[float]:
        """Selectivities of those steps before they are seen: such conditions let few rows through."""
        return [0.0] * len(self._taken)

    def steps(self) -> list[FilterStep]:
        """As they are now; what earlier chunks told of their worth says nothing of that."""
        return [
            replace(step, optional=False)
            for number, conjuncts in enumerate(self._current_conjuncts(), self._first)
            for step in optional_steps(conjuncts, number)
        ]

    def prune(self, chunk: Chunk) -> Chunk:
        """The chunk without vectors of which no row is wanted any more."""
        ranges = [found for conjuncts in self._current_conjuncts() for c in conjuncts for found in c.ranges]
        if not ranges:
            return chunk
        return Chunk(
            tuple(
                replace(piece, vectors=piece.fragment.zone_map.surviving_of(piece.vectors, ranges))
                for piece in chunk.pieces
            )
        )

    def _current_conjuncts(self) -> list[list[Conjunct]]:
        for i, taken in enumerate(self._taken):
            conditions = taken.dynamic_filter.conditions
            if conditions is not self._known[i][0]:
                self._known[i] = (conditions, taken.conjuncts(self._device))
        return [conjuncts for _, conjuncts in self._known]


def mark_as_filters(profile: ScanProfile, schema: pa.Schema, conjuncts: Iterable[Conjunct]) -> None:
    """Say that columns are looked at before others are read, too."""
    for conjunct in conjuncts:
        for position in conjunct.columns:
            column = profile.columns[schema.field(position).name]
            if "filter" not in column.role:
                column.role = f"filter, {column.role}"
