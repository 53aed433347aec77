"""The backend: connections, tables and runs of expressions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis.common.exceptions as exc
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis import util
from ibis.backends import CanListDatabase, DirectExampleLoader, HasCurrentDatabase, UrlFromPath

import bamquery
import bamquery.connection.connection
from bamquery import dbapi
from bamquery.integrations.ibis.frames import conform_to_schema, pandas_frame
from bamquery.integrations.ibis.tables import MAIN, Tables, described_schema

if TYPE_CHECKING:
    import pandas


class Backend(Tables, CanListDatabase, HasCurrentDatabase, UrlFromPath, DirectExampleLoader):
    """BamQuery as Ibis sees it. Every statement commits."""

    name = "bamquery"
    supports_temporary_tables = False
    supports_python_udfs = False

    # Connections.

    def do_connect(
        self,
        database: str | Path = ":memory:",
        *,
        create: bool | None = None,
        device: str = "auto",
        **settings: object,
    ) -> None:
        """Open a database folder, made if there is none.

        Args:
            database: the folder; `:memory:` is a temporary one that goes with the connection.
            create: False makes no database where there is none.
            device: `auto`, `cpu` or `cuda:<n>`.
            settings: others by name; docs/python/connections.md lists them.
        """
        self.con = dbapi.connect(database, create=create, device=device, **settings)

    @util.experimental
    @classmethod
    def from_connection(cls, con: bamquery.connection.connection.Connection | dbapi.Connection, /) -> Backend:
        """Over a connection that is open: BamQuery's own, or one of `bamquery.dbapi`."""
        backend = cls()
        backend._can_reconnect = False
        backend.con = con if isinstance(con, dbapi.Connection) else dbapi.Connection(con)
        return backend

    @property
    def version(self) -> str:
        """BamQuery's."""
        return bamquery.__version__

    @property
    def current_database(self) -> str:
        """The one schema that there is."""
        return MAIN

    def list_databases(self, *, like: str | None = None, catalog: str | None = None) -> list[str]:
        """The one schema that there is."""
        names: list[str] = self._filter_with_like([MAIN], like)
        return names

    # SQL.

    def raw_sql(self, query: Any, **kwargs: Any) -> dbapi.Cursor:
        """Run statements; a cursor of PEP 249 with the answer of the last one.

        Raises:
            UnsupportedOperationError: BamQuery does not have something of it.
            bamquery.dbapi.Error: it failed.
        """
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        cursor = self.con.cursor()
        try:
            return cursor.execute(text, **kwargs)
        except dbapi.NotSupportedError as error:
            raise exc.UnsupportedOperationError(str(error)) from error

    @contextlib.contextmanager
    def _safe_raw_sql(self, *args: Any, **kwargs: Any) -> Iterator[dbapi.Cursor]:
        with contextlib.closing(self.raw_sql(*args, **kwargs)) as cursor:
            yield cursor

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        with self._safe_raw_sql(f"DESCRIBE {query}") as cursor:
            return described_schema(cursor)

    # Files.

    def read_parquet(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """Parquet files as a table of this connection; nothing is copied."""
        return self._read_files("read_parquet", path, table_name, kwargs)

    def read_csv(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """CSV files as a table of this connection; nothing is copied. `kwargs` are `read_csv`'s in SQL."""
        return self._read_files("read_csv", path, table_name, kwargs)

    def read_json(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """JSON files as a table of this connection; nothing is copied. `kwargs` are `read_json`'s in SQL."""
        return self._read_files("read_json", path, table_name, kwargs)

    def _read_files(
        self, function: str, paths: Any, name: str | None, options: Mapping[str, Any]
    ) -> ir.Table:
        name = name or util.gen_name(function)
        arguments = [
            sge.convert(util.normalize_filenames(paths)),
            *(sg.to_identifier(key).eq(sge.convert(value)) for key, value in options.items()),
        ]
        query = sg.select(sge.Star()).from_(self.compiler.f.anon[function](*arguments))
        relation = self.con.run(query.sql(self.dialect))
        self.con.native_connection.register(name, relation)
        return self.table(name)

    # Runs.

    def _create_cached_table(self, name: str, expr: ir.Table) -> ir.Table:
        """What `cache()` keeps: rows in memory, which go with the connection."""
        self._memory.add(name)
        self.con.native_connection.register(name, self.to_pyarrow(expr.as_table()))
        return self.table(name)

    def _drop_cached_table(self, name: str) -> None:
        self.con.native_connection.unregister(name)

    def _register_udfs(self, expr: ir.Expr) -> None:
        for node in expr.op().find((ops.ScalarUDF, ops.AggUDF)):
            if node.__input_type__.name != "BUILTIN":
                raise exc.UnsupportedOperationError(
                    f"BamQuery runs no functions of Python: {type(node).__name__}"
                )

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self._memory.add(op.name)
        try:
            rows = op.data.to_pyarrow_dataset(op.schema)
        except AttributeError:  # of what is no dataset
            rows = op.data.to_pyarrow(op.schema)
        self.con.native_connection.register(op.name, rows)

    def _make_memtable_finalizer(self, name: str) -> Any:
        native = self.con.native_connection
        return lambda: native.unregister(name)

    def _run(
        self, expr: ir.Expr, params: Mapping[ir.Scalar, Any] | None, limit: int | str | None
    ) -> tuple[dbapi.Cursor, sch.Schema]:
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        return self.raw_sql(self.compile(table, params=params, limit=limit)), table.schema()

    @util.experimental
    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **kwargs: Any,
    ) -> pa.ipc.RecordBatchReader:
        """Batches as they come, of at most `chunk_size` rows; the answer is never in memory as a whole."""
        cursor, schema = self._run(expr, params, limit)
        wanted = schema.to_pyarrow()

        def batches() -> Iterator[pa.RecordBatch]:
            with contextlib.closing(cursor):
                for batch in cursor.fetch_record_batch():
                    table = conform_to_schema(pa.Table.from_batches([batch]), schema)
                    yield from table.to_batches(max_chunksize=chunk_size)

        return pa.RecordBatchReader.from_batches(wanted, batches())

    def to_pyarrow(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> Any:
        """The answer as an Arrow table, column or scalar."""
        cursor, schema = self._run(expr, params, limit)
        with contextlib.closing(cursor):
            return expr.__pyarrow_result__(conform_to_schema(cursor.fetch_arrow_table(), schema))

    def execute(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **kwargs: Any,
    ) -> pandas.DataFrame | pandas.Series | Any:
        """The answer as a pandas frame, series or scalar."""
        cursor, schema = self._run(expr, params, limit)
        with contextlib.closing(cursor):
            table = cursor.fetch_arrow_table()
        return expr.__pandas_result__(pandas_frame(table, schema))
