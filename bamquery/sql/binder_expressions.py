"""Expressions of the syntax tree to bound, typed expressions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NoReturn

import pyarrow as pa
from sqlglot import exp

from bamquery.naming import suggestion
from bamquery.plan.expressions import ColumnRef, Expression
from bamquery.plan.types import INTERVAL
from bamquery.sql import binder_subqueries, functions, operators
from bamquery.sql.aggregates import AGGREGATES, REFUSED, is_aggregate
from bamquery.sql.binder_aggregates import AggregateCollector
from bamquery.sql.binder_windows import WindowCollector
from bamquery.sql.call_syntax import function_of
from bamquery.sql.environment import NOTHING_AROUND, Environment
from bamquery.sql.failures import each, placed
from bamquery.sql.functions import FUNCTIONS, VOLATILE
from bamquery.sql.positions import number_text
from bamquery.sql.scope import Scope, SelectAliases
from bamquery.sql.types import from_syntax
from bamquery.sql.windows import WINDOW_FUNCTIONS, is_window_function

_MAX_WIDTH: Final = 38


class ExpressionBinder:
    """Binds expressions of one clause.

    Args:
        sql: the text, for the places of errors.
        scope: the columns that may be named.
        clause: what the expressions belong to, in words for errors.
        aliases: the select list's, looked at where the scope has no such column.
        aggregates: where aggregate calls go; without it they are errors.
        windows: where calls over windows go; without it they are errors.
        firm_columns: positions of the columns that come before aliases; all, where None.
        environment: what the query sees of the text around it.
        bind_inner: binds a query within an expression; without it they are errors.
    """

    def __init__(
        self,
        sql: str,
        scope: Scope,
        clause: str,
        *,
        aliases: SelectAliases | None = None,
        aggregates: AggregateCollector | None = None,
        windows: WindowCollector | None = None,
        firm_columns: Collection[int] | None = None,
        environment: Environment = NOTHING_AROUND,
        bind_inner: binder_subqueries.BindInner | None = None,
    ) -> None:
        self.sql = sql
        self.scope = scope
        self.clause = clause
        self.aliases = aliases
        self.aggregates = aggregates
        self.environment = environment
        self.bind_inner = bind_inner
        self.windows = windows
        self._firm_columns = firm_columns
        self._within: list[str] = []  # aliases that are being bound

    def bind(self, node: exp.Expr) -> Expression:
        """The bound expression.

        Raises:
            SqlError: unknown names, types that do not fit; with every place.
        """
        bind = _BINDERS.get(type(node))
        if bind is None:
            with placed(self.sql, node):
                raise ValueError(f"{type(node).__name__} cannot stand in {self.clause}")
        return bind(self, node)

    def bind_all(self, nodes: Sequence[exp.Expr]) -> Sequence[Expression]:
        """Several; all their faults in one error."""
        return each(self.bind, nodes, self.sql)

    def _column(self, node: exp.Column) -> Expression:
        with placed(self.sql, node):
            if isinstance(node.this, exp.Star):
                return self._star(node)
            column = self._own_column(node.name, node.table)
            firm = column is not None and (self._firm_columns is None or column.index in self._firm_columns)
            if not firm and self.aliases is not None and not node.table:
                aliased = self.aliases.find(node.name)
                if aliased is not None and node.name not in self._within:
                    return self._alias(node.name, aliased)
            if column is None:
                outer = self._column_outside(node.name, node.table, node)
                if outer is not None:
                    return outer
                others = self.aliases.names if self.aliases is not None and not node.table else []
                raise ValueError(self.scope.missing(node.name, others, node.table))
        if self.aggregates is not None:
            self.aggregates.note(column, node)
        return column

    def _own_column(self, name: str, table: str) -> ColumnRef | None:
        if table and not self.scope.has_table(table):
            return None
        return self.scope.find(name, table)

    def _column_outside(self, name: str, table: str, node: exp.Expr) -> Expression | None:
        """The column as one of the queries around this one, if there are any that have it."""
        correlation = self.environment.correlation
        if correlation is None or (table and self.scope.has_table(table)):
            return None
        return correlation.find(name, table, node)

    def outer_column(self, name: str, table: str, node: exp.Expr) -> Expression | None:
        """For a query within this clause: a column of this query, or of one around it."""
        column = self._own_column(name, table)
        if column is None:
            return self._column_outside(name, table, node)
        if self.aggregates is not None:
            self.aggregates.note(column, node)
        return column

    def _star(self, node: exp.Expr) -> NoReturn:
        with placed(self.sql, node):
            raise ValueError(f"* cannot stand within an expression of {self.clause}")

    def _alias(self, name: str, aliased: exp.Expr) -> Expression:
        self._within.append(name)
        try:
            return self.bind(aliased)
        finally:
            self._within.pop()

    def _literal(self, node: exp.Literal) -> Expression:
        text = str(node.this)
        if node.args["is_string"]:
            return operators.literal(text, operators.STRING)
        if "e" in text.lower():
            return operators.literal(float(text), pa.float64())
        if "." not in text:
            return operators.integer_literal(int(text))
        # The width counts the digits as written: 0.5 is DECIMAL(2,1), .5 is DECIMAL(1,1).
        written = number_text(node, self.sql).replace("_", "")
        width, scale = len(written) - 1, len(written.partition(".")[2])
        if width > _MAX_WIDTH:
            return operators.literal(float(text), pa.float64())
        return operators.literal(Decimal(text), pa.decimal128(width, scale))

    def _boolean(self, node: exp.Boolean) -> Expression:
        return operators.literal(bool(node.this), operators.BOOLEAN)

    def _null(self, node: exp.Null) -> Expression:
        return operators.literal(None, pa.null())

    def _paren(self, node: exp.Paren) -> Expression:
        return self.bind(node.this)

    def _operator(self, build: Callable[..., Expression], node: exp.Expr, *operands: exp.Expr) -> Expression:
        bound = self.bind_all(operands)
        with placed(self.sql, node):
            return build(*bound)

    def _chain(self, function: str, node: exp.Expr) -> Expression:
        operands = self.bind_all(list(_flattened(node)))
        with placed(self.sql, node):
            return operators.logical(function, operands)

    def _is(self, node: exp.Is) -> Expression:
        value = node.expression
        if isinstance(value, exp.Null):
            return self._operator(lambda o: operators.is_null_test(o, negate=False), node, node.this)
        return self._operator(lambda o: operators.is_truth_value(o, bool(value.this)), node, node.this)

    def _not(self, node: exp.Not) -> Expression:
        below = node.this
        if isinstance(below, exp.Is) and isinstance(below.expression, exp.Null):
            return self._operator(lambda o: operators.is_null_test(o, negate=True), node, below.this)
        return self._operator(operators.negation, node, below)

    def _between(self, node: exp.Between) -> Expression:
        return self._operator(operators.between, node, node.this, node.args["low"], node.args["high"])

    def _in(self, node: exp.In) -> Expression:
        if node.args.get("query") is not None:
            return binder_subqueries.bind_in(self, node)
        value, *candidates = self.bind_all([node.this, *node.expressions])
        with placed(self.sql, node):
            if not candidates:
                raise ValueError("IN needs at least one value")
            return operators.is_in(value, candidates)

    def _like(self, function: str, node: exp.Expr) -> Expression:
        text, pattern = self.bind_all([node.this, node.expression])
        with placed(self.sql, node):
            matches = functions.like(function, text, pattern)
            return operators.negation(matches) if node.args.get("negate") else matches

    def _pattern(self, function: str, node: exp.Expr) -> Expression:
        return self._operator(partial(functions.like, function), node, node.this, node.expression)

    def _escape(self, node: exp.Escape) -> Expression:
        match = node.this
        function = _ESCAPED.get(type(match))
        with placed(self.sql, node):
            if function is None:
                raise ValueError("ESCAPE belongs to LIKE or ILIKE")
        escape = node.expression if isinstance(node.expression, exp.Expr) else exp.Null()
        operands = self.bind_all([match.this, match.expression, escape])
        with placed(self.sql, node):
            matches = functions.like(function, *operands)
            return operators.negation(matches) if match.args.get("negate") else matches

    def _interval(self, node: exp.Interval) -> Expression:
        amount, unit = self.bind(node.this), node.args.get("unit")
        with placed(self.sql, node):
            if unit is None:
                return operators.explicit_cast(amount, INTERVAL)
            return functions.of_unit(amount, unit.name)

    def _at_time_zone(self, node: exp.AtTimeZone) -> Expression:
        return self._operator(functions.at_time_zone, node, node.this, node.args["zone"])

    def _position(self, node: exp.StrPosition) -> Expression:
        return self._call("position", node, node.this, node.args["substr"])

    def _overlay(self, node: exp.Overlay) -> Expression:
        places = [node.args["from_"], node.args.get("for_")]
        return self._call(
            "overlay", node, node.this, node.expression, *(place for place in places if place is not None)
        )

    def _call(self, name: str, node: exp.Expr, *operands: exp.Expr) -> Expression:
        """A function that is written in a way of its own."""
        arguments = self.bind_all(operands)
        with placed(self.sql, node):
            return functions.call(name, arguments)

    def _case(self, node: exp.Case) -> Expression:
        subject = None if node.this is None else self.bind(node.this)
        otherwise = node.args.get("default") or exp.Null()
        branches = node.args["ifs"]
        bound = self.bind_all(
            [*(branch.this for branch in branches), *(branch.args["true"] for branch in branches), otherwise]
        )
        conditions, values = bound[: len(branches)], bound[len(branches) : -1]
        with placed(self.sql, node):
            if subject is not None:
                conditions = [operators.compare("equal", subject, value) for value in conditions]
            return functions.case(list(zip(conditions, values, strict=True)), bound[-1])

    def _if(self, node: exp.If) -> Expression:
        otherwise = node.args.get("false")
        with placed(self.sql, node):
            if otherwise is None:
                raise ValueError("if() takes 3 arguments, not 2")
        condition, value, other = self.bind_all([node.this, node.args["true"], otherwise])
        with placed(self.sql, node):
            return functions.case([(condition, value)], other)

    def _cast(self, node: exp.Cast | exp.TryCast) -> Expression:
        argument = self.bind(node.this)
        target = node.args["to"]
        with placed(self.sql, target):
            kind = from_syntax(target)
            if kind is None:
                raise ValueError(f"there is no type {_type_text(target)}")
        with placed(self.sql, node):
            return operators.explicit_cast(argument, kind, try_=isinstance(node, exp.TryCast))

    def _extract(self, node: exp.Extract) -> Expression:
        value = self.bind(node.expression)
        with placed(self.sql, node):
            return functions.date_part(str(node.this.this), value, "extract")

    def _substring(self, node: exp.Substring) -> Expression:
        start = node.args.get("start") or exp.Literal.number(1)
        parts = [node.this, start, *([node.args["length"]] if node.args.get("length") else [])]
        arguments = self.bind_all(parts)
        with placed(self.sql, node):
            return functions.call("substring", arguments)

    def _trim(self, node: exp.Trim) -> Expression:
        characters = node.args.get("expression")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")).upper(), "trim")
        return self._call(name, node, node.this, *([] if characters is None else [characters]))

    def _function(self, node: exp.Anonymous) -> Expression:
        name = node.name
        if is_aggregate(name):
            return self._aggregate(node)
        if name.lower() in ("grouping", "grouping_id"):
            return self._grouping(node)
        if name.lower() not in FUNCTIONS:
            with placed(self.sql, node):
                if name.lower() in VOLATILE:
                    raise ValueError(f"{name.lower()}() is not supported: its answers differ from run to run")
                if name.lower() in REFUSED:
                    raise ValueError(f"{name.lower()}() is not supported: {REFUSED[name.lower()]}")
                if is_window_function(name):
                    raise ValueError(f"{name.lower()}() needs OVER (...)")
                hint = suggestion(name, [*FUNCTIONS, *AGGREGATES, *WINDOW_FUNCTIONS])
                raise ValueError(f"there is no function {name}().{hint}")
        arguments = self.bind_all(node.expressions)
        with placed(self.sql, node):
            return functions.call(name, arguments)

    def _grouping(self, node: exp.Anonymous) -> Expression:
        with placed(self.sql, node):
            if self.aggregates is None:
                raise ValueError(f"{self.clause} cannot contain GROUPING(), which needs groups")
        return self.aggregates.grouping(node, self.bind_all(node.expressions))

    def _window(self, node: exp.Window) -> Expression:
        with placed(self.sql, node):
            if self.windows is None:
                raise ValueError(f"a call over a window (OVER) cannot stand in {self.clause}")
        inner = ExpressionBinder(
            self.sql,
            self.scope,
            "a call over a window",
            aliases=self.aliases,
            aggregates=self.aggregates,
            environment=self.environment,
            bind_inner=self.bind_inner,
        )
        return self.windows.bind(node, inner.bind)

    def _modified(self, node: exp.Filter | exp.WithinGroup) -> Expression:
        """An aggregate with something around it."""
        function = function_of(node)
        word = "FILTER" if isinstance(node, exp.Filter) else "WITHIN GROUP"
        with placed(self.sql, node):
            within_group = function is not None and isinstance(function.parent, exp.WithinGroup)
            if function is None or not (is_aggregate(function.name) or within_group):
                raise ValueError(f"{word} belongs to an aggregate function")
        return self._aggregate(node)

    def _aggregate(self, node: exp.Expr) -> Expression:
        function = function_of(node)
        assert function is not None
        name = function.name.lower()
        with placed(self.sql, node):
            if self.aggregates is None:
                raise ValueError(f"{name}() is an aggregate, which {self.clause} cannot contain")
        inner = ExpressionBinder(
            self.sql,
            self.scope,
            f"the arguments of {name}()",
            aliases=self.aliases,
            environment=self.environment,
            bind_inner=self.bind_inner,
        )
        return self.aggregates.bind(node, inner.bind)


_ESCAPED: Final[Mapping[type[exp.Expr], str]] = MappingProxyType(
    {exp.Like: "like_escape", exp.ILike: "ilike_escape"}
)


def _flattened(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a chain of one connector, without recursion: such chains get long."""
    kind = type(node)
    pending = [node]
    while pending:
        operand = pending.pop()
        if type(operand) is kind:
            pending += [operand.args["expression"], operand.args["this"]]
        else:
            yield operand


