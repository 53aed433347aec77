"""SELECT to a logical plan, clause by clause in the order that they take effect."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.naming import fold as fold_name
from bamquery.plan.constants import convert
from bamquery.plan.evaluation import fold
from bamquery.plan.expressions import ColumnRef, Expression, Literal, referenced_columns
from bamquery.plan.nodes import Aggregate, Filter, Limit, Plan, Project, Sort, SortKey
from bamquery.sql import operators
from bamquery.sql.aggregates import is_aggregate
from bamquery.sql.binder_aggregates import AggregateCollector, over_outputs
from bamquery.sql.binder_expressions import ExpressionBinder
from bamquery.sql.binder_sample import sampled
from bamquery.sql.binder_sources import bind_from, bind_values
from bamquery.sql.catalog import Catalog
from bamquery.sql.coercion import decode
from bamquery.sql.failures import Faults, each, placed
from bamquery.sql.operators import literal
from bamquery.sql.scope import Scope, SelectAliases
from bamquery.sql.spelling import column_name

_ONE_ROW: Final = Scope("", ())


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


def bind_query(node: exp.Expr, sql: str, catalog: Catalog) -> Plan:
    """The plan of a SELECT, of VALUES, or of either in parentheses.

    Raises:
        SqlError: with everything that is wrong, in the order of the text.
    """
    while isinstance(node, exp.Subquery):
        _check_no_alias(node, sql)
        node = node.this
    if isinstance(node, exp.Values):
        _check_no_alias(node, sql)
        return bind_values(node, sql)
    if isinstance(node, exp.Table):  # (t) for (FROM t)
        return bind_from(node, sql, catalog, lambda inner: bind_query(inner, sql, catalog))[0]
    assert isinstance(node, exp.Select)
    return _SelectBinder(node, sql, catalog).bind()


def _check_no_alias(node: exp.Expr, sql: str) -> None:
    alias = node.args.get("alias")
    with placed(sql, alias):
        if alias is not None:
            raise ValueError("an alias here would name nothing")


class _SelectBinder:
    def __init__(self, node: exp.Select, sql: str, catalog: Catalog) -> None:
        self._node = node
        self._sql = sql
        self._catalog = catalog
        self._faults = Faults(sql)
        self._plan, self._scope = bind_from(
            node.args.get("from_"), sql, catalog, lambda inner: bind_query(inner, sql, catalog)
        )
        self._plan = sampled(self._plan, node.args.get("sample"), sql)
        self._aliases = SelectAliases(node.expressions)
        grouped = node.args.get("group") is not None or self._aggregates()
        self._collector = AggregateCollector(sql, self._scope) if grouped else None
        self._items_failed = False

    def bind(self) -> Plan:
        condition = self._condition("where", self._binder("WHERE", grouped=False))
        before = self._faults.count
        items = self._items()
        self._items_failed = self._faults.count > before
        keys = self._group_keys(items)
        # In HAVING an alias comes before a column that is not grouped by.
        grouped = {key.index for key in keys if isinstance(key, ColumnRef)}
        having = self._condition("having", self._binder("HAVING", grouped=True, firm_columns=grouped))
        output = _Output(items, having, self._orders(items))
        limit, offset = self._row_count("limit"), self._row_count("offset")
        self._faults.check()
        plan = self._plan if condition is None else Filter(self._plan, condition)
        if self._collector is not None:
            plan, output = self._grouped(self._collector, plan, keys, output)
        if output.having is not None:
            plan = Filter(plan, output.having)
        if self._node.args.get("distinct") is not None:
            plan, output = self._distinct(plan, output)
        return _limited(_ordered(plan, output), limit, offset)

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
            firm_columns=firm_columns,
        )

    def _aggregates(self) -> bool:
        """Whether the query makes groups even without GROUP BY."""
        clauses = [*self._node.expressions, self._node.args.get("order")]
        return self._node.args.get("having") is not None or any(
            _has_aggregate(clause) for clause in clauses if clause is not None
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
            column = self._scope.find(name)
            name = column.name if column is not None and column == bound else name
        return _Item(bound, name, expression)

    def _star(self, node: exp.Expr) -> list[_Item]:
        """The columns that * or t.* stands for; nothing for another item."""
        star, table = (node.this, node.table) if isinstance(node, exp.Column) else (node, "")
        if not isinstance(star, exp.Star):
            return []
        with placed(self._sql, node):
            if table:
                self._scope.check_table(table)
            if not self._scope.columns:
                raise ValueError("* needs a FROM")
        columns = list(self._scope.columns)
        exclude = star.args.get("except_")
        with placed(self._sql, star):
            if exclude is not None and not exclude:
                raise ValueError("EXCLUDE needs a column")
        for excluded in exclude or ():
            with placed(self._sql, excluded):
                if not isinstance(excluded, exp.Column) or excluded.table:
                    raise ValueError("EXCLUDE takes names of columns")
                if self._scope.find(excluded.name) is None:
                    raise ValueError(self._scope.missing(excluded.name))
            columns = [column for column in columns if fold_name(column.name) != fold_name(excluded.name)]
        with placed(self._sql, node):
            if not columns:
                raise ValueError("* EXCLUDE leaves no column")
        if self._collector is not None:
            for column in columns:
                self._collector.note(column, node)
        return [_Item(column, column.name, None) for column in columns]

    def _group_keys(self, items: Sequence[_Item]) -> list[Expression]:
        group = self._node.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            with self._faults.collected(), placed(self._sql, group):
                if group.expressions:
                    raise ValueError("GROUP BY ALL takes no other terms")
            plain = [item for item in items if item.node is None or not _has_aggregate(item.node)]
            keys = [decode(item.expression) for item in plain if referenced_columns(item.expression)]
            if not keys and not self._aggregates():  # constants only: nothing to group by
                self._collector = None
        else:
            keys = []
            binder = self._binder("GROUP BY", grouped=False)
            for node in group.expressions:
                with self._faults.collected():
                    keys.append(decode(self._group_key(binder, node, items)))
        return list(dict.fromkeys(keys))

    def _group_key(self, binder: ExpressionBinder, node: exp.Expr, items: Sequence[_Item]) -> Expression:
        position = _ordinal(node)
        if position is None:
            return binder.bind(node)
        with placed(self._sql, node):
            item = self._at(items, position, "GROUP BY")
            if item.node is not None and _has_aggregate(item.node):
                raise ValueError("GROUP BY cannot contain aggregates")
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
        node = self._node.args.get(clause)
        count: int | None = None
        if node is not None:
            with self._faults.collected():
                with placed(self._sql, node.expression):
                    if node.find(exp.Column):
                        raise ValueError(f"{clause.upper()} needs a constant")
                bound = ExpressionBinder(self._sql, _ONE_ROW, clause.upper()).bind(node.expression)
                with placed(self._sql, node.expression):
                    count = _count(bound, clause.upper())
        return count

    def _grouped(
        self, collector: AggregateCollector, plan: Plan, keys: Sequence[Expression], output: _Output
    ) -> tuple[Plan, _Output]:
        names = [self._key_name(key, output.items) for key in keys]

        def move(expression: Expression) -> Expression:
            return collector.over_groups(expression, keys, names)

        items = each(lambda item: replace(item, expression=move(item.expression)), output.items, self._sql)
        orders = each(lambda order: _with_key(order, move(order.key.expression)), output.orders, self._sql)
        having = None if output.having is None else move(output.having)
        return collector.aggregate(plan, keys, names), _Output(items, having, orders)

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


def _with_key(order: _Order, expression: Expression) -> _Order:
    return replace(order, key=replace(order.key, expression=expression))


def _has_aggregate(node: exp.Expr) -> bool:
    return any(is_aggregate(call.name) for call in node.find_all(exp.Anonymous))


def _ordinal(node: exp.Expr) -> int | None:
    """The number of a GROUP BY or ORDER BY term that is one, or None."""
    if isinstance(node, exp.Neg) and (below := _ordinal(node.this)) is not None:
        return -below
    if isinstance(node, exp.Literal) and not node.args["is_string"] and str(node.this).isdigit():
        return int(node.this)
    return None


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
