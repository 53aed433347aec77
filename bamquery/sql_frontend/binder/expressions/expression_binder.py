"""Expressions of the syntax tree to bound, typed expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NoReturn

from sqlglot import exp

from bamquery.errors import SqlError
from bamquery.plan.expressions import ColumnRef, Expression, count_expressions
from bamquery.sql_frontend.binder.environment import NOTHING_AROUND, Environment
from bamquery.sql_frontend.binder.expressions import subqueries as binder_subqueries
from bamquery.sql_frontend.binder.expressions.aggregates import AggregateCollector
from bamquery.sql_frontend.binder.expressions.calls import CALLS
from bamquery.sql_frontend.binder.expressions.syntax_forms import FORMS, Bind
from bamquery.sql_frontend.binder.expressions.windows import WindowCollector
from bamquery.sql_frontend.binder.scope import ALIAS_TABLE, Scope, SelectAliases
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.system_names import SESSION_VALUE
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.statement_context.limits import depth_message, statement_limits
from bamquery.text.identifiers import fold_case


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
        self._bound_aliases: dict[int, Expression | ValueError | SqlError] = {}
        self._depth = 0

    def bind(self, node: exp.Expr) -> Expression:
        """The bound expression.

        Raises:
            SqlError: unknown names, types that do not fit; with every place.
        """
        check_cancelled()
        bind = _BINDERS.get(type(node))
        if bind is None:
            with errors_at(self.sql, node):
                raise ValueError(f"{type(node).__name__} cannot stand in {self.clause}")
        most = statement_limits().max_expression_depth
        if self._depth > most:
            with errors_at(self.sql, node):
                raise ValueError(depth_message(most))
        level = not isinstance(node, exp.Paren)
        self._depth += level
        try:
            return bind(self, node)
        finally:
            self._depth -= level

    def bind_all(self, nodes: Sequence[exp.Expr]) -> Sequence[Expression]:
        """Several; all their faults in one error."""
        return apply_to_each(self.bind, nodes, self.sql)

    def for_clause(self, clause: str, aggregates: AggregateCollector | None = None) -> ExpressionBinder:
        """One for what stands within a call of this clause, where other calls are allowed."""
        return ExpressionBinder(
            self.sql,
            self.scope,
            clause,
            aliases=self.aliases,
            aggregates=aggregates,
            environment=self.environment,
            bind_inner=self.bind_inner,
        )

    def _column(self, node: exp.Column) -> Expression:
        with errors_at(self.sql, node):
            if isinstance(node.this, exp.Star):
                return self._star(node)
            chosen: ColumnRef | None = node.meta.get("chosen")
            if chosen is not None:
                if self.aggregates is not None:
                    self.aggregates.note(chosen, node)
                return chosen
            found = self.outer_column(node.name, node.table, node)
            if found is None:
                if SESSION_VALUE in node.meta:
                    known: Expression = node.meta[SESSION_VALUE]
                    return known
                if fold_case(node.table) in self.environment.beside and not self.scope.has_table(node.table):
                    raise ValueError(
                        f'"{node.table}" stands beside this subquery in FROM: to use its columns there '
                        "(LATERAL) is not supported"
                    )
                others = self.aliases.names if self.aliases is not None and not node.table else []
                raise ValueError(self.scope.missing_message(node.name, others, node.table))
        return found

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
        """What a name means here, and in queries within: a column, an alias, or a column of a query around.

        None if there is none, `ValueError` for one of several.
        """
        column = self._own_column(name, table)
        firm = column is not None and (self._firm_columns is None or column.index in self._firm_columns)
        named = not table or fold_case(table) == ALIAS_TABLE
        if not firm and self.aliases is not None and named:
            aliased = self.aliases.find(name)
            if aliased is not None and name not in self._within:
                return self._alias(name, aliased)
        if column is None:
            return self._column_outside(name, table, node)
        if self.aggregates is not None:
            self.aggregates.note(column, node)
        return column

    def _star(self, node: exp.Expr) -> NoReturn:
        with errors_at(self.sql, node):
            raise ValueError(f"* cannot stand within an expression of {self.clause}")

    def _alias(self, name: str, aliased: exp.Expr) -> Expression:
        key = None if self.aggregates is None else self.aggregates.named_key(aliased)
        if key is not None:
            return key
        known = self._bound_aliases.get(id(aliased))
        if known is None:
            known = self._bound_aliases[id(aliased)] = self._bound_alias(name, aliased)
        if isinstance(known, ValueError | SqlError):
            raise known
        return known

    def _bound_alias(self, name: str, aliased: exp.Expr) -> Expression | ValueError | SqlError:
        """The expression that an alias stands for, or what is wrong with it.

        Aliases of aliases, each named twice, double: what is bound is one object, but a tree to rules.
        """
        # Within what the alias stands for columns come before aliases, as where it is selected.
        firm_columns, self._firm_columns = self._firm_columns, None
        self._within.append(name)
        try:
            bound = self.bind(aliased)
        except SqlError as error:
            return error
        finally:
            self._within.pop()
            self._firm_columns = firm_columns
        most = statement_limits().max_expression_parts
        if count_expressions(bound) <= most:
            return bound
        return ValueError(
            f'"{name}" stands for more than max_expression_parts, {most:,}, columns, constants and '
            "calls: compute a part of it in a subquery, or SET max_expression_parts to more"
        )


_BINDERS: Final[Mapping[type[exp.Expr], Bind]] = MappingProxyType(
    {
        exp.Column: ExpressionBinder._column,
        exp.Star: ExpressionBinder._star,
        exp.Paren: lambda binder, node: binder.bind(node.this),
        exp.Subquery: binder_subqueries.bind_scalar,
        exp.Exists: binder_subqueries.bind_exists,
        **FORMS,
        **CALLS,
    }
)
