"""SELECT to a logical plan, clause by clause in the order that they take effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import Reason, UnsupportedError
from bamquery.naming import fold as fold_name
from bamquery.plan.constants import convert
from bamquery.plan.evaluation import fold
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, Literal, referenced_columns
from bamquery.plan.nodes import Aggregate, Filter, Limit, Plan, Project, Sort, SortKey
from bamquery.plan.unnesting import UnnestingError, unnested
from bamquery.sql import operators
from bamquery.sql.binder_aggregates import AggregateCollector, Sets, has_aggregate, has_window, over_outputs
from bamquery.sql.binder_expressions import ExpressionBinder
from bamquery.sql.binder_grouping import Terms, has_sets, plain_terms, terms_of_sets
from bamquery.sql.binder_sample import sampled
from bamquery.sql.binder_set_operations import bind_set_operation, ordered_output
from bamquery.sql.binder_sources import SourceBinder, bind_values
from bamquery.sql.binder_windows import WindowCollector
from bamquery.sql.binder_with import bind_with
from bamquery.sql.catalog import Catalog
from bamquery.sql.coercion import decode
from bamquery.sql.environment import NOTHING_AROUND, Environment
from bamquery.sql.failures import Faults, each, placed
from bamquery.sql.operators import literal
from bamquery.sql.scope import Scope, SelectAliases
from bamquery.sql.spelling import column_name
from bamquery.sql.window_syntax import read_definitions

_ONE_ROW: Final = Scope()
_WITH_WINDOWS: Final = frozenset({"SELECT", "QUALIFY", "ORDER BY", "DISTINCT ON"})
"""Clauses that come after the rows and groups are there."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One output column; `node` is the expression as written, None for one that * stands for."""

    expression: Expression
    name: str
    node: exp.Expr | None


@dataclass(frozen=True, slots=True)
class _Order:
    """One ORDER BY term, with the place it was written at."""

    key: SortKey
    node: exp.Expr


@dataclass(frozen=True, slots=True)
class _Output:
    """What is computed from the rows, or groups, that FROM, WHERE and GROUP BY give."""

    items: Sequence[_Item]
    having: Expression | None
    orders: Sequence[_Order]
    qualify: Expression | None = None
    on: Sequence[Expression] = ()

    def moved(self, move: Callable[[Expression], Expression], sql: str) -> _Output:
        """The same over other rows, `move` applied to every expression."""
        return _Output(
            each(lambda item: replace(item, expression=move(item.expression)), self.items, sql),
            None if self.having is None else move(self.having),
            each(lambda order: _with_key(order, move(order.key.expression)), self.orders, sql),
            None if self.qualify is None else move(self.qualify),
            each(move, self.on, sql),
        )


def bind_query(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment = NOTHING_AROUND) -> Plan:
    """The plan of a SELECT, of a set operation, of VALUES, or of any of them in parentheses.

    Queries within expressions are joins in it; `environment` is what the query sees of the text around it.

    Raises:
        SqlError: with everything that is wrong, in the order of the text.
    """
    try:
        return unnested(_bind_nested(node, sql, catalog, environment))
    except UnnestingError as error:
        words, call = f"{error} is not supported", error.call
        place = Reason(words, call.line, call.column) if call.line else Reason(words)
        raise UnsupportedError(place, sql) from error


def _bind_nested(node: exp.Expr, sql: str, catalog: Catalog, environment: Environment) -> Plan:
    def bind(inner: exp.Expr, around: Environment = environment) -> Plan:
        return bind_query(inner, sql, catalog, around)

    if isinstance(node, exp.Subquery):
        _check_no_alias(node, sql)
        around = bind_with(node.args.get("with_"), sql, environment, bind)
        return _arranged(node, sql, lambda: (bind(node.this, around), []))
    if isinstance(node, exp.Values):
        _check_no_alias(node, sql)
        return bind_values(node, sql)
    if isinstance(node, exp.Table):  # (t) for (FROM t)
        return bind(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node)))
    if isinstance(node, exp.SetOperation):
        around = bind_with(node.args.get("with_"), sql, environment, bind)
        return _arranged(node, sql, lambda: bind_set_operation(node, sql, lambda inner: bind(inner, around)))
    assert isinstance(node, exp.Select)
    return _SelectBinder(node, sql, catalog, environment).bind()


