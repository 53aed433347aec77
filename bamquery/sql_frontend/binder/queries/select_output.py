"""What SELECT puts out: its items, conditions on groups and windows, and order, over the rows before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, Literal
from bamquery.plan.nodes import Aggregate, Plan, Project, Sort, SortKey
from bamquery.sql_frontend.binder.expressions.aggregates import rewrite_over_outputs
from bamquery.sql_frontend.fault_collection import FaultCollector, apply_to_each, errors_at
from bamquery.sql_frontend.functions.coercion import decode


@dataclass(frozen=True, slots=True)
class Item:
    """One output column; `node` is the expression as written, None for one that * stands for."""

    expression: Expression
    name: str
    node: exp.Expr | None


@dataclass(frozen=True, slots=True)
class Order:
    """One ORDER BY term, with the place it was written at."""

    key: SortKey
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class SelectOutput:
    """What is computed from the rows, or groups, that FROM, WHERE and GROUP BY give."""

    items: Sequence[Item]
    having: Expression | None
    orders: Sequence[Order]
    qualify: Expression | None = None
    on: Sequence[Expression] = ()

    def map_expressions(self, move: Callable[[Expression], Expression], sql: str) -> SelectOutput:
        """The same over other rows, `move` applied to every expression."""
        faults = FaultCollector(sql)
        moved = SelectOutput((), None, ())
        with faults.collect():
            items = apply_to_each(
                lambda item: replace(item, expression=move(item.expression)), self.items, sql
            )
            moved = replace(moved, items=items)
        with faults.collect():
            moved = replace(moved, having=None if self.having is None else move(self.having))
        with faults.collect():
            orders = apply_to_each(
                lambda order: _replace_key(order, move(order.key.expression)), self.orders, sql
            )
            moved = replace(moved, orders=orders)
        with faults.collect():
            moved = replace(moved, qualify=None if self.qualify is None else move(self.qualify))
        with faults.collect():
            moved = replace(moved, on=apply_to_each(move, self.on, sql))
        faults.check()
        return moved


def apply_distinct(plan: Plan, output: SelectOutput, sql: str) -> tuple[Plan, SelectOutput]:
    """Each row of the items once."""
    values = [decode(item.expression) for item in output.items]
    names = tuple(item.name for item in output.items)
    plan = Project(plan, tuple(values), names)
    keys = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))

    def move(order: Order) -> Order:
        with errors_at(sql, order.node):
            return _replace_key(order, rewrite_over_outputs(order.key.expression, values, names))

    items = [replace(item, expression=key) for item, key in zip(output.items, keys, strict=True)]
    orders = apply_to_each(move, output.orders, sql)
    return Aggregate(plan, keys, (), names), SelectOutput(items, None, orders)


def apply_distinct_on(plan: Plan, output: SelectOutput) -> tuple[Plan, SelectOutput]:
    """The first row, in the order asked for, of those that have the same values of what ON names."""
    orders = [order.key for order in output.orders]
    wanted = [
        *output.on,
        *(decode(item.expression) for item in output.items),
        *(k.expression for k in orders),
    ]
    values = list(dict.fromkeys(wanted))
    names = tuple(f"value{i}" for i in range(len(values)))
    plan = Project(plan, tuple(values), names)
    columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields)]
    if orders:
        plan = Sort(plan, tuple(replace(k, expression=columns[values.index(k.expression)]) for k in orders))
    count = len(dict.fromkeys(output.on))
    first = tuple(AggregateCall("first", (column,), column.type) for column in columns[count:])

    def move(expression: Expression) -> Expression:
        return columns[values.index(decode(expression))]

    on = tuple(columns[:count])
    return Aggregate(plan, on, first, names), replace(
        output, having=None, qualify=None, on=()
    ).map_expressions(move, "")


def apply_order(plan: Plan, output: SelectOutput) -> Plan:
    """The items, sorted; keys that are not among them are computed and dropped again."""
    keys = [order.key for order in output.orders if not isinstance(order.key.expression, Literal)]
    shown = [item.expression for item in output.items]
    hidden = [e for e in dict.fromkeys(key.expression for key in keys) if e not in shown]
    names = [*(item.name for item in output.items), *(f"key{i}" for i in range(len(hidden)))]
    expressions = [*shown, *hidden]
    plan = Project(plan, tuple(expressions), tuple(names))
    columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields)]
    if keys:
        sorts = (replace(key, expression=columns[expressions.index(key.expression)]) for key in keys)
        plan = Sort(plan, tuple(sorts))
    if not hidden:
        return plan
    return Project(plan, tuple(columns[: len(shown)]), tuple(names[: len(shown)]))


def _replace_key(order: Order, expression: Expression) -> Order:
    return replace(order, key=replace(order.key, expression=expression))
