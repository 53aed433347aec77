"""Tables: what there is, and how they are made, filled and dropped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import ibis
import ibis.common.exceptions as exc
import ibis.expr.schema as sch
import ibis.expr.types as ir
import sqlglot as sg
import sqlglot.expressions as sge
from ibis import util
from ibis.backends.sql import SQLBackend

from bamquery import dbapi
from bamquery.integrations.ibis.compiler import compiler
from bamquery.text.identifiers import fold_case

MAIN = "main"
"""The one database there is, in Ibis's sense of the word."""


class Tables(SQLBackend):
    """The part of the backend that is about tables; `Backend` has connections and runs."""

    compiler = compiler
    con: dbapi.Connection

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Use `connect`."""
        super().__init__(*args, **kwargs)
        self._memory: set[str] = set()

    def list_tables(
        self, *, like: str | None = None, database: tuple[str, str] | str | None = None
    ) -> list[str]:
        """Tables, views, and what was read or registered under a name."""
        self._require_main(database)
        native = self.con.native_connection
        registered = [name for name in self.con.registered_names if name not in self._memory]
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
        known = {fold_case(name) for name in [*native.tables, *native.views, *self.con.registered_names]}
        if fold_case(table_name) not in known:
            raise exc.TableNotFound(table_name)
        with self._safe_raw_sql(sge.Describe(this=self._table(table_name))) as cursor:
            return described_schema(cursor)

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
            return self._create(
                name, rows, rows.schema() if schema is None else ibis.schema(schema), overwrite
            )

    def _create(self, name: str, rows: ir.Table | None, columns: sch.Schema, overwrite: bool) -> ir.Table:
        if nulls := columns.null_fields:
            raise exc.IbisTypeError(f"columns need a type: {', '.join(nulls)}")
        if rows is None or not all(kind.nullable for kind in columns.types):
            self._create_empty(name, columns, overwrite=overwrite, rows=rows)
            return self.table(name)
        self._run_pre_execute_hooks(rows)
        create = sge.Create(
            kind="TABLE", this=self._table(name), replace=overwrite, expression=self._cast_rows(rows, columns)
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

    def _cast_rows(self, rows: ir.Table, columns: sch.Schema) -> sge.Select:
        """The rows as columns of these types: BamQuery's sum of integers, say, is wider than Ibis's."""
        quoted = self.compiler.quoted
        mapper = self.compiler.type_mapper
        selected = [
            sge.Cast(this=sg.column(given, quoted=quoted), to=mapper.from_ibis(kind)).as_(
                wanted, quoted=quoted
            )
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

    def _table(self, name: str) -> sge.Table:
        return sge.Table(this=sg.to_identifier(name, quoted=self.compiler.quoted))

    def _require_main(self, database: Any) -> None:
        """Refuse any other schema than the one that there is."""
        given = self._to_sqlglot_table(database)
        if given.catalog or fold_case(given.db or MAIN) != MAIN:
            raise exc.UnsupportedArgumentError(f'there is one database, "{MAIN}", not {database!r}')


def described_schema(cursor: dbapi.Cursor) -> sch.Schema:
    """Of what DESCRIBE says."""
    return sch.Schema(
        {
            name: compiler.type_mapper.from_string(kind, nullable=null == "YES")
            for name, kind, null, *_ in cursor.fetchall()
        }
    )
