"""Carries out statements that define tables and views and change their columns."""

from __future__ import annotations

import pyarrow as pa

from bamquery.plan.bound_statements import (
    AddColumn,
    ColumnDefinition,
    CreateTable,
    CreateView,
    DropColumn,
    DropView,
    RenameColumn,
    RenameTable,
    SetEncoding,
)
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import Encoding, known_encoding
from bamquery.storage.fragments.schema_evolution import ColumnRule
from bamquery.storage.tables.stored_view import StoredView

Definition = (
    CreateTable | CreateView | DropView | AddColumn | DropColumn | RenameColumn | RenameTable | SetEncoding
)


def define(database: Database, statement: Definition, default_encoding: Encoding) -> str:
    """Commit what the statement says; returns what was done.

    `default_encoding` is that of new tables that name none.

    Raises:
        CatalogError: names that are taken or missing. ConflictError: another writer committed meanwhile.
    """
    match statement:
        case CreateTable():
            return _create_table(database, statement, default_encoding)
        case CreateView(name=name):
            if statement.if_not_exists and (there := describe_existing(database, name)):
                return there
            view = StoredView(statement.sql, statement.columns)
            database.create_view(name, view, or_replace=statement.or_replace)
            return f'created view "{name}"'
        case DropView(name=name, if_exists=if_exists):
            if if_exists and not describe_existing(database, name):
                return f'there is no view "{name}"'
            database.drop_view(name)
            return f'dropped view "{name}"'
        case (
            AddColumn(table=None)
            | DropColumn(table=None)
            | RenameColumn(table=None)
            | RenameTable(table=None)
            | SetEncoding(table=None)
        ):
            return "there was nothing to change"
        case AddColumn(table=str(table), column=column, initial=initial):
            rule = ColumnRule(column.not_null, column.default, initial)
            database.table(table).add_column(column.name, column.type, rule)
            return f'added column "{column.name}" to table "{table}"'
        case DropColumn(table=str(table), name=name):
            database.table(table).drop_column(name)
            return f'dropped column "{name}" of table "{table}"'
        case RenameColumn(table=str(table), name=name, new=new):
            database.table(table).rename_column(name, new)
            return f'renamed column "{name}" of table "{table}" to "{new}"'
        case RenameTable(table=str(table), new=new):
            database.rename(table, new)
            return f'renamed "{table}" to "{new}"'
        case SetEncoding(table=str(table), encoding=encoding):
            database.table(table).set_encoding(known_encoding(encoding))
            return (
                f'table "{table}" is stored with encoding {encoding} from now on; OPTIMIZE rewrites its rows'
            )
        case _:
            raise AssertionError(f"nothing defines by {type(statement).__name__}")


def describe_existing(database: Database, name: str) -> str:
    """What there is of this name, in words; empty where there is nothing."""
    if database.has_table(name):
        return f'table "{name}" exists already'
    return f'view "{name}" exists already' if database.view(name) is not None else ""


def _create_table(database: Database, statement: CreateTable, default_encoding: Encoding) -> str:
    if statement.if_not_exists and (there := describe_existing(database, statement.name)):
        return there
    schema = pa.schema([pa.field(column.name, column.type) for column in statement.columns])
    rules = [_rule(column) for column in statement.columns]
    with database.create_table(
        statement.name,
        schema,
        or_replace=statement.or_replace,
        rules=rules,
        encoding=known_encoding(statement.encoding or default_encoding),
    ) as writer:
        writer.commit()
    return f'created table "{statement.name}"'


def _rule(column: ColumnDefinition) -> ColumnRule:
    return ColumnRule(column.not_null, column.default)
