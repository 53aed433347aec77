"""Keys and arguments that may be far larger than what they are made of are made by a projection below.

Joins and windows hold many rows at once: they know what columns take, and spill them, but not what a
function makes of them. A projection makes its strings by few rows where they are large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    Literal,
    referenced_columns,
    walk,
)
from bamquery.plan.format import format_expression
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Join, Plan, Project, Window
from bamquery.plan.rewriting import columns_of, conjunction, conjuncts, map_key, renumber, transform_plan
from bamquery.plan.windows import WindowCall

_GROWING: Final = frozenset(
    {"concat", "concat_ws", "lpad", "overlay", "regexp_replace", "repeat", "replace", "rpad"}
)
_LONG: Final = 1024
"""Bytes of a constant that matter where many rows have it."""
_EQUALITIES: Final = frozenset({"equal", "is_not_distinct_from"})
_COMPARISONS: Final = _EQUALITIES | {"less", "less_equal", "greater", "greater_equal"}
_LEFT: Final = 1 << 30
"""Where columns that are made on the left are numbered from until it is known how many there are."""


def project_strings_below(plan: Plan) -> Plan:
    """Put such strings of windows, and those that a join finds pairs by, into projections below.

    What else a join's condition compares is asked of pairs, of fewer ones where their strings are large.
    """
    return transform_plan(plan, _project_below)


def _project_below(plan: Plan) -> Plan:
    match plan:
        case Window():
            return _window(plan)
        case Join(condition=condition) if condition is not None:
            return _join(plan, conjuncts(condition))
        case _:
            return plan


class _ProjectedStrings:
    """A child's columns and the strings that are made of them."""

    def __init__(self, child: Plan) -> None:
        self._child = child
        self._made: dict[Expression, ColumnRef] = {}

    @property
    def width(self) -> int:
        return len(self._child.fields)

    @property
    def column_count(self) -> int:
        return len(self._made)

    def column(self, expression: Expression) -> Expression:
        """The expression, or the column that it is now."""
        if not _may_be_long(expression):
            return expression
        place = self.width + self.column_count
        column = ColumnRef(place, format_expression(expression), expression.type)
        return self._made.setdefault(expression, column)

    def plan(self) -> Plan:
        if not self._made:
            return self._child
        names = (*(c.name for c in columns_of(self._child)), *(c.name for c in self._made.values()))
        return Project(self._child, (*columns_of(self._child), *self._made), names)


def _may_be_long(expression: Expression) -> bool:
    kind = expression.type
    return (pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)) and any(
        _builds_string(node) for node in walk(expression)
    )


def _builds_string(node: Expression) -> bool:
    """Whether it gives more than the columns have that it reads: a long constant does, on each row."""
    if isinstance(node, Literal):
        value: Any = node.value
        is_text = isinstance(value, pa.LargeStringScalar | pa.LargeBinaryScalar) and value.is_valid
        return bool(is_text and value.as_buffer().size > _LONG)
    return isinstance(node, Call) and node.function in _GROWING


def _window(plan: Window) -> Plan:
    strings = _ProjectedStrings(plan.child)
    moved = replace(
        plan,
        partition=tuple(map(strings.column, plan.partition)),
        order=tuple(map_key(key, strings.column) for key in plan.order),
        calls=tuple(replace(call, call=_call(call, strings)) for call in plan.calls),
    )
    if not strings.column_count:
        return plan
    return _drop_columns(replace(moved, child=strings.plan()), strings.width, strings.column_count)


def _call(call: WindowCall, strings: _ProjectedStrings) -> AggregateCall:
    """The call over columns; what it computes for some rows only is null for the others."""
    given = call.call

    def column(expression: Expression) -> Expression:
        if given.filter is None or not _may_be_long(expression):
            return strings.column(expression)
        nothing = Literal(scalar(None, expression.type))
        return strings.column(Call("case", (given.filter, expression, nothing), expression.type))

    order = tuple(map_key(key, column) for key in given.order)
    arguments = [column(argument) for argument in given.arguments]
    if given.function in ("lag", "lead") and not referenced_columns(given.arguments[-1]):
        arguments[-1] = given.arguments[-1]  # a default is made for those rows that need it
    return replace(given, arguments=tuple(arguments), order=order)


def _join(plan: Join, given: Sequence[Expression]) -> Plan:
    left, right = _ProjectedStrings(plan.left), _ProjectedStrings(plan.right)
    finding = _COMPARISONS if plan.kind in ("asof", "asof_left") else _EQUALITIES
    compared = [_compare_projected(conjunct, left, right, finding) for conjunct in given]
    if not (left.column_count or right.column_count):
        return plan
    # Columns of the right side are numbered from where it was; it is behind those made on the left now.
    places = {i: i for i in range(left.width)} | {_LEFT + i: left.width + i for i in range(left.column_count)}
    start = left.width + left.column_count
    places |= {left.width + i: start + i for i in range(right.width + right.column_count)}
    condition = conjunction([renumber(conjunct, places) for conjunct in compared])
    joined = replace(plan, left=left.plan(), right=right.plan(), condition=condition)
    without = _drop_columns(joined, start + right.width, right.column_count) if _gives_right(plan) else joined
    return _drop_columns(without, left.width, left.column_count)


def _compare_projected(
    conjunct: Expression, left: _ProjectedStrings, right: _ProjectedStrings, finding: frozenset[str]
) -> Expression:
    """The condition, with its strings of one side as columns where it compares one side with the other."""
    if not isinstance(conjunct, Call) or conjunct.function not in finding:
        return conjunct
    read = [referenced_columns(side) for side in conjunct.arguments]
    of_left = [bool(columns) and max(columns) < left.width for columns in read]
    of_right = [bool(columns) and min(columns) >= left.width for columns in read]
    if not (any(of_left) and any(of_right)):
        return conjunct
    sides: list[Expression] = []
    for side, is_left in zip(conjunct.arguments, of_left, strict=True):
        if is_left:
            column = left.column(side)
            moved = {i: _LEFT + i - left.width for i in referenced_columns(column) if i >= left.width}
            sides.append(renumber(column, {i: i for i in referenced_columns(column)} | moved))
        else:
            own = renumber(side, {i: i - left.width for i in referenced_columns(side)})
            column = right.column(own)
            sides.append(renumber(column, {i: i + left.width for i in referenced_columns(column)}))
    return replace(conjunct, arguments=tuple(sides))


def _gives_right(plan: Join) -> bool:
    return plan.kind not in ("semi", "anti", "mark")


def _drop_columns(plan: Plan, start: int, count: int) -> Plan:
    """The plan without `count` of its columns from `start` on."""
    if not count:
        return plan
    kept = [column for column in columns_of(plan) if not start <= column.index < start + count]
    return Project(plan, tuple(kept), tuple(column.name for column in kept))
