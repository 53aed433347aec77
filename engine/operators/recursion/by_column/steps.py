"""A recursive query's step as a function of numpy's arrays: scans, filters, projections, groups and joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from bamquery.engine.operators.join.lowering import join_condition
from bamquery.engine.operators.recursion.by_column.expressions import column_function, functions_of
from bamquery.engine.operators.recursion.by_column.grouping import grouped_columns
from bamquery.engine.operators.recursion.by_column.joins import (
    KINDS,
    KINDS_FIXED_LEFT,
    BuildSide,
    ColumnJoin,
    Reserve,
)
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_column.values import (
    Columns,
    is_for_columns,
    keep,
    numpy_type,
    spread,
    true_rows,
)
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan import nodes
from bamquery.plan.cardinality import estimated_rows
from bamquery.plan.expressions import ColumnRef, Expression, Literal
from bamquery.plan.interning import draws_at_random
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import nodes_of

Side: TypeAlias = tuple[Columns, int]
"""Columns of so many rows, which are the same in each step."""
ColumnStage: TypeAlias = Callable[[Columns, int], tuple[Columns, int]]
"""The columns of so many rows, at least one, to those that are made of them, and how many rows these have.

It raises `LeftToDeviceError`.
"""
_Make: TypeAlias = Callable[["StepInputs"], ColumnStage]

MOST_JOINED: Final = 1 << 20
"""Rows of a side that is the same in each step; operators hold as many."""


class StepInputs:
    """What a step is made of for one run.

    Attributes:
        sides: rows of the plans of that name of the step.
        reserve: is told of how many rows a join will give.
        nbytes: memory that joins hold; filled as the step is made.
    """

    def __init__(self, sides: Sequence[Side], reserve: Reserve) -> None:
        self.sides = list(sides)
        self.reserve = reserve
        self.nbytes = 0


class ColumnStep:
    """A step that numpy can compute.

    Attributes:
        sides: plans that the step joins with its rows, the same each time, of at most `MOST_JOINED` rows.
        row_bytes: memory for a row, where it has most columns.
        is_plain: it filters and projects, and no more.
    """

    def __init__(self, plan: Plan, rows: RecursiveTableSource[Any], sides: Sequence[Plan]) -> None:
        self._plan = plan
        self._rows = rows
        self.sides = tuple(sides)
        self.row_bytes = max(_row_bytes(node) for node in nodes_of(plan))
        self.is_plain = not any(isinstance(node, nodes.Join | nodes.Aggregate) for node in nodes_of(plan))

    def make(self, texts: TextCodes) -> _Make:
        """What makes the step's function; `texts` are those of the rows that it will be given."""
        make = _stage(self._plan, self._rows, [], texts)
        assert make is not None
        return make


def column_step(plan: Plan, rows: RecursiveTableSource[Any]) -> ColumnStep | None:
    """The step over `rows`; None where an operator, an expression or a type is not for arrays."""
    sides: list[Plan] = []
    if not all(map(is_for_columns, rows.schema.types)):
        return None
    return None if _stage(plan, rows, sides, TextCodes()) is None else ColumnStep(plan, rows, sides)


def _row_bytes(plan: Plan) -> int:
    return sum(numpy_type(field.type).itemsize + 1 for field in plan.fields if is_for_columns(field.type))


def _stage(plan: Plan, rows: RecursiveTableSource[Any], sides: list[Plan], texts: TextCodes) -> _Make | None:
    if not all(is_for_columns(field.type) for field in plan.fields):
        return None
    match plan:
        case nodes.Scan(source=source, predicates=predicates, columns=columns) if source is rows:
            chosen = None if [*columns] == [*range(len(rows.schema))] else columns
            return _filter(lambda inputs: _keep_all, predicates, chosen, texts)
        case nodes.Filter(child=child, predicate=predicate):
            below = _stage(child, rows, sides, texts)
            return None if below is None else _filter(below, (predicate,), None, texts)
        case nodes.Project(child=child, expressions=expressions):
            below = _stage(child, rows, sides, texts)
            return None if below is None else _project(below, expressions, texts)
        case nodes.Aggregate(child=child):
            below, groups = _stage(child, rows, sides, texts), grouped_columns(plan, texts)
            return None if below is None or groups is None else _compose(below, groups)
        case nodes.Join():
            return _join(plan, rows, sides, texts)
        case _:
            return None


def _keep_all(columns: Columns, rows: int) -> tuple[Columns, int]:
    return columns, rows


