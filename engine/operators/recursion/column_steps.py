"""A recursive query's step as a function of numpy's arrays: scans of its rows, filters and projections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from bamquery.engine.operators.recursion.column_expressions import column_function
from bamquery.engine.operators.recursion.column_values import (
    Column,
    ColumnFunction,
    is_for_columns,
    keep,
    spread,
)
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan import nodes
from bamquery.plan.expressions import ColumnRef, Expression, Literal
from bamquery.plan.nodes import Plan

ColumnStage: TypeAlias = Callable[[Sequence[Column], int], tuple[Sequence[Column], int]]
"""The columns of so many rows, at least one, to those that are made of them, and how many rows these have.

It raises `LeftToDeviceError`.
"""


def column_step(plan: Plan, rows: RecursiveTableSource[Any]) -> ColumnStage | None:
    """The step over `rows`; None where an operator, an expression or a type is not for arrays."""
    if not all(is_for_columns(field.type) for field in plan.fields):
        return None
    match plan:
        case nodes.Scan(source=source, predicates=predicates, columns=columns) if source is rows:
            if not all(map(is_for_columns, rows.schema.types)):
                return None
            chosen = None if [*columns] == [*range(len(rows.schema))] else columns
            return _filter(_keep_all, predicates, chosen)
        case nodes.Filter(child=child, predicate=predicate):
            below = column_step(child, rows)
            return None if below is None else _filter(below, (predicate,), None)
        case nodes.Project(child=child, expressions=expressions):
            below = column_step(child, rows)
            return None if below is None else _project(below, expressions)
        case _:
            return None


def _keep_all(columns: Sequence[Column], rows: int) -> tuple[Sequence[Column], int]:
    return columns, rows


def _functions(expressions: Sequence[Expression]) -> list[ColumnFunction] | None:
    found = [column_function(expression) for expression in expressions]
    known = [function for function in found if function is not None]
    return known if len(known) == len(found) else None


def _filter(
    below: ColumnStage, predicates: Sequence[Expression], wanted: Sequence[int] | None
) -> ColumnStage | None:
    """The rows for which all are true, and their columns that are wanted; None: all columns."""
    conditions = _functions(predicates)
    if conditions is None or any(isinstance(predicate, Literal) for predicate in predicates):
        return None

    def stage(columns: Sequence[Column], rows: int) -> tuple[Sequence[Column], int]:
        columns, rows = below(columns, rows)
        for condition in conditions:
            if not rows:
                break
            found = condition(columns)
            true = found.values if found.valid is None else found.values & found.valid
            kept = int(np.count_nonzero(true))
            if kept < rows:
                columns, rows = [keep(column, true) for column in columns], kept
        return columns if wanted is None else [columns[place] for place in wanted], rows

    return stage


def _project(below: ColumnStage, expressions: Sequence[Expression]) -> ColumnStage | None:
    functions = _functions(expressions)
    if functions is None:
        return None
    computed = [
        place for place, expression in enumerate(expressions) if not isinstance(expression, ColumnRef)
    ]

    def stage(columns: Sequence[Column], rows: int) -> tuple[Sequence[Column], int]:
        columns, rows = below(columns, rows)
        if not rows:
            return [], 0
        made = [function(columns) for function in functions]
        for place in computed:
            made[place] = spread(made[place], rows)
        return made, rows

    return stage
