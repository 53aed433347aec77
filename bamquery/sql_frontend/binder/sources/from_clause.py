"""What stands in FROM, and VALUES: plans with a scope over their columns."""

# ruff: noqa: PLC0415 (joins, files and series are imported with the first of them)

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import CatalogError, SqlError
from bamquery.function_catalog.table_functions import SERIES_FUNCTIONS, SYSTEM_FUNCTIONS
from bamquery.plan.expressions import Expression, Literal
from bamquery.plan.nodes import ROW_NUMBER, Plan, Project, Scan, SingleRow, Source, Values
from bamquery.sql_frontend.binder.catalog import Catalog, FoldConstants
from bamquery.sql_frontend.binder.environment import Environment
from bamquery.sql_frontend.binder.expressions.expression_binder import ExpressionBinder
from bamquery.sql_frontend.binder.scope import Scope
from bamquery.sql_frontend.binder.sources.sample import bind_sample
from bamquery.sql_frontend.binder.sources.with_queries import named_query
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.functions.coercion import coerce, common_type
from bamquery.sql_frontend.functions.operators import explicit_cast
from bamquery.sql_frontend.sql_types import type_name
from bamquery.sql_frontend.syntax.positions import reason, start
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.ingest.sources.formats import has_known_suffix
from bamquery.text.identifiers import fold_case as fold_name
from bamquery.text.identifiers import suggestion

_NOTHING: Final = Scope()


@dataclass(frozen=True)
class SourceBinder:
    """Binds the FROM of one query.

    Attributes:
        sql: the text, for the places of errors.
        catalog: tables and files.
        bind_query: for queries in FROM.
        make_binder: for conditions of joins: an expression binder over a scope, for a clause.
        environment: what the query sees of the text around it.
        unnamed: numbers for the queries in FROM that have no alias.
    """

    sql: str
    catalog: Catalog
    bind_query: Callable[[exp.Expr], Plan]
    make_binder: Callable[[Scope, str], ExpressionBinder]
    environment: Environment
    unnamed: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def bind(self, node: exp.From | None, joins: Sequence[exp.Join]) -> tuple[Plan, Scope]:
        """The plan and scope of what FROM names and joins; one row without columns where there is no FROM."""
        if node is None:
            for join in joins:
                with errors_at(self.sql, join):
                    raise ValueError("JOIN needs a FROM before it")
            return SingleRow(), _NOTHING
        from bamquery.sql_frontend.binder.sources.joins import JoinBinder

        joiner = JoinBinder(self.sql, self.make_binder, self._bind_source)
        try:
            return joiner.bind(self._bind_source(node.this), joins)
        except SqlError:
            # Where tables are missing, all that are missing are told.
            apply_to_each(self._bind_source, [node.this, *(join.this for join in joins)], self.sql)
            raise

    def _bind_source(self, source: exp.Expr) -> tuple[Plan, Scope]:
        from bamquery.sql_frontend.binder.sources.joins import JoinBinder

        joiner = JoinBinder(self.sql, self.make_binder, self._bind_source)
        alias = source.args.get("alias")
        match source:
            case exp.Table():
                plan, name, hidden, stored = _bind_table(source, self.sql, self.catalog, self.environment)
                plan = bind_sample(plan, source.args.get("sample"), self.sql)
                whole = Scope.from_fields(name, plan.fields, hidden, stored=stored)
                scope = _apply_alias(whole, alias, self.sql)
                if alias is not None and isinstance(source.this, exp.Anonymous) and len(plan.fields) == 1:
                    scope = _named_like_table(scope, alias, name)
                return joiner.bind((plan, scope), source.args.get("joins") or ())
            case exp.Values():
                name = self._next_name(alias)
                plan = bind_values(source, self.sql, self.catalog.fold_constants)
            case exp.Subquery(this=inner) if _is_source(inner):
                plan, scope = self._bind_source(inner)
                plan = bind_sample(plan, source.args.get("sample"), self.sql)
                bound = (plan, scope) if alias is None else self._alias_as_table(plan, scope, alias)
                return joiner.bind(bound, source.args.get("joins") or ())
            case exp.Subquery(this=inner):
                name = self._next_name(alias)
                plan = self.bind_query(inner)
            case _:
                with errors_at(self.sql, source):
                    raise ValueError(f"{type(source).__name__} cannot stand in FROM")
        plan = bind_sample(plan, source.args.get("sample"), self.sql)
        bound = plan, _apply_alias(Scope.from_fields(name, plan.fields), alias, self.sql)
        return joiner.bind(bound, source.args.get("joins") or ())

    def _next_name(self, alias: exp.TableAlias | None) -> str:
        """What a query in FROM is called that has no alias: unnamed_subquery, unnamed_subquery2 and so on."""
        if alias is not None and alias.this is not None:
            return ""
        number = next(self.unnamed)
        return f"unnamed_subquery{number if number > 1 else ''}"

    def _alias_as_table(self, plan: Plan, scope: Scope, alias: exp.TableAlias) -> tuple[Plan, Scope]:
        """What stands in parentheses, as one table with a name of its own."""
        chosen = tuple(column for column, _ in scope.visible)
        whole = Scope.from_fields(_only_name(scope), scope.fields(chosen))
        if chosen != scope.columns:
            plan = Project(plan, chosen, tuple(column.name for column in whole.columns))
        return plan, _apply_alias(whole, alias, self.sql)


