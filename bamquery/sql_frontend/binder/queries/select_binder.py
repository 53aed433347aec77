"""SELECT to a logical plan, clause by clause in the order that they take effect."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.expressions import ColumnRef, Expression, referenced_columns
from bamquery.plan.nodes import Filter, Plan, SortKey
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.environment import Environment
from bamquery.sql_frontend.binder.expressions.aggregates import (
    AggregateCollector,
    Sets,
    has_aggregate,
    has_window,
    is_key,
)
from bamquery.sql_frontend.binder.expressions.column_lists import expand_columns
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.expressions.grouping_sets import has_sets, plain_terms
from bamquery.sql_frontend.binder.expressions.star import star_columns
from bamquery.sql_frontend.binder.expressions.subqueries import BindInner
from bamquery.sql_frontend.binder.expressions.windows import WindowCollector
from bamquery.sql_frontend.binder.queries.grouping_set_keys import GroupingSetKeys, Selected, bind_set_keys
from bamquery.sql_frontend.binder.queries.limit import bind_limit, row_count
from bamquery.sql_frontend.binder.queries.select_output import (
    Item,
    Order,
    SelectOutput,
    apply_distinct,
    apply_distinct_on,
    apply_order,
)
from bamquery.sql_frontend.binder.queries.select_terms import (
    check_aliases,
    check_groupable,
    check_no_constant,
    item_at,
    ordinal,
)
from bamquery.sql_frontend.binder.queries.set_operation_branches import Branch, Rows
from bamquery.sql_frontend.binder.scope import ALIAS_TABLE, Scope, SelectAliases
from bamquery.sql_frontend.binder.sources.from_clause import SourceBinder, source_names
from bamquery.sql_frontend.binder.sources.sample import bind_sample
from bamquery.sql_frontend.binder.sources.with_queries import bind_with
from bamquery.sql_frontend.fault_collection import FaultCollector, errors_at
from bamquery.sql_frontend.functions import operators
from bamquery.sql_frontend.functions.coercion import decode
from bamquery.sql_frontend.functions.operators import literal
from bamquery.sql_frontend.spelling.expressions import column_name, inner_name
from bamquery.sql_frontend.syntax.windows import read_definitions
from bamquery.text.identifiers import fold_case as fold_name

_WITH_WINDOWS: Final = frozenset({"SELECT", "QUALIFY", "ORDER BY", "DISTINCT ON"})
"""Clauses that come after the rows and groups are there."""


class SelectBinder:
    """Binds one SELECT; `bind_inner` binds the queries within it."""

    def __init__(
        self,
        node: exp.Select,
        sql: str,
        catalog: Catalog,
        environment: Environment,
        bind_inner: BindInner,
    ) -> None:
        self._node = node
        self._sql = sql
        self._bind_inner = bind_inner
        self._faults = FaultCollector(sql)
        self._environment = bind_with(node.args.get("with_"), sql, environment, bind_inner)
        sources = SourceBinder(
            sql,
            catalog,
            lambda inner: bind_inner(inner, self._environment.for_from_subquery(source_names(node))),
            self._join_binder,
            self._environment,
        )
        self._plan, self._scope = sources.bind(node.args.get("from_"), node.args.get("joins") or ())
        self._plan = bind_sample(self._plan, node.args.get("sample"), sql)
        expand_columns(node, self._scope, sql, catalog.fold_constants)
        self._aliases = SelectAliases(node.expressions)
        grouped = node.args.get("group") is not None or self._aggregates()
        self._collector = AggregateCollector(sql, self._scope) if grouped else None
        self._windows = WindowCollector(sql)
        self._items_failed = False

    def bind(self) -> Rows:
        """The plan, and what is selected as it is written.

        Raises:
            SqlError: with everything that is wrong in any clause.
        """
        condition = self._condition("where", self._binder("WHERE", grouped=False))
        set_keys = self._set_keys()
        before = self._faults.count
        items = self._items()
        self._items_failed = self._faults.count > before
        keys = self._group_keys(items) if set_keys is None else set_keys.keys
        sets = () if set_keys is None else set_keys.sets
        # In HAVING an alias comes before a column that is not grouped by, and with ALL before any.
        group = self._node.args.get("group")
        all_ = group is not None and group.args.get("all")
        grouped = {key.index for key in keys if isinstance(key, ColumnRef) and not all_}
        having = self._condition("having", self._binder("HAVING", grouped=True, firm_columns=grouped))
        if all_ and having is not None:  # with ALL it groups by the columns of HAVING, too
            read = referenced_columns(having)
            keys = list(dict.fromkeys([*keys, *(decode(c) for c in self._scope.columns if c.index in read)]))
        qualify = self._qualify()
        output = SelectOutput(items, having, self._orders(items), qualify, self._distinct_on(items))
        limit, offset = self._row_count("limit"), self._row_count("offset")
        if not self._windows:  # what is wrong with windows in use has been said
            with self._faults.collect(), errors_at(self._sql, self._node):
                read_definitions(self._node)
        self._faults.check()
        plan = self._plan if condition is None else Filter(self._plan, condition)
        if self._collector is not None:
            plan, output = self._bind_groups(self._collector, plan, keys, sets, output)
        if output.having is not None:
            plan = Filter(plan, output.having)
        if self._windows:
            plan = self._windows.compute(plan)
            output = output.map_expressions(self._windows.rewrite_over_windows, self._sql)
        if output.qualify is not None:
            plan = Filter(plan, output.qualify)
        if output.on:
            plan, output = apply_distinct_on(plan, output)
        elif self._node.args.get("distinct") is not None:
            plan, output = apply_distinct(plan, output, self._sql)
        written = [item.expression if item.node is None else item.node for item in items]
        branch = Branch([item.name for item in items], written, self._scope, range(len(items)))
        # A SELECT with a WITH of its own keeps the tables of its FROM to itself, as in DuckDB.
        scopes = [] if self._node.args.get("with_") is not None else [self._scope]
        return Rows(bind_limit(apply_order(plan, output), limit, offset), [branch], scopes)

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
            with self._faults.collect():
                bound = binder.bind(node.this)
                with errors_at(self._sql, node.this):
                    condition = operators.as_boolean(bound, binder.clause)
        return condition

    def _items(self) -> list[Item]:
        binder = self._binder("SELECT", grouped=True)
        items: list[Item] = []
        with self._faults.collect(), errors_at(self._sql, self._node):
            if not self._node.expressions:
                raise ValueError("SELECT needs at least one column")
        for position, node in enumerate(self._node.expressions):
            self._aliases.visible = position
            with self._faults.collect():
                items += self._star(node) or [self._item(binder, node)]
        self._aliases.visible = len(self._node.expressions)
        return items

    def _item(self, binder: ExpressionBinder, node: exp.Expr) -> Item:
        expression = node.this if isinstance(node, exp.Alias) else node
        key = None if self._collector is None else self._collector.named_key(expression)
        bound = binder.bind(expression) if key is None else key
        is_named = isinstance(node.unnest(), exp.Alias | exp.Column) or not self._is_unnamed
        name = column_name(node, self._sql) if is_named else inner_name(node, self._sql)
        if isinstance(bound, ColumnRef) and isinstance(node.unnest(), exp.Column):
            name = bound.name if fold_name(bound.name) == fold_name(name) else name
        return Item(bound, name, expression)

    @property
    def _is_unnamed(self) -> bool:
        """Whether nothing can name the columns: it is an operand, or in EXISTS, and no name has quotes."""
        around = self._node.parent
        if isinstance(around, exp.Subquery) and isinstance(around.parent, exp.Binary):
            return not around.alias and '"' not in self._sql
        return isinstance(around, exp.Exists) and '"' not in self._sql

    def _star(self, node: exp.Expr) -> list[Item]:
        note = None if self._collector is None else self._collector.note
        return [Item(c, c.name, None) for c in star_columns(node, self._scope, self._sql, note)]

    def _group_keys(self, items: Sequence[Item]) -> list[Expression]:
        """What makes groups, where there are no grouping sets."""
        group = self._node.args.get("group")
        if group is None:
            return []
        if group.args.get("all"):
            with self._faults.collect(), errors_at(self._sql, group):
                if group.expressions:
                    raise ValueError("GROUP BY ALL takes no other terms")
                for item in items:
                    if item.node is not None and has_window(item.node):
                        raise ValueError("GROUP BY ALL cannot group by a call over a window: name the keys")
            plain = [item for item in items if item.node is None or not has_aggregate(item.node)]
            keys = [decode(item.expression) for item in plain if _is_group_key(item)]
            grouping = self._collector is not None and self._collector.has_grouping
            if not (keys or grouping or self._aggregates()):  # constants only: nothing to group by
                self._collector = None
            return list(dict.fromkeys(keys))
        binder = self._binder("GROUP BY", grouped=False)
        keys = []
        for node in plain_terms(group):
            with self._faults.collect():
                keys.append(decode(self._group_key(binder, node, items)))
        return list(dict.fromkeys(keys))

    def _set_keys(self) -> GroupingSetKeys | None:
        """The keys of grouping sets, found before the items, which may name them; None without sets."""
        group = self._node.args.get("group")
        if group is None or not has_sets(group):
            return None
        assert self._collector is not None
        items: list[Selected] = []
        for node in self._node.expressions:
            columns: Sequence[Selected] = ()
            with FaultCollector(self._sql).collect():  # told when the item is bound
                columns = star_columns(node, self._scope, self._sql, None)
            items += columns or [None if node.is_star else node.unalias()]
        binder = self._binder("GROUP BY", grouped=False)
        found = bind_set_keys(group, items, self._aliases, binder, self._faults)
        for place, (key, selected) in enumerate(zip(found.keys, found.selected, strict=True)):
            if selected is not None:
                self._collector.name_key(selected, place, key)
        return found

    def _group_key(self, binder: ExpressionBinder, node: exp.Expr, items: Sequence[Item]) -> Expression:
        position = ordinal(node)
        with errors_at(self._sql, node):
            check_aliases(node, self._scope, self._aliases)
        if position is None:
            return binder.bind(node)
        with errors_at(self._sql, node):
            item = self._item_at(items, position, "GROUP BY")
            check_groupable(item.node)
        return item.expression

    def _orders(self, items: Sequence[Item]) -> list[Order]:
        order = self._node.args.get("order")
        if order is None:
            return []
        binder = self._binder("ORDER BY", grouped=True)
        orders: list[Order] = []
        for term in order.expressions:
            with self._faults.collect():
                descending, nulls_first = bool(term.args.get("desc")), bool(term.args.get("nulls_first"))
                orders += [
                    Order(SortKey(decode(expression), descending, nulls_first), term.this)
                    for expression in self._order_terms(binder, term.this, items)
                ]
        return orders

    def _order_terms(
        self, binder: ExpressionBinder, node: exp.Expr, items: Sequence[Item]
    ) -> Sequence[Expression]:
        if isinstance(node, exp.Var):
            assert node.this == "ALL"
            return [item.expression for item in items]
        position = ordinal(node)
        with errors_at(self._sql, node):
            if position is not None:
                return [self._item_at(items, position, "ORDER BY").expression]
            check_no_constant(node)
        if isinstance(node, exp.Column) and (not node.table or fold_name(node.table) == ALIAS_TABLE):
            aliased = self._aliases.find(node.name)
            named = [] if node.table and aliased is None else items
            named = [item for item in named if fold_name(item.name) == fold_name(node.name)]
            last = [item for item in named if aliased is not None and item.node is aliased]
            if last or len({item.expression for item in named}) == 1:
                return [(last or named)[0].expression]
        return [binder.bind(node)]

    def _item_at(self, items: Sequence[Item], position: int, clause: str) -> Item:
        if self._items_failed:  # which column the number means is not known
            return Item(literal(None, pa.null()), "", None)
        return item_at(items, position, clause)

    def _row_count(self, clause: str) -> int | None:
        found: list[int | None] = [None]
        with self._faults.collect():
            found.append(row_count(self._node, clause, self._sql))
        return found[-1]

    def _bind_groups(
        self,
        collector: AggregateCollector,
        plan: Plan,
        keys: Sequence[Expression],
        sets: Sets,
        output: SelectOutput,
    ) -> tuple[Plan, SelectOutput]:
        names = [_key_name(place, key, output.items) for place, key in enumerate(keys)]

        def move(expression: Expression) -> Expression:
            return collector.rewrite_over_groups(expression, keys, names, sets)

        def move_argument(expression: Expression) -> Expression:  # such as lag's offset: a constant
            return collector.rewrite_over_groups(expression, keys, names, sets, literals=False)

        output = output.map_expressions(move, self._sql)
        self._windows.move(move, move_argument)
        return collector.aggregate(plan, keys, names, sets), output

    def _qualify(self) -> Expression | None:
        condition = self._condition("qualify", self._binder("QUALIFY", grouped=True))
        with self._faults.collect(), errors_at(self._sql, self._node.args.get("qualify")):
            if condition is not None and not self._windows and not self._items_failed:
                raise ValueError("QUALIFY needs a call over a window, there or in SELECT: write WHERE")
        return condition

    def _distinct_on(self, items: Sequence[Item]) -> list[Expression]:
        """What DISTINCT ON wants once."""
        distinct = self._node.args.get("distinct")
        on = None if distinct is None else distinct.args.get("on")
        values: list[Expression] = []
        binder = self._binder("DISTINCT ON", grouped=True)
        with self._faults.collect(), errors_at(self._sql, self._node):
            if on is not None and not on.expressions:
                raise ValueError("DISTINCT ON needs an expression")
        for node in () if on is None else on.expressions:
            with self._faults.collect():
                values += [decode(value) for value in self._order_terms(binder, node, items)]
        return values


def _key_name(place: int, key: Expression, items: Sequence[Item]) -> str:
    if isinstance(key, ColumnRef):
        return key.name
    named = (item.name for item in items if is_key(item.expression, place) or decode(item.expression) == key)
    return next(named, "key")


def _is_group_key(item: Item) -> bool:
    """Whether GROUP BY ALL takes it for a key: what names a column, be it constant as typeof(column) is."""
    if referenced_columns(item.expression):
        return True
    nodes = () if item.node is None else item.node.walk(prune=lambda node: isinstance(node, exp.Query))
    return any(isinstance(node, exp.Column) for node in nodes)
