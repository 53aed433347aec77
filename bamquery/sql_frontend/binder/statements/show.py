"""SHOW, PRAGMA, USE and statements about schemas."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.errors import SettingError
from bamquery.plan.bound_statements import NoOperation, Query, ShowTables
from bamquery.plan.nodes import Plan, Scan, Values
from bamquery.sql_frontend.binder.catalog import Catalog
from bamquery.sql_frontend.binder.expressions.session_functions import settle_session
from bamquery.sql_frontend.binder.queries.query_binder import bind_query
from bamquery.sql_frontend.binder.schema_names import settled_schema
from bamquery.sql_frontend.binder.sources.system_tables import bind_relation_table
from bamquery.sql_frontend.fault_collection import errors_at
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.syntax import ast_nodes as syntax
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA, MAIN
from bamquery.text.identifiers import fold_case

_QUERIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "database_list": "SELECT database_oid AS seq, database_name AS name, path AS file "
        "FROM bamquery_databases()",
        "databases": "SELECT database_name FROM bamquery_databases()",
        "functions": "SELECT DISTINCT function_name AS name, function_type AS type, description "
        "FROM bamquery_functions() ORDER BY ALL",
        "schemas": "SELECT database_name, schema_name, true AS current FROM bamquery_schemas() "
        "WHERE schema_name = current_schema()",
        "settings": "SELECT name, value, input_type, description FROM bamquery_settings() ORDER BY name",
        "version": "FROM pragma_version()",
        "views": "SELECT view_name AS name FROM bamquery_views() ORDER BY lower(view_name)",
    }
)
"""What is shown, as the query that gives it."""


def bind_show(tree: syntax.ShowSubject, sql: str, catalog: Catalog) -> Query:
    """What of the catalogue is asked for.

    Raises:
        SqlError: there is no such table or view.
    """
    subject, table = str(tree.this), tree.args.get("table")
    if subject in _QUERIES:
        text = _QUERIES[subject]
        (query,) = parse(text)
        settle_session(query, text, catalog)
        return Query(bind_query(query, text, catalog))
    if table is None:
        source = catalog.system_table(subject)
    else:
        with errors_at(sql, table):
            source = bind_relation_table(
                subject, table.this if isinstance(table, exp.Identifier) else _table_name(table), catalog
            )
    return Query(Scan(source, tuple(range(len(source.schema)))))


def _table_name(table: exp.Table) -> str:
    if table.text("db") == INFORMATION_SCHEMA:
        raise ValueError(f"what is in {INFORMATION_SCHEMA} was not made by SQL: DESCRIBE shows its columns")
    return table.name


def bind_show_tables(tree: syntax.ShowTables, sql: str, catalog: Catalog) -> ShowTables:
    """SHOW TABLES, of a schema if one is named."""
    schema = tree.this
    with errors_at(sql, schema):
        if schema is not None and _resolve_schema(schema, catalog) == INFORMATION_SCHEMA:
            raise ValueError(f"SHOW TABLES is for {MAIN}: FROM {INFORMATION_SCHEMA}.tables and the like work")
    return ShowTables()


def _resolve_schema(schema: syntax.SchemaName, catalog: Catalog) -> str:
    return settled_schema(schema.name, schema.text("catalog"), catalog.database)


def shown_setting(node: exp.Table, catalog: Catalog) -> Plan | None:
    """The value of the setting that SHOW names; None where it names a table, or nothing that there is."""
    name = node.name
    if node.args.get("db") is not None or fold_case(name) in map(fold_case, catalog.table_names()):
        return None
    try:
        value = catalog.setting(name)
    except SettingError:
        return None
    return Values(
        pa.RecordBatch.from_arrays([pa.array([value.as_py()], value.type)], names=[fold_case(name)])
    )


def bind_schema_statement(tree: syntax.SchemaStatement, sql: str, catalog: Catalog) -> NoOperation:
    """USE, CREATE SCHEMA and DROP SCHEMA: there is nothing that they could change.

    Raises:
        SqlError: they name a schema that is not there, or would make or drop one.
    """
    verb, exists = tree.args["verb"], bool(tree.args.get("exists"))
    with errors_at(sql, tree.this):
        try:
            schema = _resolve_schema(tree.this, catalog)
        except ValueError:
            if verb == "DROP" and exists:
                return NoOperation(f'there is no schema "{tree.this.name}"')
            if verb == "CREATE":
                raise ValueError(
                    f'there can be no schema "{tree.this.name}" beside {MAIN}: connect to another folder, '
                    "which is another database"
                ) from None
            raise
        if verb == "USE" and schema == MAIN:
            return NoOperation(f"using {MAIN}")
        if verb == "USE":
            raise ValueError(f"USE takes {MAIN}: name tables of {schema} with it before them")
        if verb == "CREATE" and exists:
            return NoOperation(f'schema "{schema}" exists already')
        if verb == "CREATE":
            raise ValueError(f'there is a schema "{schema}" already: write IF NOT EXISTS')
        raise ValueError(f"{schema} is the schema of every database: it cannot be dropped")