def source_names(select: exp.Select) -> Iterator[str]:
    """What the tables and aliased queries in its FROM are called."""
    from_ = select.args.get("from_")
    for clause in (*([] if from_ is None else [from_]), *(select.args.get("joins") or ())):
        if clause.this.alias_or_name:
            yield clause.this.alias_or_name


def _is_source(inner: exp.Expr) -> bool:
    """Whether what stands in parentheses is a table or joins, not a query."""
    if isinstance(inner, exp.Subquery):
        return bool(inner.args.get("joins") or inner.args.get("alias"))
    return isinstance(inner, exp.Table | exp.Values)


def _only_name(scope: Scope) -> str:
    return scope.tables[0].name if len(scope.tables) == 1 else ""


def catalog_of(node: exp.Expr, catalog: Catalog) -> Catalog:
    """Where a table's name is looked up: where its schema stands before it, among what is stored."""
    return catalog.stored_tables_only() if node.args.get("db") is not None else catalog


def bind_table(name: str, node: exp.Expr, sql: str, catalog: Catalog, others: Sequence[str] = ()) -> Source:
    """The table of that name; `others` are names that could have been meant too.

    Raises:
        SqlError: there is none; with the nearest name.
    """
    if node.text("db") == INFORMATION_SCHEMA:
        from bamquery.sql_frontend.binder.sources.system_tables import bind_information_table

        return bind_information_table(node, sql, catalog)
    catalog = catalog_of(node, catalog)
    try:
        return catalog.table(name)
    except CatalogError as error:
        known = catalog.table_names()
        if fold_name(name) in map(fold_name, known):
            raise
        words = f'there is no table "{name}".{suggestion(name, [*known, *others])}'
        raise SqlError(reason(words, sql, node), sql) from error


def bind_values(
    node: exp.Values, sql: str, fold: FoldConstants, targets: Sequence[pa.DataType] | None = None
) -> Plan:
    """VALUES as constant rows, of the target types, or else of those that the values have in common.

    Raises:
        SqlError: rows of different lengths, values that are not constant or do not convert.
    """
    for row in node.expressions:
        check_cancelled()
        with errors_at(sql, row):
            if not isinstance(row, exp.Tuple):
                raise ValueError("VALUES needs rows in parentheses")
    rows = [row.expressions for row in node.expressions]
    width = len(rows[0])
    for row, values in zip(node.expressions, rows, strict=True):
        check_cancelled()
        with errors_at(sql, row):
            if len(values) != width:
                raise ValueError(f"a row of {len(values)} values after rows of {width}")
    binder = ExpressionBinder(sql, _NOTHING, "VALUES")
    bound = apply_to_each(binder.bind_all, rows, sql)
    columns = []
    for position in range(width):
        nodes = [values[position] for values in rows]
        cells = [values[position] for values in bound]
        if targets is None:
            with errors_at(sql, nodes[0]):
                kind = common_type(cells)
            kind = pa.int32() if pa.types.is_null(kind) else kind
        else:
            kind = targets[position]
        constant = [
            _constant(cell, kind, cell_node, sql, fold) for cell, cell_node in zip(cells, nodes, strict=True)
        ]
        columns.append(pa.array(constant, kind))
    names = [f"col{i}" for i in range(width)]
    return Values(pa.RecordBatch.from_arrays(columns, names=names))