def _type_text(node: exp.DataType) -> str:
    return str(node.args.get("kind") or node.this.value)


_Bind = Callable[[ExpressionBinder, Any], Expression]


def _binary(build: Callable[[Expression, Expression], Expression]) -> _Bind:
    return lambda binder, node: binder._operator(build, node, node.this, node.expression)


def _bitwise(function: str) -> _Bind:
    return _binary(lambda left, right: operators.bitwise(function, left, right))


def _matching(function: str) -> _Bind:
    return lambda binder, node: binder._pattern(function, node)


def _named(name: str) -> _Bind:
    """A function that is written without parentheses."""
    return lambda binder, node: binder._call(name, node)


def _comparison(function: str) -> _Bind:
    plain = _binary(lambda left, right: operators.compare(function, left, right))

    def bind(binder: ExpressionBinder, node: Any) -> Expression:
        if isinstance(node.expression, exp.Any | exp.All):
            return binder_subqueries.bind_quantified(binder, function, node)
        return plain(binder, node)

    return bind


_BINDERS: Final[Mapping[type[exp.Expr], _Bind]] = MappingProxyType(
    {
        exp.Column: ExpressionBinder._column,
        exp.Star: ExpressionBinder._star,
        exp.Literal: ExpressionBinder._literal,
        exp.Boolean: ExpressionBinder._boolean,
        exp.Null: ExpressionBinder._null,
        exp.Paren: ExpressionBinder._paren,
        exp.And: lambda binder, node: binder._chain("and", node),
        exp.Or: lambda binder, node: binder._chain("or", node),
        exp.Not: ExpressionBinder._not,
        exp.Is: ExpressionBinder._is,
        exp.EQ: _comparison("equal"),
        exp.NEQ: _comparison("not_equal"),
        exp.LT: _comparison("less"),
        exp.LTE: _comparison("less_equal"),
        exp.GT: _comparison("greater"),
        exp.GTE: _comparison("greater_equal"),
        exp.NullSafeEQ: _comparison("is_not_distinct_from"),
        exp.NullSafeNEQ: _comparison("is_distinct_from"),
        exp.Between: ExpressionBinder._between,
        exp.In: ExpressionBinder._in,
        exp.Like: lambda binder, node: binder._like("like", node),
        exp.ILike: lambda binder, node: binder._like("ilike", node),
        exp.Add: _binary(operators.add),
        exp.Sub: _binary(operators.subtract),
        exp.Mul: _binary(operators.multiply),
        exp.Div: _binary(operators.divide),
        exp.IntDiv: _binary(operators.floor_divide),
        exp.Mod: _binary(operators.modulo),
        exp.Pow: _binary(operators.power),
        exp.DPipe: _binary(operators.concatenate),
        exp.Neg: lambda binder, node: binder._operator(operators.minus, node, node.this),
        exp.Abs: lambda binder, node: binder._call("abs", node, node.this),
        exp.BitwiseAnd: _bitwise("bit_and"),
        exp.BitwiseOr: _bitwise("bit_or"),
        exp.BitwiseNot: lambda binder, node: binder._operator(operators.bitwise_not, node, node.this),
        exp.BitwiseLeftShift: _bitwise("shift_left"),
        exp.BitwiseRightShift: _bitwise("shift_right"),
        exp.Escape: ExpressionBinder._escape,
        exp.Glob: _matching("glob"),
        exp.SimilarTo: _matching("regexp_full_match"),
        exp.RegexpLike: _matching("regexp_matches"),
        exp.StartsWith: _matching("starts_with"),
        exp.Interval: ExpressionBinder._interval,
        exp.AtTimeZone: ExpressionBinder._at_time_zone,
        exp.StrPosition: ExpressionBinder._position,
        exp.Overlay: ExpressionBinder._overlay,
        exp.CurrentDate: _named("current_date"),
        exp.CurrentTimestamp: _named("current_timestamp"),
        exp.Localtime: _named("localtime"),
        exp.Localtimestamp: _named("localtimestamp"),
        exp.Case: ExpressionBinder._case,
        exp.If: ExpressionBinder._if,
        exp.Cast: ExpressionBinder._cast,
        exp.TryCast: ExpressionBinder._cast,
        exp.Extract: ExpressionBinder._extract,
        exp.Substring: ExpressionBinder._substring,
        exp.Trim: ExpressionBinder._trim,
        exp.Anonymous: ExpressionBinder._function,
        exp.Filter: ExpressionBinder._modified,
        exp.WithinGroup: ExpressionBinder._modified,
        exp.Window: ExpressionBinder._window,
        exp.Subquery: binder_subqueries.bind_scalar,
        exp.Exists: binder_subqueries.bind_exists,
    }
)
