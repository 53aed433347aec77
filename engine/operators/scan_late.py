"""Conditions that a scan gets while the query runs, as it prunes and filters by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.engine.late_filter import LateFilter, column_of
from bamquery.engine.operators.scan_predicates import Conjunct, split
from bamquery.engine.profile import ScanProfile
from bamquery.plan.expressions import Expression


@dataclass(frozen=True, eq=False)
class TakenFilter:
    """A filter on one of a scan's columns.

    Attributes:
        value: what it is about, over positions in the source's schema: a column, or a cast of one.
    """

    late: LateFilter
    value: Expression
    schema: pa.Schema

    def conjuncts(self, device: Device[Any]) -> list[Conjunct]:
        """What is known by now and zone maps can prune by; nothing that the device cannot compute."""
        made = split([condition.of(self.value) for condition in self.late.conditions], self.schema)
        return [
            conjunct
            for conjunct in made
            if (conjunct.ranges or not conjunct.columns)
            and not device.expression_refusals(conjunct.expression)
        ]

    @property
    def text(self) -> str:
        """For people."""
        column = column_of(self.value)
        assert column is not None
        known = " AND ".join(condition.text(column.name) for condition in self.late.conditions)
        return f"{known or column.name} ({self.late.source})"


def mark_as_filters(profile: ScanProfile, schema: pa.Schema, conjuncts: Iterable[Conjunct]) -> None:
    """Say that columns are looked at before others are read, too."""
    for conjunct in conjuncts:
        for position in conjunct.columns:
            column = profile.columns[schema.field(position).name]
            if "filter" not in column.role:
                column.role = f"filter, {column.role}"