def _arranged(node: exp.Query, sql: str, rows: Callable[[], tuple[Plan, Sequence[str]]]) -> Plan:
    """The rows of a query that is put together of others, under its own ORDER BY, LIMIT and OFFSET.

    `rows` gives them with names that ORDER BY may use beside those of the columns.
    """
    faults = Faults(sql)
    limit = offset = None
    plan: Plan | None = None
    with faults.collected():
        plan, other_names = rows()
        plan = ordered_output(plan, node.args.get("order"), sql, other_names)
    with faults.collected():
        limit = row_count(node, "limit", sql)
    with faults.collected():
        offset = row_count(node, "offset", sql)
    faults.check()
    assert plan is not None
    return _limited(plan, limit, offset)


def _check_no_alias(node: exp.Expr, sql: str) -> None:
    alias = node.args.get("alias")
    with placed(sql, alias):
        if alias is not None:
            raise ValueError("an alias here would name nothing")


class _SelectBinder:
    def __init__(self, node: exp.Select, sql: str, catalog: Catalog, environment: Environment) -> None:
        self._node = node
        self._sql = sql
        self._catalog = catalog
        self._faults = Faults(sql)
        self._environment = bind_with(node.args.get("with_"), sql, environment, self._bind_inner)
        sources = SourceBinder(
            sql,
            catalog,
            lambda inner: self._bind_inner(inner, self._environment),
            self._join_binder,
            self._environment,
        )
        self._plan, self._scope = sources.bind(node.args.get("from_"), node.args.get("joins") or ())
        self._plan = sampled(self._plan, node.args.get("sample"), sql)
        self._aliases = SelectAliases(node.expressions)
        grouped = node.args.get("group") is not None or self._aggregates()
        self._collector = AggregateCollector(sql, self._scope) if grouped else None
        self._windows = WindowCollector(sql)
        self._items_failed = False

    def bind(self) -> Plan:
        condition = self._condition("where", self._binder("WHERE", grouped=False))
        before = self._faults.count
        items = self._items()
        self._items_failed = self._faults.count > before
        keys, sets = self._group_keys(items)
        # In HAVING an alias comes before a column that is not grouped by.
        grouped = {key.index for key in keys if isinstance(key, ColumnRef)}
        having = self._condition("having", self._binder("HAVING", grouped=True, firm_columns=grouped))
        qualify = self._qualify()
        output = _Output(items, having, self._orders(items), qualify, self._distinct_on(items))
        limit, offset = self._row_count("limit"), self._row_count("offset")
        if not self._windows:  # what is wrong with windows in use has been said
            with self._faults.collected(), placed(self._sql, self._node):
                read_definitions(self._node)
        self._faults.check()
        plan = self._plan if condition is None else Filter(self._plan, condition)
        if self._collector is not None:
            plan, output = self._grouped(self._collector, plan, keys, sets, output)
        if output.having is not None:
            plan = Filter(plan, output.having)
        if self._windows:
            plan = self._windows.compute(plan)
            output = output.moved(self._windows.over_windows, self._sql)
        if output.qualify is not None:
            plan = Filter(plan, output.qualify)
        if output.on:
            plan, output = _distinct_on(plan, output)
        elif self._node.args.get("distinct") is not None:
            plan, output = self._distinct(plan, output)
        return _limited(_ordered(plan, output), limit, offset)

    def _bind_inner(self, node: exp.Expr, environment: Environment) -> Plan:
        return bind_query(node, self._sql, self._catalog, environment)

    def _join_binder(self, scope: Scope, clause: str) -> ExpressionBinder:
        return ExpressionBinder(
            self._sql, scope, clause, environment=self._environment, bind_inner=self._bind_inner
        )

    def _binder(
        self, clause: str, *, grouped: bool, firm_columns: Collection[int] | None = None
    ) -> ExpressionBinder:
        collector = self._collector if grouped else None
        return ExpressionBinder(
            self._sql,
            self._scope,
            clause,
            aliases=self._aliases,
            aggregates=collector,
            windows=self._windows if clause in _WITH_WINDOWS else None,
            firm_columns=firm_columns,
            environment=self._environment,
            bind_inner=self._bind_inner,
        )

    def _aggregates(self) -> bool:
        """Whether the query makes groups even without GROUP BY."""
        named = self._node.args.get("windows") or ()
        later = (self._node.args.get(name) for name in ("order", "qualify"))
        clauses = [*self._node.expressions, *named, *later]
        return self._node.args.get("having") is not None or any(
            has_aggregate(clause) for clause in clauses if clause is not None
        )

    def _condition(self, clause: str, binder: ExpressionBinder) -> Expression | None:
        node = self._node.args.get(clause)
        condition: Expression | None = None
        if node is not None:
            with self._faults.collected():
                bound = binder.bind(node.this)
                with placed(self._sql, node.this):
                    condition = operators.as_boolean(bound, binder.clause)
        return condition

    def _items(self) -> list[_Item]:
        binder = self._binder("SELECT", grouped=True)
        items: list[_Item] = []
        with self._faults.collected(), placed(self._sql, self._node):
            if not self._node.expressions:
                raise ValueError("SELECT needs at least one column")
        for position, node in enumerate(self._node.expressions):
            self._aliases.visible = position
            with self._faults.collected():
                items += self._star(node) or [self._item(binder, node)]
        self._aliases.visible = len(self._node.expressions)
        return items

    def _item(self, binder: ExpressionBinder, node: exp.Expr) -> _Item:
        expression = node.this if isinstance(node, exp.Alias) else node
        bound = binder.bind(expression)
        name = column_name(node, self._sql)
        if isinstance(bound, ColumnRef) and isinstance(node.unnest(), exp.Column):
            name = bound.name if fold_name(bound.name) == fold_name(name) else name
        return _Item(bound, name, expression)

    def _star(self, node: exp.Expr) -> list[_Item]:
        """The columns that * or t.* stands for; nothing for another item."""
        star, table = (node.this, node.table) if isinstance(node, exp.Column) else (node, "")
        if not isinstance(star, exp.Star):
            return []
        with placed(self._sql, node):
            if not self._scope.columns:
                raise ValueError("* needs a FROM")
            visible = self._scope.visible
            if not table:
                self._scope.check_names()
            columns = list(self._scope.columns_of(table)) if table else [column for column, _ in visible]
        exclude = star.args.get("except_")
        with placed(self._sql, star):
            if exclude is not None and not exclude:
                raise ValueError("EXCLUDE needs a column")
        for excluded in exclude or ():
            with placed(self._sql, excluded):
                if not isinstance(excluded, exp.Column) or excluded.table:
                    raise ValueError("EXCLUDE takes names of columns")
                if all(fold_name(column.name) != fold_name(excluded.name) for column in columns):
                    raise ValueError(self._scope.missing(excluded.name))
            columns = [column for column in columns if fold_name(column.name) != fold_name(excluded.name)]
        with placed(self._sql, node):
            if not columns:
                raise ValueError("* EXCLUDE leaves no column")
        if self._collector is not None:
            for column in columns:
                self._collector.note(column, node)
        return [_Item(column, column.name, None) for column in columns]

    def _group_keys(self, items: Sequence[_Item]) -> tuple[list[Expression], Sets]:
        """What makes groups, and which of it in which grouping set."""
        group = self._node.args.get("group")
        if group is None:
            return [], ()
        if group.args.get("all"):
            with self._faults.collected(), placed(self._sql, group):
                if group.expressions:
                    raise ValueError("GROUP BY ALL takes no other terms")
                for item in items:
                    if item.node is not None and has_window(item.node):
                        raise ValueError("GROUP BY ALL cannot group by a call over a window: name the keys")
            plain = [item for item in items if item.node is None or not has_aggregate(item.node)]
            keys = [decode(item.expression) for item in plain if referenced_columns(item.expression)]
            if not keys and not self._aggregates():  # constants only: nothing to group by
                self._collector = None
            return list(dict.fromkeys(keys)), ()
        written: list[Terms] = [tuple(plain_terms(group))]
        if has_sets(group):
            with self._faults.collected(), placed(self._sql, group):
                written = terms_of_sets(group)
        binder = self._binder("GROUP BY", grouped=False)
        by_term: dict[int, Expression] = {}
        for node in {id(node): node for terms in written for node in terms}.values():
            with self._faults.collected():
                by_term[id(node)] = decode(self._group_key(binder, node, items))
        keys = list(dict.fromkeys(by_term.values()))
        if not has_sets(group):
            return keys, ()
        places = {term: keys.index(key) for term, key in by_term.items()}
        return keys, [tuple(sorted({places.get(id(node), 0) for node in terms})) for terms in written]

    def _group_key(self, binder: ExpressionBinder, node: exp.Expr, items: Sequence[_Item]) -> Expression:
        position = _ordinal(node)
        if position is None:
            return binder.bind(node)
        with placed(self._sql, node):
            item = self._at(items, position, "GROUP BY")
            if item.node is not None and has_aggregate(item.node):
                raise ValueError("GROUP BY cannot contain aggregates")
            if item.node is not None and has_window(item.node):
                raise ValueError("a call over a window (OVER) cannot stand in GROUP BY")
        return item.expression

    def _orders(self, items: Sequence[_Item]) -> list[_Order]:
        order = self._node.args.get("order")
        if order is None:
            return []
        binder = self._binder("ORDER BY", grouped=True)
        orders: list[_Order] = []
        for term in order.expressions:
            with self._faults.collected():
                descending, nulls_first = bool(term.args.get("desc")), bool(term.args.get("nulls_first"))
                orders += [
                    _Order(SortKey(decode(expression), descending, nulls_first), term.this)
                    for expression in self._order_terms(binder, term.this, items)
                ]
        return orders

    def _order_terms(
        self, binder: ExpressionBinder, node: exp.Expr, items: Sequence[_Item]
    ) -> Sequence[Expression]:
        if isinstance(node, exp.Var):
            assert node.this == "ALL"
            return [item.expression for item in items]
        position = _ordinal(node)
        with placed(self._sql, node):
            if position is not None:
                return [self._at(items, position, "ORDER BY").expression]
            if isinstance(node, exp.Literal):
                raise ValueError("ordering by a constant has no effect")
        if isinstance(node, exp.Column) and not node.table:
            for item in items:
                if fold_name(item.name) == fold_name(node.name):
                    return [item.expression]
        return [binder.bind(node)]

    def _at(self, items: Sequence[_Item], position: int, clause: str) -> _Item:
        if self._items_failed:  # which column the number means is not known
            return _Item(literal(None, pa.null()), "", None)
        if not 1 <= position <= len(items):
            raise ValueError(f"{clause} {position} is not one of the {len(items)} columns selected")
        return items[position - 1]

    def _row_count(self, clause: str) -> int | None:
        found: list[int | None] = [None]
        with self._faults.collected():
            found.append(row_count(self._node, clause, self._sql))
        return found[-1]

    def _grouped(
        self,
        collector: AggregateCollector,
        plan: Plan,
        keys: Sequence[Expression],
        sets: Sets,
        output: _Output,
    ) -> tuple[Plan, _Output]:
        names = [self._key_name(key, output.items) for key in keys]

        def move(expression: Expression) -> Expression:
            return collector.over_groups(expression, keys, names, sets)

        output = output.moved(move, self._sql)
        self._windows.move(move)
        return collector.aggregate(plan, keys, names, sets), output

    @staticmethod
    def _key_name(key: Expression, items: Sequence[_Item]) -> str:
        if isinstance(key, ColumnRef):
            return key.name
        return next((item.name for item in items if decode(item.expression) == key), "key")

    def _distinct(self, plan: Plan, output: _Output) -> tuple[Plan, _Output]:
        values = [decode(item.expression) for item in output.items]
        names = tuple(item.name for item in output.items)
        plan = Project(plan, tuple(values), names)
        keys = tuple(ColumnRef(i, field.name, field.type) for i, field in enumerate(plan.fields))

        def move(order: _Order) -> _Order:
            with placed(self._sql, order.node):
                return _with_key(order, over_outputs(order.key.expression, values, names))

        items = [replace(item, expression=key) for item, key in zip(output.items, keys, strict=True)]
        orders = each(move, output.orders, self._sql)
        return Aggregate(plan, keys, (), names), _Output(items, None, orders)

    def _qualify(self) -> Expression | None:
        condition = self._condition("qualify", self._binder("QUALIFY", grouped=True))
        with self._faults.collected(), placed(self._sql, self._node.args.get("qualify")):
            if condition is not None and not self._windows and not self._items_failed:
                raise ValueError("QUALIFY needs a call over a window, there or in SELECT: write WHERE")
        return condition

    def _distinct_on(self, items: Sequence[_Item]) -> list[Expression]:
        """What DISTINCT ON wants once."""
        distinct = self._node.args.get("distinct")
        on = None if distinct is None else distinct.args.get("on")
        values: list[Expression] = []
        binder = self._binder("DISTINCT ON", grouped=True)
        with self._faults.collected(), placed(self._sql, self._node):
            if on is not None and not on.expressions:
                raise ValueError("DISTINCT ON needs an expression")
        for node in () if on is None else on.expressions:
            with self._faults.collected():
                values += [decode(value) for value in self._order_terms(binder, node, items)]
        return values