def _constant(
    value: Expression, kind: pa.DataType, node: exp.Expr, sql: str, fold: FoldConstants
) -> pa.Scalar[Any]:
    check_cancelled()
    with errors_at(sql, node):
        converted = coerce(value, kind) if isinstance(value, Literal) else explicit_cast(value, kind)
        folded = fold(converted)
        if not isinstance(folded, Literal):
            raise ValueError(f"not a value of type {type_name(kind)} that is known before the statement runs")
    return folded.value


def _bind_table(
    node: exp.Table, sql: str, catalog: Catalog, environment: Environment
) -> tuple[Plan, str, int, bool]:
    """The plan, its name, how many of its last columns are for who names them only, if it is stored."""
    name = node.this
    in_schema = node.args.get("db") is not None  # main.t: a table or view, whatever else has its name
    if isinstance(name, exp.Identifier) and not in_schema and not _is_single_quoted(name, sql):
        with errors_at(sql, node):
            named = named_query(name.this, environment)
        if named is not None:
            return named, name.this, 0, False
    if isinstance(name, exp.Identifier):
        if _is_single_quoted(name, sql) or _is_file(name, node, sql, catalog):
            from bamquery.sql_frontend.binder.sources.files import bind_files

            plan, hidden = bind_files([name.this], None, name, sql, catalog)
            return plan, _stem(name.this), hidden, False
        source, called = bind_table(name.this, node, sql, catalog, environment.names()), name.this
    elif name.name.lower() in SERIES_FUNCTIONS:
        from bamquery.sql_frontend.binder.sources.series import bind_series

        return bind_series(name, sql, catalog.fold_constants), name.name.lower(), 0, False
    elif name.name.lower() in SYSTEM_FUNCTIONS:
        from bamquery.sql_frontend.binder.sources.system_tables import bind_system_function

        source, called = bind_system_function(name, sql, catalog), name.name
    else:
        from bamquery.sql_frontend.binder.sources.files import bind_file_function

        plan, hidden = bind_file_function(name, sql, catalog, (*SERIES_FUNCTIONS, *SYSTEM_FUNCTIONS))
        return plan, name.name, hidden, False
    hidden = 0
    if ROW_NUMBER in sql.lower() and ROW_NUMBER not in map(fold_name, source.schema.names):
        # Only a statement that may name them has the numbers of rows; a column of that name comes first.
        numbered = catalog.with_row_numbers(source)
        source, hidden = (source, 0) if numbered is None else (numbered, 1)
    plan = Scan(source, tuple(range(len(source.schema))))
    return plan, called, hidden, isinstance(name, exp.Identifier)


def _is_single_quoted(name: exp.Identifier, sql: str) -> bool:
    offset = start(name)
    return offset is not None and sql[offset] == "'"


def _is_file(name: exp.Identifier, node: exp.Table, sql: str, catalog: Catalog) -> bool:
    """Whether a name in double quotes is the path of a file, as its end says, and no table is called so."""
    offset = start(name)
    quoted = offset is not None and sql[offset] == '"'
    if not quoted or node.args.get("db") is not None or not has_known_suffix(name.this):
        return False
    return fold_name(name.this) not in map(fold_name, catalog.table_names())


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _named_like_table(scope: Scope, alias: exp.TableAlias, function: str) -> Scope:
    """The only column of a function of numbers, called like the alias, which may be called as before, too."""
    if function not in SERIES_FUNCTIONS or alias.args.get("columns"):
        return scope
    named = scope.rename(alias.this.name, [alias.this.name])
    return replace(named, synonyms=((named.columns[0], function),))


def _apply_alias(scope: Scope, alias: exp.TableAlias | None, sql: str) -> Scope:
    if alias is None:
        return scope
    table = alias.this.name if alias.this is not None else _only_name(scope)
    renamed = [column.name for column in alias.args.get("columns") or ()]
    with errors_at(sql, alias):
        shown = [column for column, _ in scope.visible]
        if len(renamed) > len(shown):
            raise ValueError(f'"{table}" has {len(shown)} columns, not {len(renamed)}')
    names = [*renamed, *(column.name for column in shown[len(renamed) :])]
    return scope.rename(table, names)
