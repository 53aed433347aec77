"""Joins become simpler kinds where a condition above drops the rows that make the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal, transform
from bamquery.plan.literals.evaluation import fold_expression
from bamquery.plan.literals.scalars import scalar
from bamquery.plan.nodes import Filter, Join, JoinKind, Plan, Project
from bamquery.plan.rewriting import columns_of, conjunction, conjuncts, transform_plan

_NEVER_NULL: Final = frozenset({"is_distinct_from", "is_not_distinct_from", "is_null", "is_not_null"})


def simplify_joins(plan: Plan) -> Plan:
    """An outer join whose padded rows are dropped is an inner one; a mark that is asked for selects rows.

    `WHERE mark` is a semi join; `WHERE NOT mark` is an anti join where the mark is never null.
    """
    return transform_plan(plan, _simplify)


def _simplify(plan: Plan) -> Plan:
    match plan:
        case Filter(child=Join(kind="mark") as join, predicate=predicate):
            return _replace_mark_join(plan, join, conjuncts(predicate))
        case Filter(child=Join(kind="left" | "right" | "full" | "single") as join, predicate=predicate):
            kind = _kind(join, conjuncts(predicate))
            return plan if kind == join.kind else replace(plan, child=replace(join, kind=kind))
        case _:
            return plan


def _replace_mark_join(plan: Filter, join: Join, given: Sequence[Expression]) -> Plan:
    width = len(join.left.fields)
    mark = ColumnRef(width, "mark", pa.bool_())
    for conjunct in given:
        kept = _is_mark(conjunct, width)
        dropped = (
            isinstance(conjunct, Call)
            and conjunct.function == "not"
            and _is_mark(conjunct.arguments[0], width)
        )
        if kept or (dropped and _never_null(join.condition)):
            chosen = replace(join, kind="semi" if kept else "anti")
            columns = columns_of(chosen)
            truth = Literal(scalar(kept, pa.bool_()))
            names = (*(column.name for column in columns), mark.name)
            with_mark = Project(chosen, (*columns, truth), names)
            others = [other for other in given if other is not conjunct]
            return Filter(with_mark, conjunction(others)) if others else with_mark
    return plan


def _is_mark(expression: Expression, width: int) -> bool:
    return isinstance(expression, ColumnRef) and expression.index == width


def _never_null(condition: Expression | None) -> bool:
    if condition is None:
        return True
    return all(
        (isinstance(conjunct, Call) and (conjunct.function in _NEVER_NULL or _has_default(conjunct)))
        or (isinstance(conjunct, Literal) and not conjunct.is_null)
        for conjunct in conjuncts(condition)
    )


def _has_default(call: Call) -> bool:
    """Whether it is a value or else a literal."""
    last = call.arguments[-1] if call.function == "coalesce" else None
    return isinstance(last, Literal) and not last.is_null


def _kind(join: Join, given: Sequence[Expression]) -> JoinKind:
    """The kind that gives the same rows where only those count for which all of `given` is true."""
    width = len(join.left.fields)
    columns = range(width), range(width, len(join.fields))
    needs_left, needs_right = (any(_rejects_nulls(conjunct, side) for conjunct in given) for side in columns)
    match join.kind:
        case "left" if needs_right:
            return "inner"
        case "right" if needs_left:
            return "inner"
        case "full" if needs_left and needs_right:
            return "inner"
        case "full" if needs_left:
            return "left"
        case "full" if needs_right:
            return "right"
        case _:
            return join.kind


def _rejects_nulls(predicate: Expression, columns: range) -> bool:
    """Whether the predicate is known not to be true where all those columns are null."""

    def nullify_column(node: Expression) -> Expression:
        if isinstance(node, ColumnRef) and node.index in columns:
            return Literal(scalar(None, node.type))
        return node

    return _never_true(fold_expression(transform(predicate, nullify_column)))


def _never_true(expression: Expression) -> bool:
    match expression:
        case Literal():
            return expression.is_null or expression.value.as_py() is not True
        case Call(function="and", arguments=arguments):
            return any(map(_never_true, arguments))
        case Call(function="or", arguments=arguments):
            return all(map(_never_true, arguments))
        case Call(function=function, arguments=arguments) if function in _STRICT:
            return any(isinstance(a, Literal) and a.is_null for a in arguments)
        case _:
            return False


_STRICT: Final = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "like", "ilike", "starts_with"}
)
"""Conditions that are null where an argument is null."""