def _compose(below: _Make, stage: ColumnStage) -> _Make:
    def make(inputs: StepInputs) -> ColumnStage:
        before = below(inputs)
        return lambda columns, rows: stage(*before(columns, rows))

    return make


def _filter(
    below: _Make, predicates: Sequence[Expression], wanted: Sequence[int] | None, texts: TextCodes
) -> _Make | None:
    """The rows for which all are true, and their columns that are wanted; None: all columns."""
    conditions = functions_of(predicates, texts)
    if conditions is None or any(isinstance(predicate, Literal) for predicate in predicates):
        return None

    def stage(columns: Columns, rows: int) -> tuple[Columns, int]:
        for condition in conditions:
            if not rows:
                return [], 0
            true = true_rows(condition(columns))
            kept = int(np.count_nonzero(true))
            if kept < rows:
                columns, rows = [keep(column, true) for column in columns], kept
        return columns if wanted is None or not rows else [columns[place] for place in wanted], rows

    return _compose(below, stage)


def _project(below: _Make, expressions: Sequence[Expression], texts: TextCodes) -> _Make | None:
    functions = functions_of(expressions, texts)
    if functions is None:
        return None
    computed = [
        place for place, expression in enumerate(expressions) if not isinstance(expression, ColumnRef)
    ]

    def stage(columns: Columns, rows: int) -> tuple[Columns, int]:
        if not rows:
            return [], 0
        made = [function(columns) for function in functions]
        for place in computed:
            made[place] = spread(made[place], rows)
        return made, rows

    return _compose(below, stage)


def _join(
    plan: nodes.Join, rows: RecursiveTableSource[Any], sides: list[Plan], texts: TextCodes
) -> _Make | None:
    fixed_left = not _reads(plan.left, rows)
    if plan.kind not in (KINDS_FIXED_LEFT if fixed_left else KINDS):
        return None
    probe, build = (plan.right, plan.left) if fixed_left else (plan.left, plan.right)
    condition = join_condition(plan)
    probe_keys, build_keys = (
        functions_of(keys, texts)
        for keys in (
            (condition.build_keys, condition.probe_keys)
            if fixed_left
            else (condition.probe_keys, condition.build_keys)
        )
    )
    residual = None if condition.residual is None else column_function(condition.residual, texts)
    below = _stage(probe, rows, sides, texts)
    other = _build_side(build, rows, sides, texts)
    if probe_keys is None or build_keys is None or below is None or other is None:
        return None
    if residual is None and condition.residual is not None:
        return None
    form = ColumnJoin(
        plan.kind,
        probe_keys,
        build_keys,
        [key.type for key in condition.probe_keys],
        condition.nulls_equal,
        residual,
        [field.type for field in build.fields],
        fixed_left,
    )

    def make(inputs: StepInputs) -> ColumnStage:
        before, build_side = below(inputs), other(inputs, form)

        def stage(columns: Columns, rows: int) -> tuple[Columns, int]:
            found, count = before(columns, rows)
            if not count:
                return [], 0
            return build_side(columns, rows).join(found, count, inputs.reserve)

        return stage

    return make


_BuildSide: TypeAlias = Callable[[Columns, int], BuildSide]


def _build_side(
    plan: Plan, rows: RecursiveTableSource[Any], sides: list[Plan], texts: TextCodes
) -> Callable[[StepInputs, ColumnJoin], _BuildSide] | None:
    """The side in which rows are looked up: made once, or of what each step makes of its rows."""
    if _reads(plan, rows):
        below = _stage(plan, rows, sides, texts)
        if below is None:
            return None

        def side_of_step(inputs: StepInputs, form: ColumnJoin) -> _BuildSide:
            before = below(inputs)
            return lambda columns, rows: BuildSide(form, *before(columns, rows))

        return side_of_step
    if estimated_rows(plan) > MOST_JOINED or any(map(draws_at_random, nodes_of(plan))):
        return None
    if not all(is_for_columns(field.type) for field in plan.fields):
        return None
    place = len(sides)
    sides.append(plan)

    def side_of_run(inputs: StepInputs, form: ColumnJoin) -> _BuildSide:
        side = BuildSide(form, *inputs.sides[place])
        inputs.nbytes += side.nbytes
        return lambda columns, rows: side

    return side_of_run


def _reads(plan: Plan, rows: RecursiveTableSource[Any]) -> bool:
    return any(isinstance(node, nodes.Scan) and node.source is rows for node in nodes_of(plan))
