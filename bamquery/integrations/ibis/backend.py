"""The backend: connections, tables and runs of expressions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import ibis.common.exceptions as exc
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis import util
from ibis.backends import CanListDatabase, DirectExampleLoader, HasCurrentDatabase, UrlFromPath
from ibis.backends.sql import SQLBackend

import bamquery
import bamquery.connection
from bamquery import dbapi
from bamquery.integrations.ibis.compiler import compiler
from bamquery.integrations.ibis.frames import conformed, pandas_frame
from bamquery.naming import fold

if TYPE_CHECKING:
    import pandas

_DATABASE = "main"


class Backend(SQLBackend, CanListDatabase, HasCurrentDatabase, UrlFromPath, DirectExampleLoader):
    """BamQuery as Ibis sees it. Every statement commits."""

    name = "bamquery"
    compiler = compiler
    supports_temporary_tables = False
    supports_python_udfs = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Use `connect`."""
        super().__init__(*args, **kwargs)
        self._memory: set[str] = set()

    # Connections.

    def do_connect(
        self, database: str | Path = ":memory:", *, device: str = "auto", **settings: object
    ) -> None:
        """Open a database folder, made if there is none.

        Args:
            database: the folder; `:memory:` is a temporary one that goes with the connection.
            device: `auto`, `cpu` or `cuda:<n>`.
            settings: others by name; docs/python.md lists them.
        """
        self.con = dbapi.connect(database, device=device, **settings)

    @util.experimental  # type: ignore[untyped-decorator,unused-ignore]
    @classmethod
    def from_connection(cls, con: bamquery.connection.Connection | dbapi.Connection, /) -> Backend:
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
        return _DATABASE

    def list_databases(self, *, like: str | None = None, catalog: str | None = None) -> list[str]:
        """The one schema that there is."""
        names: list[str] = self._filter_with_like([_DATABASE], like)
        return names

    # SQL.

    def raw_sql(self, query: str | sg.Expression, **kwargs: Any) -> dbapi.Cursor:
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
            return _schema(cursor)

    # Tables.

    def list_tables(
        self, *, like: str | None = None, database: tuple[str, str] | str | None = None
    ) -> list[str]:
        """Tables, views, and what was read or registered under a name."""
        self._require_main(database)
        native = self.con.native_connection
        registered = [name for name in native._registered if name not in self._memory]
        names: list[str] = self._filter_with_like([*native.tables, *native.views, *registered], like)
        return names

    def get_schema(
        self, table_name: str, *, catalog: str | None = None, database: str | None = None
    ) -> sch.Schema:
        """Names and types of a table's columns.

        Raises:
            TableNotFound: there is no such table.
        """
        self._require_main((catalog, database) if catalog else database)
        native = self.con.native_connection
        known = {fold(name) for name in [*native.tables, *native.views, *native._registered]}
        if fold(table_name) not in known:
            raise exc.TableNotFound(table_name)
        with self._safe_raw_sql(sge.Describe(this=self._table(table_name))) as cursor:
            return _schema(cursor)

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: Any = None,
        database: tuple[str, str] | str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Make a table, with all its rows or not at all.

        Args:
            name: of the table.
            obj: its rows: an expression, or what `ibis.memtable` takes.
            schema: its columns; those of `obj` by default.
            database: "main".
            temp: there are no temporary tables.
            overwrite: whether to replace a table of that name.
        """
        if obj is None and schema is None:
            raise ValueError("Either `obj` or `schema` must be specified")
        if temp:
            raise exc.UnsupportedArgumentError("BamQuery has no temporary tables")
        self._require_main(database)
        with self._rows(obj) as rows:
            return self._create(name, rows, rows.schema() if schema is None else ibis.schema(schema), overwrite)

    def _create(self, name: str, rows: ir.Table | None, columns: sch.Schema, overwrite: bool) -> ir.Table:
        if nulls := columns.null_fields:
            raise exc.IbisTypeError(f"columns need a type: {', '.join(nulls)}")
        if rows is None or not all(kind.nullable for kind in columns.types):
            self._create_empty(name, columns, overwrite=overwrite, rows=rows)
            return self.table(name)
        self._run_pre_execute_hooks(rows)
        create = sge.Create(
            kind="TABLE", this=self._table(name), replace=overwrite, expression=self._as(rows, columns)
        )
        with self._safe_raw_sql(create):
            return self.table(name)

    @contextlib.contextmanager
    def _rows(self, obj: Any) -> Iterator[Any]:
        """An expression, or objects as one, which are forgotten afterwards."""
        if obj is None or isinstance(obj, ir.Expr):
            yield obj
            return
        rows = ibis.memtable(obj)
        try:
            yield rows
        finally:
            self.con.native_connection.unregister(rows.op().name)
            self._memtables.discard(rows.op())

    def _create_empty(
        self, name: str, columns: sch.Schema, *, overwrite: bool, rows: ir.Table | None
    ) -> None:
        """A table with NOT NULL, which CREATE TABLE AS has not; its rows, where there are any, follow."""
        made = name if rows is None else util.gen_name("bamquery_table")
        target = sge.Schema(this=self._table(made), expressions=columns.to_sqlglot_column_defs(self.dialect))
        with self._safe_raw_sql(sge.Create(kind="TABLE", this=target, replace=overwrite and rows is None)):
            pass
        if rows is None:
            return
        try:
            self.insert(made, rows)
            if overwrite:
                self.drop_table(name, force=True)
            self.rename_table(made, name)
        except BaseException:
            self.drop_table(made, force=True)
            raise

    def _as(self, rows: ir.Table, columns: sch.Schema) -> sge.Select:
        """The rows as columns of these types: BamQuery's sum of integers, say, is wider than Ibis's."""
        quoted = self.compiler.quoted
        mapper = self.compiler.type_mapper
        selected = [
            sge.Cast(this=sg.column(given, quoted=quoted), to=mapper.from_ibis(kind)).as_(wanted, quoted=quoted)
            for given, (wanted, kind) in zip(rows.columns, columns.items(), strict=True)
        ]
        return sg.select(*selected).from_(self.compiler.to_sqlglot(rows).subquery("rows_of"))

    def drop_table(
        self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False
    ) -> None:
        """Drop a table; with `force` it need not be there."""
        self._drop("TABLE", name, database, force)

    def drop_view(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        """Drop a view; with `force` it need not be there."""
        self._drop("VIEW", name, database, force)

    def _drop(self, kind: str, name: str, database: Any, force: bool) -> None:
        self._require_main(database)
        exists = "IF EXISTS " if force else ""
        with self._safe_raw_sql(f"DROP {kind} {exists}{self._table(name).sql(self.dialect)}"):
            pass

    def rename_table(self, old_name: str, new_name: str) -> None:
        """Give a table another name; nothing is copied."""
        old, new = (self._table(name).sql(self.dialect) for name in (old_name, new_name))
        with self._safe_raw_sql(f"ALTER TABLE {old} RENAME TO {new}"):
            pass

    def truncate_table(self, name: str, /, *, database: str | tuple[str, str] | None = None) -> None:
        """Replace a table by one of the same columns without rows."""
        self._require_main(database)
        self.get_schema(name)
        table = self._table(name).sql(self.dialect)
        with self._safe_raw_sql(f"DESCRIBE {table}") as cursor:
            described = cursor.fetchall()
        quoted = self.compiler.quoted
        columns = ", ".join(
            sg.to_identifier(column, quoted=quoted).sql(self.dialect)
            + f" {kind}"
            + (" NOT NULL" if null == "NO" else "")
            + ("" if default is None else f" DEFAULT {default}")
            for column, kind, null, _, default, _ in described
        )
        with self._safe_raw_sql(f"CREATE OR REPLACE TABLE {table} ({columns})"):
            pass

    def insert(
        self,
        name: str,
        /,
        obj: Any,
        *,
        database: str | tuple[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Insert rows, all in one commit.

        Raises:
            UnsupportedOperationError: rows of a table with NOT NULL columns are to be replaced.
        """
        self._require_main(database)
        if not overwrite:
            with self._rows(obj) as rows:
                super().insert(name, rows)
            return
        columns = self.get_schema(name)
        if not all(kind.nullable for kind in columns.types):
            raise exc.UnsupportedOperationError(
                f'table "{name}" has NOT NULL columns, so its rows cannot be replaced in one commit: '
                "truncate_table() and insert() do it in two"
            )
        self.create_table(name, obj, schema=columns, overwrite=True)

    def upsert(self, name: str, /, obj: Any, on: str, *, database: str | None = None) -> None:
        """Refuse: there is no MERGE."""
        raise exc.UnsupportedOperationError("BamQuery has no MERGE")

    # Files.

    def read_parquet(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """Parquet files as a table of this connection; nothing is copied."""
        return self._read("read_parquet", path, table_name, kwargs)

    def read_csv(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """CSV files as a table of this connection; nothing is copied. `kwargs` are `read_csv`'s in SQL."""
        return self._read("read_csv", path, table_name, kwargs)

    def read_json(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """JSON files as a table of this connection; nothing is copied. `kwargs` are `read_json`'s in SQL."""
        return self._read("read_json", path, table_name, kwargs)

    def _read(self, function: str, paths: Any, name: str | None, options: Mapping[str, Any]) -> ir.Table:
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
        """What `cache()` keeps: rows in memory, which no other process sees and which go with the connection."""
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

    @util.experimental  # type: ignore[untyped-decorator,unused-ignore]
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
                    table = conformed(pa.Table.from_batches([batch]), schema)
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
            return expr.__pyarrow_result__(conformed(cursor.fetch_arrow_table(), schema))

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

    # Names.

    def _table(self, name: str) -> sge.Table:
        return sg.table(name, quoted=self.compiler.quoted)

    def _require_main(self, database: Any) -> None:
        """Refuse any other schema than the one that there is."""
        given = self._to_sqlglot_table(database)
        if given.catalog or fold(given.db or _DATABASE) != _DATABASE:
            raise exc.UnsupportedArgumentError(f'there is one database, "{_DATABASE}", not {database!r}')


def _schema(cursor: dbapi.Cursor) -> sch.Schema:
    """Of what DESCRIBE says."""
    return sch.Schema(
        {
            name: compiler.type_mapper.from_string(kind, nullable=null == "YES")
            for name, kind, null, *_ in cursor.fetchall()
        }
    )
