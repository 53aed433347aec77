"""CREATE TABLE with columns, CREATE VIEW, ALTER TABLE: definitions to statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import CatalogError
from bamquery.plan.bound_statements import (
    AddColumn,
    ColumnDefinition,
    CreateTable,
    CreateView,
    DropColumn,
    RenameColumn,
    RenameTable,
    SetEncoding,
)
from bamquery.plan.expressions import Literal
from bamquery.plan.nodes import Source
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.queries.query_binder import bind_query
from bamquery.sql_frontend.binder.sources.from_clause import bind_table, catalog_of
from bamquery.sql_frontend.binder.statements.column_defaults import bind_default, parse_default
from bamquery.sql_frontend.binder.statements.table_options import bind_encoding
from bamquery.sql_frontend.fault_collection import apply_to_each, errors_at
from bamquery.sql_frontend.parameters import is_variable, mark
from bamquery.sql_frontend.sql_types import from_syntax, unknown_type
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.text.identifiers import fold_case, suggestion


def bind_create_table(tree: exp.Create, sql: str, catalog: Catalog) -> CreateTable:
    """CREATE TABLE name (columns).

    Raises:
        SqlError: types that there are not, names given twice, defaults that are no values of their type.
    """
    schema = tree.this
    columns = tuple(apply_to_each(lambda node: _definition(node, sql, catalog), schema.expressions, sql))
    _check_names([node.this for node in schema.expressions], sql)
    return CreateTable(
        schema.this.name,
        columns,
        bool(tree.args.get("replace")),
        bool(tree.args.get("exists")),
        bind_encoding(tree.args.get("options") or (), sql),
    )


def _check_names(nodes: Sequence[exp.Expr], sql: str) -> None:
    seen: set[str] = set()
    for node in nodes:
        with errors_at(sql, node):
            if fold_case(node.name) in seen:
                raise ValueError(f'column "{node.name}" is defined twice')
        seen.add(fold_case(node.name))


def _definition(node: exp.Expr, sql: str, catalog: Catalog) -> ColumnDefinition:
    """One column: a name, a type, NOT NULL and DEFAULT."""
    with errors_at(sql, node):
        if not isinstance(node, exp.ColumnDef) or node.args.get("kind") is None:
            raise ValueError("a column needs a name and a type")
    kind = _type(node.args["kind"], sql)
    not_null, default = False, None
    for constraint in node.args.get("constraints") or ():
        match constraint.args["kind"]:
            case exp.NotNullColumnConstraint() as null:
                not_null = not null.args.get("allow_null")
            case exp.DefaultColumnConstraint(this=value):
                default = value.unnest().sql("duckdb")
                with errors_at(sql, value):
                    bind_default(value, sql, kind, catalog.fold_constants)
            case other:
                with errors_at(sql, other):
                    raise ValueError(f"{type(other).__name__} cannot stand here")
    return ColumnDefinition(node.this.name, kind, not_null, default)


def _type(node: exp.DataType, sql: str) -> pa.DataType:
    with errors_at(sql, node):
        kind = from_syntax(node)
        if kind is None:
            raise ValueError(unknown_type(str(node.args.get("kind") or node.this.value)))
    return kind


def bind_create_view(tree: exp.Create, sql: str, catalog: Catalog) -> CreateView:
    """CREATE VIEW; its query is bound to see that it can be, and kept as text.

    Raises:
        SqlError: the query cannot be bound, or has fewer columns than are named, or parameters.
    """
    target = tree.this
    named = list(target.expressions) if isinstance(target, exp.Schema) else []
    table = target.this if isinstance(target, exp.Schema) else target
    for node in tree.expression.walk():
        with errors_at(sql, node):
            if mark(node) is not None and not is_variable(node):
                raise ValueError("a view cannot have parameters")
    fields = bind_query(tree.expression, sql, catalog.stored_tables_only()).fields
    with errors_at(sql, target):
        if len(named) > len(fields):
            raise ValueError(f"the query has {len(fields)} columns, not {len(named)}")
    _check_names(named, sql)
    return CreateView(
        table.name,
        tree.meta["query"],
        tuple(node.name for node in named),
        bool(tree.args.get("replace")),
        bool(tree.args.get("exists")),
    )


def bind_alter(
    tree: syntax.AlterTable, sql: str, catalog: Catalog
) -> AddColumn | DropColumn | RenameColumn | RenameTable | SetEncoding:
    """ALTER TABLE, one change.

    Raises:
        SqlError: there is no such table or column, or there is one where there must not be.
    """
    if isinstance(tree.args["action"], syntax.RenameTable):
        return _rename_table(tree, sql, catalog)
    source = _target(tree, sql, catalog)
    match tree.args["action"]:
        case syntax.AddColumn() as action:
            return _add_column(action, source, sql, catalog)
        case syntax.DropColumn(this=name) as action:
            if_exists = bool(action.args.get("exists"))
            if if_exists and source is not None and not _has_column(source, name.name):
                return DropColumn(None, name.name)
            _require_column(source, name, sql)
            with errors_at(sql, name):
                if source is not None and len(source.schema) == 1:
                    raise ValueError(f'"{name.name}" is the only column: drop the table instead')
            return DropColumn(source.name if source else None, name.name)
        case syntax.RenameColumn(this=name, expression=new):
            _require_column(source, name, sql)
            with errors_at(sql, new):
                if (
                    source is not None
                    and fold_case(new.name) != fold_case(name.name)
                    and _has_column(source, new.name)
                ):
                    raise ValueError(f'table "{source.name}" has a column "{new.name}" already')
            return RenameColumn(source.name if source else None, name.name, new.name)
        case syntax.SetOptions(expressions=options):
            encoding = bind_encoding(options, sql)
            assert encoding is not None
            return SetEncoding(source.name if source else None, encoding)
        case other:
            raise AssertionError(f"no ALTER is {type(other).__name__}")


def _rename_table(tree: syntax.AlterTable, sql: str, catalog: Catalog) -> RenameTable:
    table, new, kind = tree.this, tree.args["action"].this, tree.args["kind"]
    known = {fold_case(name): name for name in catalog.table_names()}
    exists = bool(tree.args.get("exists"))
    if fold_case(table.name) not in known:
        if exists:
            return RenameTable(None, new.name)
        bind_table(table.name, table, sql, catalog)  # an object of Python at best
        with errors_at(sql, table):
            raise ValueError(f'"{table.name}" is a Python object, not a table')
    with errors_at(sql, table):
        if kind == "VIEW" and _is_stored(table.name, catalog):
            raise ValueError(f'"{table.name}" is a table, not a view')
    with errors_at(sql, new):
        if fold_case(new.name) != fold_case(table.name) and fold_case(new.name) in known:
            raise ValueError(f'there is a table or view "{known[fold_case(new.name)]}" already')
    return RenameTable(known[fold_case(table.name)], new.name)


def _is_stored(name: str, catalog: Catalog) -> bool:
    try:
        catalog.rules(name)
    except CatalogError:
        return False
    return True


def _target(tree: syntax.AlterTable, sql: str, catalog: Catalog) -> Source | None:
    """The table; None where there is none and IF EXISTS says that this is fine."""
    table, kind = tree.this, tree.args["kind"]
    known = {fold_case(name) for name in catalog.table_names()}
    if tree.args.get("exists") and fold_case(table.name) not in known:
        return None
    source = bind_table(table.name, table, sql, catalog)
    with errors_at(sql, table):
        if kind != "TABLE":
            raise ValueError("of a view only the name could be changed: replace it (CREATE OR REPLACE VIEW)")
        try:
            catalog_of(table, catalog).rules(table.name)
        except CatalogError as error:
            raise ValueError(str(error)) from error
    return source


def _add_column(action: syntax.AddColumn, source: Source | None, sql: str, catalog: Catalog) -> AddColumn:
    column = _definition(action.this, sql, catalog)
    if_not_exists = bool(action.args.get("exists"))
    if source is None:
        return AddColumn(None, column)
    if _has_column(source, column.name):
        if if_not_exists:
            return AddColumn(None, column)
        with errors_at(sql, action.this):
            raise ValueError(f'table "{source.name}" has a column "{column.name}" already')
    initial: pa.Scalar[Any] | None = None
    if column.default is not None:
        value = bind_default(parse_default(column.default), sql, column.type, catalog.fold_constants)
        assert isinstance(value, Literal)
        initial = value.value if not value.is_null else None
    return AddColumn(source.name, column, initial)


def _require_column(source: Source | None, node: exp.Identifier, sql: str) -> None:
    if source is not None and not _has_column(source, node.name):
        with errors_at(sql, node):
            hint = suggestion(node.name, source.schema.names)
            raise ValueError(f'table "{source.name}" has no column "{node.name}".{hint}')


def _has_column(source: Source, name: str) -> bool:
    return any(fold_case(other) == fold_case(name) for other in source.schema.names)