def _distinct_on(plan: Plan, output: _Output) -> tuple[Plan, _Output]:
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
    return Aggregate(plan, on, first, names), replace(output, having=None, qualify=None, on=()).moved(
        move, ""
    )


def _with_key(order: _Order, expression: Expression) -> _Order:
    return replace(order, key=replace(order.key, expression=expression))


def _ordinal(node: exp.Expr) -> int | None:
    """The number of a GROUP BY or ORDER BY term that is one, or None."""
    if isinstance(node, exp.Neg) and (below := _ordinal(node.this)) is not None:
        return -below
    if isinstance(node, exp.Literal) and not node.args["is_string"] and str(node.this).isdigit():
        return int(node.this)
    return None


def row_count(query: exp.Expr, clause: str, sql: str) -> int | None:
    """The number that LIMIT or OFFSET of a query gives, None where there is none.

    Raises:
        SqlError: it is no constant, or no number of rows.
    """
    node = query.args.get(clause)
    if node is None:
        return None
    with placed(sql, node.expression):
        if node.find(exp.Column):
            raise ValueError(f"{clause.upper()} needs a constant")
    bound = ExpressionBinder(sql, _ONE_ROW, clause.upper()).bind(node.expression)
    with placed(sql, node.expression):
        return _count(bound, clause.upper())


def _count(expression: Expression, clause: str) -> int | None:
    """The number of rows that LIMIT or OFFSET gives, None for NULL."""
    constant = fold(expression)
    if not isinstance(constant, Literal):
        raise ValueError(f"{clause} needs a constant")
    count: int | None = convert(constant.value, pa.int64()).as_py()
    if count is not None and count < 0:
        raise ValueError(f"{clause} cannot be negative")
    return count


def _ordered(plan: Plan, output: _Output) -> Plan:
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


def _limited(plan: Plan, limit: int | None, offset: int | None) -> Plan:
    if limit is None and not offset:
        return plan
    return Limit(plan, limit, offset or 0)
