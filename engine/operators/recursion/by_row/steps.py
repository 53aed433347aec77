"""A recursive query's step as a function of rows: scans, filters, projections, groups, windows and joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from bamquery.engine.operators.join.lowering import join_condition
from bamquery.engine.operators.join.pairs import JoinCondition
from bamquery.engine.operators.recursion.by_row.expressions import functions_of, tuple_function
from bamquery.engine.operators.recursion.by_row.grouping import grouped_rows
from bamquery.engine.operators.recursion.by_row.values import LeftToDeviceError, Row, is_for_rows
from bamquery.engine.operators.recursion.by_row.windows import windowed_rows
from bamquery.engine.sources.scan_sources import RecursiveTableSource
from bamquery.plan import nodes
from bamquery.plan.cardinality import estimated_rows
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.interning import draws_at_random
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import nodes_of

Rows: TypeAlias = list[Row]
RowStage: TypeAlias = Callable[[Rows], Rows]
_Make: TypeAlias = Callable[[Sequence[Rows]], RowStage]
_Table: TypeAlias = dict[Row, Rows]
_MakeTable: TypeAlias = Callable[[Sequence[Rows], Callable[[Rows], _Table]], Callable[[Rows], _Table]]

MOST_MADE: Final = 4096
"""Rows that a step may give, or have in between, before a device does better."""
MOST_JOINED: Final = 32_768
"""Rows of a join's other side, which are put into a dictionary once."""
_MOST_PAIRED: Final = 32
"""Of a join without keys, each of which is looked at for each of the step's rows."""
_KINDS: Final = ("inner", "left", "semi", "anti", "single")
_KINDS_FIXED_LEFT: Final = ("inner", "right")
"""Kinds of joins whose left side is the same in each step."""


class RowStep:
    """A step that Python can compute for few rows.

    Attributes:
        sides: plans that the step joins with its rows, the same each time; each of at most `MOST_JOINED`
            rows, or a device does better.
    """

    def __init__(self, make: _Make, sides: Sequence[Plan]) -> None:
        self._make = make
        self.sides = tuple(sides)

    def stage(self, sides: Sequence[Rows]) -> RowStage:
        """What gives the step's rows for those of the step before; `sides`: rows of the plans of that name.

        It raises `LeftToDeviceError` where it cannot, or where they are more than `MOST_MADE`.

        Raises:
            LeftToDeviceError: a side has more rows than should be looked at one by one.
        """
        return self._make(sides)


def row_step(plan: Plan, rows: RecursiveTableSource[Any]) -> RowStep | None:
    """The step over `rows` for Python; None where an operator, an expression or a type is not for it."""
    sides: list[Plan] = []
    make = _stage(plan, rows, sides)
    return None if make is None else RowStep(make, sides)


def _stage(plan: Plan, rows: RecursiveTableSource[Any], sides: list[Plan]) -> _Make | None:
    if not all(is_for_rows(field.type) for field in plan.fields):
        return None
    match plan:
        case nodes.Scan(source=source, predicates=predicates, columns=columns) if source is rows:
            kinds = rows.schema.types
            references = [ColumnRef(i, rows.schema.names[i], kinds[i]) for i in columns]
            return _filter_and_project(lambda sides: _keep_rows, predicates, references)
        case nodes.Filter(child=child, predicate=predicate):
            below = _stage(child, rows, sides)
            return None if below is None else _filter_and_project(below, (predicate,), None)
        case nodes.Project(child=child, expressions=expressions):
            below = _stage(child, rows, sides)
            return None if below is None else _filter_and_project(below, (), expressions)
        case nodes.Aggregate(child=child):
            below, groups = _stage(child, rows, sides), grouped_rows(plan)
            return None if below is None or groups is None else _all_rows(below, groups)
        case nodes.Window(child=child):
            below, calls = _stage(child, rows, sides), windowed_rows(plan)
            return None if below is None or calls is None else _all_rows(below, calls)
        case nodes.Join():
            return _join(plan, rows, sides)
        case _:
            return None


def _keep_rows(rows: Rows) -> Rows:
    return rows


def _all_rows(below: _Make, stage: RowStage) -> _Make:
    """What looks at all rows together: groups, windows."""

    def make(sides: Sequence[Rows]) -> RowStage:
        before = below(sides)
        return lambda rows: stage(before(rows))

    return make


