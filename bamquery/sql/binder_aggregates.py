"""Grouping: aggregate calls taken out of expressions, and what is left put over keys and aggregates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from bamquery.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    referenced_columns,
)
from bamquery.plan.nodes import Aggregate, Plan
from bamquery.sql import aggregates, operators
from bamquery.sql.coercion import decode
from bamquery.sql.failures import placed
from bamquery.sql.scope import Scope
from bamquery.sql.spelling import spell


class AggregateCollector:
    """Gathers a query's aggregate calls while its expressions are bound.

    Within those expressions the call number `k` stands as column `width + k`, where `width` is the number
    of the scope's columns; `over_groups` puts them over the keys and calls of the `Aggregate` node.
    """

    def __init__(self, sql: str, scope: Scope) -> None:
        self._sql = sql
        self._width = len(scope.columns)
        self._calls: list[AggregateCall] = []
        self._names: list[str] = []
        self._places: dict[int, exp.Expr] = {}

    def note(self, column: ColumnRef, node: exp.Expr) -> None:
        """Remember where a column is named outside aggregates, should it turn out not to be a key."""
        self._places.setdefault(column.index, node)

    def bind(
        self, node: exp.Anonymous, where: exp.Expr | None, bind: Callable[[exp.Expr], Expression]
    ) -> ColumnRef:
        """The column that stands for an aggregate call; `bind` is for its arguments and filter."""
        arguments = list(node.expressions)
        distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
            with placed(self._sql, node):
                if not arguments:
                    raise ValueError("DISTINCT needs an argument")
        if node.name.lower() == "count" and not distinct and [type(a) for a in arguments] == [exp.Star]:
            arguments = []
        bound = [bind(argument) for argument in arguments]
        condition = None if where is None else bind(where)
        with placed(self._sql, node):
            read = referenced_columns(*bound)
            if read and all(index < 0 for index in read):
                raise ValueError(
                    f"{node.name.lower()}() over columns of the query around this one is not supported"
                )
            if condition is not None:
                condition = operators.as_boolean(condition, "FILTER")
            call = aggregates.call(node.name, bound, distinct=distinct, where=condition)
        if call not in self._calls:
            self._calls.append(call)
            self._names.append(spell(node, self._sql))
        position = self._calls.index(call)
        return ColumnRef(self._width + position, self._names[position], call.type)

    def aggregate(self, child: Plan, keys: Sequence[Expression], names: Sequence[str]) -> Plan:
        """The node that computes the keys, then the calls gathered."""
        return Aggregate(child, tuple(keys), tuple(self._calls), (*names, *self._names))

    def over_groups(
        self, expression: Expression, keys: Sequence[Expression], names: Sequence[str]
    ) -> Expression:
        """The expression over the output of `aggregate`.

        Raises:
            SqlError: it names a column that is neither a key nor within an aggregate.
        """

        def step(node: Expression) -> Expression:
            for candidate in (node, decode(node)):
                # A literal may have to stay one: a pattern, a unit, a member of an IN list.
                if candidate in keys and not isinstance(candidate, Literal):
                    position = keys.index(candidate)
                    return ColumnRef(position, names[position], candidate.type)
            match node:
                case ColumnRef(index=index) if index < 0:  # of a query around this one
                    return node
                case ColumnRef(index=index) if index >= self._width:
                    return replace(node, index=index - self._width + len(keys))
                case ColumnRef(index=index, name=name):
                    with placed(self._sql, self._places.get(index)):
                        raise ValueError(
                            f'column "{name}" must be in GROUP BY or within an aggregate, such as any_value()'
                        )
                case Call(arguments=arguments):
                    return replace(node, arguments=tuple(step(argument) for argument in arguments))
                case Cast(argument=argument):
                    return replace(node, argument=step(argument))
                case _:
                    return node

        return step(expression)


def over_outputs(expression: Expression, outputs: Sequence[Expression], names: Sequence[str]) -> Expression:
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
