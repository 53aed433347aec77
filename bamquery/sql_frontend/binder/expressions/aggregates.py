"""Grouping: aggregate calls taken out of expressions, and what is left put over keys and aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    referenced_columns,
)
from bamquery.plan.nodes import Aggregate, Plan
from bamquery.sql_frontend.binder.expressions.grouping_sets import KEY_PLACE, grouping_number, key_position
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.fault_collection import FaultCollector, apply_to_each, errors_at
from bamquery.sql_frontend.functions import aggregates, operators
from bamquery.sql_frontend.functions.aggregate_arguments import percentile
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.sql_frontend.spelling.expressions import inner_name
from bamquery.sql_frontend.syntax.calls import function_of, is_windowed, read_call
from bamquery.sql_frontend.syntax.walking import walk

Sets = Sequence[tuple[int, ...]]
"""Grouping sets: positions of keys."""

_OF_COLUMNS: Final = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "is_distinct_from"),
    *("is_not_distinct_from", "is_null", "is_not_null", "and", "or", "not", "case", "coalesce"),
    *("greatest", "least", "concat", "add", "subtract", "multiply", "divide", "floor_divide"),
    *("modulo", "negate"),
)
"""Functions that take a column wherever they take a literal."""

WINDOW_PLACE: Final = 1 << 40
"""Columns from here on stand for calls over windows, computed later: no plan has so many columns."""


def is_key(expression: Expression, place: int) -> bool:
    """Whether the expression stands for the key of grouping sets at that position."""
    return isinstance(expression, ColumnRef) and expression.index == KEY_PLACE + place


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate that makes groups, not only such over windows.

    Those of queries within the expression are left out.
    """
    return any(
        aggregates.is_aggregate(call.name) or isinstance(call.parent, exp.WithinGroup)
        for call in _own_nodes(node)
        if isinstance(call, exp.Anonymous) and not is_windowed(call)
    )


def has_window(node: exp.Expr) -> bool:
    """Whether an expression contains a call over a window; those of queries within it are left out."""
    return any(isinstance(below, exp.Window) for below in _own_nodes(node))


def _own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    return walk(node, prune=lambda below: isinstance(below, exp.Query))


def bind_aggregate(node: exp.Expr, sql: str, bind: Callable[[exp.Expr], Expression]) -> AggregateCall:
    """The call of an aggregate, with whatever stands around it; `bind` is for the expressions within.

    Raises:
        SqlError: arguments, order or filter do not fit it.
    """
    with errors_at(sql, node):
        syntax = read_call(node)
    arguments: Sequence[exp.Expr] = syntax.arguments
    if (
        syntax.name == "count"
        and not (syntax.distinct or syntax.order)
        and [type(a) for a in arguments] == [exp.Star]
    ):
        arguments = []
    faults = FaultCollector(sql)
    bound: Sequence[Expression] = ()
    order: Sequence[SortKey] = ()
    condition: Expression | None = None
    with faults.collect():
        bound = apply_to_each(bind, arguments, sql)
    with faults.collect():
        if not is_windowed(syntax.node):
            apply_to_each(lambda term: check_sort_term(term.this, sql), syntax.order, sql)
        order = apply_to_each(lambda term: sort_key(term, syntax.node, sql, bind), syntax.order, sql)
    with faults.collect():
        condition = None if syntax.where is None else bind(syntax.where)
    faults.check()
    read = referenced_columns(*bound)
    with errors_at(sql, syntax.node):
        if read and all(index < 0 for index in read):
            raise ValueError(f"{syntax.name}() over columns of the query around this one is not supported")
    with errors_at(sql, syntax.node):
        if condition is not None:
            condition = operators.as_boolean(condition, "FILTER")
        if syntax.ordered_set and len(bound) > 1:
            share = percentile(syntax.name, bound[1], descending=syntax.descending_quantile)
            bound = [bound[0], share, *bound[2:]]
        if syntax.distinct:
            _check_order(order, [decode(argument) for argument in bound])
        return aggregates.call(syntax.name, bound, distinct=syntax.distinct, where=condition, order=order)


def check_sort_term(node: exp.Expr, sql: str) -> None:
    """Refuse a constant that is no whole number: what is meant is no order, such as a separator.

    Raises:
        SqlError: it is such a constant.
    """
    with errors_at(sql, node):
        is_constant = isinstance(node, exp.Literal | exp.Boolean | exp.Null)
        if is_constant and not (isinstance(node, exp.Literal) and node.is_int):
            raise ValueError("ordering by a constant has no effect")


def sort_key(term: exp.Ordered, call: exp.Expr, sql: str, bind: Callable[[exp.Expr], Expression]) -> SortKey:
    """A term of ORDER BY within a call or a window, which is the place of its errors."""
    with errors_at(sql, call):
        if isinstance(term.this, exp.Var):
            raise ValueError("ORDER BY ALL cannot stand within a function call")
    value = decode(bind(term.this))
    return SortKey(value, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))


def _check_order(order: Sequence[SortKey], arguments: Sequence[Expression]) -> None:
    """Raise `ValueError` where distinct arguments are ordered by something else."""
    names = [str(i) for i in range(len(arguments))]
    for key in order:
        try:
            rewrite_over_outputs(key.expression, arguments, names)
        except ValueError:
            raise ValueError("with DISTINCT, ORDER BY within a call needs one of its arguments") from None


