"""What a database holds, as SQLAlchemy asks for it."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import exc
from sqlalchemy.engine import Connection, reflection
from sqlalchemy.engine.default import DefaultDialect

import bamquery.connection.connection
from bamquery.dbapi import Error
from bamquery.integrations.sqlalchemy.types import sqlalchemy_type
from bamquery.text.identifiers import fold_case

SCHEMA: Final = "main"


class Reflection(DefaultDialect):
    """Tables, views and their columns; names are found without regard to case."""

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """The one that there is."""
        return [SCHEMA]

    def has_schema(self, connection: Connection, schema_name: str, **kw: Any) -> bool:
        """Whether it is that one."""
        return fold_case(schema_name) == SCHEMA

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """All tables."""
        return _native(connection).tables if _is_main(schema) else []

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """All views."""
        return _native(connection).views if _is_main(schema) else []

    def get_temp_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """None: there are no temporary tables."""
        return []

    def get_temp_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """None: there are no temporary views."""
        return []

    @reflection.cache
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Whether there is a table or view of that name."""
        return _is_main(schema) and _find(connection, table_name) is not None

    @reflection.cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Columns of a table or view."""
        name = _require(connection, table_name, schema)
        quoted = self.identifier_preparer.quote_identifier(name)
        try:
            described = connection.exec_driver_sql(f"DESCRIBE {quoted}").all()
        except exc.DBAPIError as error:
            if isinstance(error.orig, Error) and name in _native(connection).views:
                raise exc.UnreflectableTableError(f"{name}: {error.orig}") from error
            raise
        return [
            {
                "name": column.column_name,
                "type": sqlalchemy_type(column.column_type),
                "nullable": column.null == "YES",
                "default": column.default,
            }
            for column in described
        ]

    @reflection.cache
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """The query of a view."""
        name = _require(connection, view_name, schema)
        view = _native(connection)._session.database.view(name)
        if view is None:
            raise exc.NoSuchTableError(view_name)
        return view.sql

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """None: BamQuery holds no keys."""
        _require(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def _no_rows(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """None: BamQuery has none."""
        _require(connection, table_name, schema)
        return []

    get_foreign_keys = _no_rows
    get_indexes = _no_rows
    get_unique_constraints = _no_rows
    get_check_constraints = _no_rows

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """None: BamQuery keeps no comments."""
        _require(connection, table_name, schema)
        return {"text": None}


def _native(connection: Connection) -> bamquery.connection.connection.Connection:
    driver: Any = connection.connection.driver_connection
    native: bamquery.connection.connection.Connection = driver.native_connection
    return native


def _is_main(schema: str | None) -> bool:
    return schema is None or fold_case(schema) == SCHEMA


def _find(connection: Connection, name: str) -> str | None:
    native = _native(connection)
    return next(
        (known for known in [*native.tables, *native.views] if fold_case(known) == fold_case(name)), None
    )


def _require(connection: Connection, name: str, schema: str | None) -> str:
    found = _find(connection, name) if _is_main(schema) else None
    if found is None:
        raise exc.NoSuchTableError(name if schema is None else f"{schema}.{name}")
    return found
