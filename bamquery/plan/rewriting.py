"""Walking and rebuilding plans: what every rule is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from bamquery.plan.expressions import AggregateCall, Call, ColumnRef, Expression, transform
from bamquery.plan.nodes import Aggregate, Filter, Limit, Plan, Project, Sample, Scan, Sort

Rewrite = Callable[[Expression], Expression]


def transform_plan(plan: Plan, rewrite: Callable[[Plan], Plan]) -> Plan:
    """Rebuild bottom-up, each node passed through `rewrite` after its child."""
    match plan:
        case Filter() | Project() | Aggregate() | Sort() | Limit() | Sample():
            child = transform_plan(plan.child, rewrite)
            return rewrite(plan if child is plan.child else replace(plan, child=child))
        case _:
            return rewrite(plan)


def map_expressions(plan: Plan, rewrite: Rewrite) -> Plan:
    """The node with `rewrite` applied to each of its own expressions as a whole; the child is kept."""
    match plan:
        case Scan(predicates=predicates):
            return replace(plan, predicates=tuple(map(rewrite, predicates)))
        case Filter(predicate=predicate):
            return replace(plan, predicate=rewrite(predicate))
        case Project(expressions=expressions):
            return replace(plan, expressions=tuple(map(rewrite, expressions)))
        case Aggregate(keys=keys, aggregates=aggregates):
            calls = tuple(map_arguments(call, rewrite) for call in aggregates)
            return replace(plan, keys=tuple(map(rewrite, keys)), aggregates=calls)
        case Sort(keys=keys):
            return replace(plan, keys=tuple(replace(k, expression=rewrite(k.expression)) for k in keys))
        case _:
            return plan


def map_arguments(call: AggregateCall, rewrite: Rewrite) -> AggregateCall:
    """The call with `rewrite` applied to its arguments and filter."""
    condition = None if call.filter is None else rewrite(call.filter)
    return replace(call, arguments=tuple(map(rewrite, call.arguments)), filter=condition)


def rewrite_everywhere(plan: Plan, rewrite: Rewrite) -> Plan:
    """The plan with `rewrite` applied to every subexpression of every node, innermost first."""
    return transform_plan(plan, lambda node: map_expressions(node, lambda e: transform(e, rewrite)))


def substitute(expression: Expression, columns: Sequence[Expression]) -> Expression:
    """The expression with column number `i` replaced by `columns[i]`."""
    return transform(expression, lambda e: columns[e.index] if isinstance(e, ColumnRef) else e)


def renumber(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """The expression with column number `i` read from `positions[i]` instead."""
    return transform(
        expression, lambda e: replace(e, index=positions[e.index]) if isinstance(e, ColumnRef) else e
    )


def columns_of(plan: Plan) -> tuple[ColumnRef, ...]:
    """A reference to each of the node's output columns."""
    return tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))


def conjuncts(predicate: Expression) -> list[Expression]:
    """The conditions that all must be true for the predicate to be."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for argument in predicate.arguments for part in conjuncts(argument)]
    return [predicate]


def conjunction(parts: Sequence[Expression]) -> Expression:
    """One predicate that is true where all of one or more are."""
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), pa.bool_())