class AggregateCollector:
    """Gathers a query's aggregate calls while its expressions are bound.

    Within those expressions the call number `k` stands as column `width + k`, where `width` is the number
    of the scope's columns; `rewrite_over_groups` puts them over the keys and calls of the `Aggregate` node.
    """

    def __init__(self, sql: str, scope: Scope) -> None:
        self._sql = sql
        self._width = len(scope.columns)
        self._calls: list[AggregateCall] = []
        self._positions: dict[AggregateCall, int] = {}
        self._names: list[str] = []
        self._places: dict[int, exp.Expr] = {}
        self._groupings: dict[Expression, exp.Expr] = {}
        self._named_keys: dict[int, ColumnRef] = {}

    def note(self, column: ColumnRef, node: exp.Expr) -> None:
        """Remember where a column is named outside aggregates, should it turn out not to be a key."""
        self._places.setdefault(column.index, node)

    def name_key(self, node: exp.Expr, place: int, key: Expression) -> None:
        """Let a selected expression stand for the key of grouping sets at that position."""
        name = key.name if isinstance(key, ColumnRef) else "key"
        self._named_keys[id(node)] = ColumnRef(KEY_PLACE + place, name, key.type)

    def named_key(self, node: exp.Expr) -> Expression | None:
        """What stands for the key that a selected expression names, or None if it names none."""
        return self._named_keys.get(id(node))

    def bind(self, node: exp.Expr, bind: Callable[[exp.Expr], Expression]) -> Expression:
        """What stands for an aggregate call; `bind` is for its arguments, order and filter."""
        call = bind_aggregate(node, self._sql, bind)
        position = self._positions.setdefault(call, len(self._calls))
        if position == len(self._calls):
            self._calls.append(call)
            self._names.append(inner_name(node.this if isinstance(node, exp.Filter) else node, self._sql))
        column = ColumnRef(self._width + position, self._names[position], call.type)
        function = function_of(node)
        assert function is not None
        return aggregates.finish_aggregate(function.name, column)

    def grouping(self, node: exp.Anonymous, arguments: Sequence[Expression]) -> Expression:
        """What stands for GROUPING(arguments) until it is known what is grouped by."""
        call = Call("grouping", tuple(decode(argument) for argument in arguments), pa.int64())
        self._groupings.setdefault(call, node)
        return call

    @property
    def has_grouping(self) -> bool:
        """Whether GROUPING() stands anywhere."""
        return bool(self._groupings)

    def aggregate(
        self, child: Plan, keys: Sequence[Expression], names: Sequence[str], sets: Sets = ()
    ) -> Plan:
        """The node that computes the keys, then the calls gathered."""
        all_names = (*names, *self._names, *(["grouping set"] if sets else []))
        return Aggregate(child, tuple(keys), tuple(self._calls), all_names, tuple(map(tuple, sets)))

    def rewrite_over_groups(
        self,
        expression: Expression,
        keys: Sequence[Expression],
        names: Sequence[str],
        sets: Sets = (),
        *,
        literals: bool = True,
    ) -> Expression:
        """The expression over the output of `aggregate`.

        `literals` says that a literal which is a key stands for that key, null where a set is without it.

        Raises:
            SqlError: it names a column that is neither a key nor within an aggregate.
        """
        number = ColumnRef(len(keys) + len(self._calls), "grouping set", pa.int64())
        partial = {
            place for place in range(len(keys)) if not all(place in members for members in sets)
        }  # null in some sets, even what is a literal

        def step(node: Expression, *, among_columns: bool = True) -> Expression:
            for candidate in (node, decode(node)):
                # A literal may have to stay one: a pattern, a unit, a member of an IN list.
                position = key_position(candidate, keys)
                if position is not None and (
                    not isinstance(candidate, Literal)
                    or (among_columns and position in partial and not candidate.is_null)
                ):
                    return ColumnRef(position, names[position], candidate.type)
            match node:
                case ColumnRef(index=index) if (
                    index < 0 or index >= WINDOW_PLACE
                ):  # of a query around, or later
                    return node
                case ColumnRef(index=index) if index >= self._width:
                    return replace(node, index=index - self._width + len(keys))
                case ColumnRef(index=index, name=name):
                    with errors_at(self._sql, self._places.get(index)):
                        raise ValueError(
                            f'column "{name}" must be in GROUP BY or within an aggregate, such as any_value()'
                        )
                case Call(function="grouping", arguments=arguments):
                    with errors_at(self._sql, self._groupings.get(node)):
                        return grouping_number(arguments, keys, sets, number)
                case Call(function=function, arguments=arguments):
                    free = function in _OF_COLUMNS
                    return replace(
                        node, arguments=tuple(step(argument, among_columns=free) for argument in arguments)
                    )
                case Cast(argument=argument):
                    return replace(node, argument=step(argument))
                case _:
                    return node

        return step(expression, among_columns=literals)


def rewrite_over_outputs(
    expression: Expression, outputs: Sequence[Expression], names: Sequence[str]
) -> Expression:
    """The expression over columns that hold `outputs`; ValueError where it needs something else."""

    def step(node: Expression) -> Expression:
        if node in outputs:
            position = outputs.index(node)
            return ColumnRef(position, names[position], node.type)
        match node:
            case ColumnRef(index=index) if index < 0:  # of a query around this one
                return node
            case ColumnRef(name=name):
                raise ValueError(f'with DISTINCT, ORDER BY needs columns that are selected: "{name}" is not')
            case Call(arguments=arguments):
                return replace(node, arguments=tuple(step(argument) for argument in arguments))
            case Cast(argument=argument):
                return replace(node, argument=step(argument))
            case _:
                return node

    return step(expression)
