"""What there is in the database, as Flight SQL's metadata commands ask for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.errors import BamQueryError
from bamquery.flight.sql_info import sql_info
from bamquery.flight.statement_runner import Statements
from bamquery.flight.xdbc_types import xdbc_types

SCHEMA_NAME: Final = "main"
"""Of the one schema that a database has."""
_TABLE, _VIEW = "TABLE", "VIEW"


def _schema(text: str) -> pa.Schema:
    kinds = {"utf8": pa.utf8(), "int32": pa.int32(), "uint8": pa.uint8(), "bytes": pa.binary()}
    fields = (field.split() for field in text.split(", "))
    return pa.schema(
        [pa.field(name, kinds[kind.rstrip("?")], nullable=kind.endswith("?")) for kind, name in fields]
    )


_REFERENCES: Final = _schema(
    "utf8? pk_catalog_name, utf8? pk_db_schema_name, utf8 pk_table_name, utf8 pk_column_name, "
    "utf8? fk_catalog_name, utf8? fk_db_schema_name, utf8 fk_table_name, utf8 fk_column_name, "
    "int32 key_sequence, utf8? fk_key_name, utf8? pk_key_name, uint8 update_rule, uint8 delete_rule"
)
_TABLES: Final = _schema("utf8? catalog_name, utf8? db_schema_name, utf8 table_name, utf8 table_type")
_SCHEMAS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "CommandGetCatalogs": _schema("utf8 catalog_name"),
        "CommandGetDbSchemas": _schema("utf8? catalog_name, utf8 db_schema_name"),
        "CommandGetTableTypes": _schema("utf8 table_type"),
        "CommandGetPrimaryKeys": _schema(
            "utf8? catalog_name, utf8? db_schema_name, utf8 table_name, utf8 column_name, utf8? key_name, "
            "int32 key_sequence"
        ),
        "CommandGetExportedKeys": _REFERENCES,
        "CommandGetImportedKeys": _REFERENCES,
        "CommandGetCrossReference": _REFERENCES,
    }
)


def catalog_name(statements: Statements) -> str:
    """What the database is called, as `current_database()` has it."""
    return statements.session().catalog(with_variables=False).database


def is_metadata(name: str) -> bool:
    """Whether a command asks for metadata."""
    return name in _SCHEMAS or name in _ANSWERS


def metadata_schema(name: str, command: Any) -> pa.Schema:
    """Of the command's answer."""
    if name == "CommandGetTables":
        return (
            _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
            if command.include_schema
            else _TABLES
        )
    if name in _SCHEMAS:
        return _SCHEMAS[name]
    return sql_info([], read_only=False).schema if name == "CommandGetSqlInfo" else xdbc_types(None).schema


def metadata(name: str, command: Any, statements: Statements) -> pa.Table:
    """The command's answer."""
    answer = _ANSWERS.get(name)
    if answer is None:  # keys, which tables do not have
        return metadata_schema(name, command).empty_table()
    return answer(command, statements)


def _catalogs(command: Any, statements: Statements) -> pa.Table:
    del command
    return pa.table([[catalog_name(statements)]], schema=_SCHEMAS["CommandGetCatalogs"])


def _db_schemas(command: Any, statements: Statements) -> pa.Table:
    rows = [[], []] if not _is_here(command, statements) else [[catalog_name(statements)], [SCHEMA_NAME]]
    return pa.table(rows, schema=_SCHEMAS["CommandGetDbSchemas"])


def _table_types(command: Any, statements: Statements) -> pa.Table:
    del command, statements
    return pa.table([[_TABLE, _VIEW]], schema=_SCHEMAS["CommandGetTableTypes"])


def _tables(command: Any, statements: Statements) -> pa.Table:
    database = statements.database
    named = [(name, _TABLE) for name in database.table_names()]
    named += [(name, _VIEW) for name in database.view_names()]
    rows = []
    if _is_here(command, statements):
        matches = _like(command, "table_name_filter_pattern")
        kinds = set(command.table_types) or {_TABLE, _VIEW}
        rows = sorted((name, kind) for name, kind in named if kind in kinds and matches(name))
    columns: list[Any] = [
        [catalog_name(statements)] * len(rows),
        [SCHEMA_NAME] * len(rows),
        [name for name, _ in rows],
        [kind for _, kind in rows],
    ]
    if command.include_schema:
        columns.append([_columns(name, statements).serialize().to_pybytes() for name, _ in rows])
    return pa.table(columns, schema=metadata_schema("CommandGetTables", command))


def _columns(name: str, statements: Statements) -> pa.Schema:
    """The columns of a table or view, with SQL's names of their types; none where it cannot be looked at."""
    try:
        schema = statements.session().catalog(with_variables=False).table(name).schema
    except BamQueryError:  # a view over what is gone, or is out of reach
        return pa.schema([])
    return pa.schema(
        [
            pa.field(field.name, field.type, metadata={"ARROW:FLIGHT:SQL:TYPE_NAME": type_name(field.type)})
            for field in schema
        ]
    )


def _is_here(command: Any, statements: Statements) -> bool:
    is_catalog = not command.HasField("catalog") or command.catalog == catalog_name(statements)
    return is_catalog and _like(command, "db_schema_filter_pattern")(SCHEMA_NAME)


def _like(command: Any, field: str) -> Callable[[str], bool]:
    """Whether a name matches a pattern as of LIKE, where % is any text and _ any character."""
    if not command.HasField(field):
        return lambda name: True
    signs = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|.", getattr(command, field), re.DOTALL)
    pattern = re.compile("".join(signs.get(piece) or re.escape(piece[-1]) for piece in pieces), re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None


_ANSWERS: Final[Mapping[str, Callable[[Any, Statements], pa.Table]]] = MappingProxyType(
    {
        "CommandGetCatalogs": _catalogs,
        "CommandGetDbSchemas": _db_schemas,
        "CommandGetTableTypes": _table_types,
        "CommandGetTables": _tables,
        "CommandGetSqlInfo": lambda command, statements: sql_info(
            list(command.info), read_only=statements.read_only
        ),
        "CommandGetXdbcTypeInfo": lambda command, statements: xdbc_types(
            command.data_type if command.HasField("data_type") else None
        ),
    }
)
