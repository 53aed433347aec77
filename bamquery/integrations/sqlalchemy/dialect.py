"""The dialect: how SQLAlchemy connects, and what it may expect."""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any, Final

from sqlalchemy import exc, pool, types, util
from sqlalchemy.engine import URL

import bamquery.dbapi
from bamquery.integrations.sqlalchemy.compilers import (
    BamQueryCompiler,
    BamQueryDdlCompiler,
    BamQueryIdentifierPreparer,
    BamQueryTypeCompiler,
)
from bamquery.integrations.sqlalchemy.reflection import SCHEMA, Reflection
from bamquery.integrations.sqlalchemy.types import INTERVAL, ExactNumeric, TextUuid

_MEMORY: Final = ":memory:"
_AUTOCOMMIT: Final = "AUTOCOMMIT"


class BamQueryDialect(Reflection):
    """`bamquery:///path?setting=value`, or `bamquery://` for a temporary database.

    Every statement commits, which SQLAlchemy calls the isolation level AUTOCOMMIT; it is the only one.
    """

    name = "bamquery"
    driver = "bamquery"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_enum = False
    supports_multivalues_insert = True
    supports_default_values = True
    supports_default_metavalue = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_alter = True
    supports_comments = False
    supports_sequences = False
    supports_is_distinct_from = True
    postfetch_lastrowid = False
    div_is_floordiv = False
    default_isolation_level = _AUTOCOMMIT
    statement_compiler = BamQueryCompiler
    ddl_compiler = BamQueryDdlCompiler
    type_compiler_cls = BamQueryTypeCompiler
    preparer = BamQueryIdentifierPreparer
    colspecs = {  # noqa: RUF012 (as SQLAlchemy's own)
        types.Interval: INTERVAL,
        types.Numeric: ExactNumeric,
        types.Uuid: TextUuid,
    }

    def __init__(self, omit_constraints: bool = False, **kwargs: Any) -> None:
        """By `create_engine`.

        Args:
            omit_constraints: make tables without the primary keys, foreign keys, unique and check constraints
                that their definitions have; otherwise those are refused.
            kwargs: SQLAlchemy's.
        """
        super().__init__(**kwargs)
        self.omit_constraints = omit_constraints
        self._chosen: weakref.WeakSet[Any] = weakref.WeakSet()

    # Connections.

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """What PEP 249 asks for."""
        return bamquery.dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """One connection for all of a temporary database, which goes with it."""
        return pool.QueuePool if _path(url) != _MEMORY else pool.StaticPool

    def create_connect_args(self, url: URL) -> Any:
        """The folder, and settings by name; `create=false` makes no database where there is none."""
        if url.host or url.username or url.port:
            raise exc.ArgumentError(
                f"{url!r} names a host: a folder comes after three slashes (bamquery:///taxi.bq), "
                "four where its path begins with one"
            )
        named: dict[str, Any] = dict(url.query)
        if "create" in named:
            named["create"] = util.asbool(named["create"])
        return [_path(url)], named

    def _get_default_schema_name(self, connection: Any) -> str:
        return SCHEMA

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return tuple(int(part) for part in bamquery.__version__.split(".") if part.isdecimal())

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        """Whether the connection is closed, so that the pool makes another one."""
        return isinstance(e, bamquery.dbapi.InterfaceError) and connection is not None and connection.closed

    # Transactions, of which there are none.

    def get_isolation_level_values(self, dbapi_conn: Any) -> Any:
        """AUTOCOMMIT only."""
        return [_AUTOCOMMIT]

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """AUTOCOMMIT."""
        return _AUTOCOMMIT

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        """AUTOCOMMIT."""
        return _AUTOCOMMIT

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Remember that the user knows of AUTOCOMMIT."""
        self._chosen.add(dbapi_connection)

    def reset_isolation_level(self, dbapi_conn: Any) -> None:
        """Forget it."""
        self._chosen.discard(dbapi_conn)

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        """True: every statement commits."""
        return True

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Warn where something was done that stays, unless AUTOCOMMIT was asked for by name."""
        connection = getattr(dbapi_connection, "driver_connection", dbapi_connection)
        if connection is None or connection.closed:
            return
        changes = connection.changes
        connection.commit()
        if changes and connection not in self._chosen:
            util.warn(
                "a rollback, or the end of a connection without commit(), undoes nothing: BamQuery commits "
                f"each statement, {changes} here; isolation_level='AUTOCOMMIT' says that this is meant"
            )

    def do_reset(self, dbapi_connection: Any, *args: Any, **kwargs: Any) -> None:
        """Do nothing when a connection goes back to the pool."""

    def do_savepoint(self, connection: Any, name: str) -> None:
        """Refuse."""
        raise exc.InvalidRequestError("BamQuery has no savepoints: every statement commits")

    # Statements.

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement; nothing for what was left out of a definition."""
        if statement:
            cursor.execute(statement, parameters)


def _path(url: URL) -> str:
    return url.database or _MEMORY