def _filter_and_project(
    below: _Make, predicates: Sequence[Expression], expressions: Sequence[Expression] | None
) -> _Make | None:
    conditions = functions_of(predicates)
    tupled = None if expressions is None else tuple_function(expressions)
    if conditions is None or (expressions is not None and tupled is None):
        return None

    def make(sides: Sequence[Rows]) -> RowStage:
        before = below(sides)

        def stage(rows: Rows) -> Rows:
            found = before(rows)
            for condition in conditions:
                found = [row for row in found if condition(row)]
            return found if tupled is None else [tupled(row) for row in found]

        return stage

    return make


def _join(plan: nodes.Join, rows: RecursiveTableSource[Any], sides: list[Plan]) -> _Make | None:
    fixed_left = not _reads(plan.left, rows)
    if plan.kind not in (_KINDS_FIXED_LEFT if fixed_left else _KINDS):
        return None
    build, moving = (plan.left, plan.right) if fixed_left else (plan.right, plan.left)
    condition = join_condition(plan)
    keys = _keys(condition, fixed_left=fixed_left)
    residual = functions_of([] if condition.residual is None else [condition.residual])
    below, other = _stage(moving, rows, sides), _lookup_side(build, rows, sides)
    if keys is None or residual is None or below is None or other is None:
        return None
    moving_key, build_key = keys
    unmatched = _unmatched_rows(plan.kind, len(build.fields), fixed_left=fixed_left)
    exists = {"semi": True, "anti": False}.get(plan.kind)
    is_single = plan.kind == "single"

    def table(rows: Rows) -> _Table:
        if not condition.probe_keys and len(rows) > (1 if is_single else _MOST_PAIRED):
            raise LeftToDeviceError
        return _table(rows, build_key, condition.nulls_equal)

    def make(found: Sequence[Rows]) -> RowStage:
        before, table_for = below(found), other(found, table)

        def stage(rows: Rows) -> Rows:
            made: Rows = []
            partners = table_for(rows)
            for row in before(rows):
                others = partners.get(moving_key(row), ())
                pairs = [(*other, *row) if fixed_left else (*row, *other) for other in others]
                if residual:
                    pairs = [pair for pair in pairs if residual[0](pair)]
                if is_single and len(pairs) > 1:
                    raise LeftToDeviceError
                if exists is not None:
                    pairs = [row] if bool(pairs) is exists else []
                made.extend(pairs or unmatched(row))
                if len(made) > MOST_MADE:
                    raise LeftToDeviceError
            return made

        return stage

    return make


def _lookup_side(plan: Plan, rows: RecursiveTableSource[Any], sides: list[Plan]) -> _MakeTable | None:
    """The side in which rows are looked up: a table made once, or of what each step makes of its rows."""
    if _reads(plan, rows):
        below = _stage(plan, rows, sides)
        if below is None:
            return None

        def table_of_step(found: Sequence[Rows], table: Callable[[Rows], _Table]) -> Callable[[Rows], _Table]:
            before = below(found)
            return lambda rows: table(before(rows))

        return table_of_step
    if estimated_rows(plan) > MOST_JOINED or any(map(draws_at_random, nodes_of(plan))):
        return None
    if not all(is_for_rows(field.type) for field in plan.fields):
        return None
    place = len(sides)
    sides.append(plan)

    def once(found: Sequence[Rows], table: Callable[[Rows], _Table]) -> Callable[[Rows], _Table]:
        known = table(found[place])
        return lambda rows: known

    return once


def _unmatched_rows(kind: str, width: int, *, fixed_left: bool) -> Callable[[Row], Sequence[Row]]:
    """What becomes of a row without a partner."""
    if kind not in ("left", "right", "single"):
        return lambda row: ()
    nulls = (None,) * width
    return lambda row: ((*nulls, *row) if fixed_left else (*row, *nulls),)


def _keys(
    condition: JoinCondition, *, fixed_left: bool
) -> tuple[Callable[[Row], Row], Callable[[Row], Row]] | None:
    """The keys of the rows that change and of those that do not, as tuples."""
    pair = tuple_function(condition.probe_keys), tuple_function(condition.build_keys)
    left, right = pair
    if left is None or right is None:
        return None
    return (right, left) if fixed_left else (left, right)


def _table(rows: Rows, key: Callable[[Row], Row], nulls_equal: Sequence[bool]) -> _Table:
    """Rows by their key, but those whose key equals none: a null, where nulls are not equal."""
    table: _Table = {}
    for row in rows:
        found = key(row)
        if all(value is not None or equal for value, equal in zip(found, nulls_equal, strict=True)):
            table.setdefault(found, []).append(row)
    return table


def _reads(plan: Plan, rows: RecursiveTableSource[Any]) -> bool:
    return any(isinstance(node, nodes.Scan) and node.source is rows for node in nodes_of(plan))
