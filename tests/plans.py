"""A catalog without storage, and plans of statements over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from bamquery.engine.constant_folding import fold_expression
from bamquery.errors import CatalogError, SettingError
from bamquery.plan.bound_statements import CreateTableAs, Insert, Query, Statement
from bamquery.plan.expressions import Expression
from bamquery.plan.nodes import Plan, Source, Window
from bamquery.plan.rewriting import nodes_of
from bamquery.sql_frontend.statement_binder import bind
from bamquery.storage.fragments.schema_evolution import ColumnRule
from bamquery.storage.ingest.sources.options import NO_OPTIONS, FileOptions
from bamquery.text.identifiers import fold_case


@dataclass(frozen=True)
class SchemaOnly:
    """A table or files of which only the columns are known."""

    name: str
    schema: pa.Schema


TRIPS = SchemaOnly(
    "trips",
    pa.schema(
        [
            ("id", pa.int64()),
            ("vendor", pa.int8()),
            ("passengers", pa.int32()),
            ("distance", pa.float64()),
            ("speed", pa.float32()),
            ("fare", pa.decimal128(10, 2)),
            ("zone", pa.large_string()),
            ("flag", pa.dictionary(pa.int8(), pa.large_string())),
            ("day", pa.date32()),
            ("pickup", pa.timestamp("us")),
            ("paid", pa.bool_()),
        ]
    ),
)

EVERY_TYPE = SchemaOnly(
    "types",
    pa.schema(
        [
            ("c_bool", pa.bool_()),
            ("c_i8", pa.int8()),
            ("c_i16", pa.int16()),
            ("c_i32", pa.int32()),
            ("c_i64", pa.int64()),
            ("c_u8", pa.uint8()),
            ("c_u16", pa.uint16()),
            ("c_u32", pa.uint32()),
            ("c_u64", pa.uint64()),
            ("c_f32", pa.float32()),
            ("c_f64", pa.float64()),
            ("c_dec4", pa.decimal128(4, 1)),
            ("c_dec18", pa.decimal128(18, 3)),
            ("c_dec38", pa.decimal128(38, 10)),
            ("c_huge", pa.decimal128(38, 0)),
            ("c_str", pa.large_string()),
            ("c_blob", pa.large_binary()),
            ("c_date", pa.date32()),
            ("c_time", pa.time64("us")),
            ("c_time_ns", pa.time64("ns")),
            ("c_ts", pa.timestamp("us")),
            ("c_ts_s", pa.timestamp("s")),
            ("c_ts_ms", pa.timestamp("ms")),
            ("c_ts_ns", pa.timestamp("ns")),
            ("c_tz", pa.timestamp("us", "UTC")),
        ]
    ),
)


class MemoryCatalog:
    """Tables by name; any path is a file with two columns whose names differ in case only."""

    def __init__(self, *tables: SchemaOnly, rules: Mapping[str, Sequence[ColumnRule]] | None = None) -> None:
        self._tables = tables
        self._rules = rules or {}
        self.looked_up: list[str] = []

    def table(self, name: str) -> SchemaOnly:
        self.looked_up.append(name)
        for table in self._tables:
            if fold_case(table.name) == fold_case(name):
                return table
        raise CatalogError(f"there is no table {name}")

    def table_names(self) -> Sequence[str]:
        return [table.name for table in self._tables]

    def rules(self, name: str) -> Sequence[ColumnRule]:
        return self._rules.get(self.table(name).name, ())

    def stored_tables_only(self) -> MemoryCatalog:
        return self

    def fold_constants(self, expression: Expression) -> Expression:
        return fold_expression(expression)

    def with_row_numbers(self, source: Source) -> None:
        return None

    def virtual_columns(self, source: Source) -> tuple[int, int]:
        return 0, 0

    database = "memory"
    version = "v1.2.3"

    def system_table(self, subject: str, table: str | None = None) -> SchemaOnly:
        self.looked_up.append(subject if table is None else f"{subject} of {table}")
        return SchemaOnly(subject, pa.schema([("name", pa.large_string())]))

    def has_variable(self, name: str) -> bool:
        return False

    def variable(self, name: str) -> pa.Scalar[Any] | None:
        return None

    def setting(self, name: str) -> pa.Scalar[Any]:
        if name != "threads":
            raise SettingError(f'there is no setting "{name}"')
        return pa.scalar(8, pa.int64())

    def files(
        self, patterns: Sequence[str], file_format: str | None, options: FileOptions = NO_OPTIONS
    ) -> SchemaOnly:
        self.looked_up += patterns
        name = ", ".join(patterns) + (f" as {file_format}" if file_format else "")
        given = [f"{f.name}={v!r}" for f in fields(options) if (v := getattr(options, f.name)) != f.default]
        name += f" ({', '.join(given)})" if given else ""
        return SchemaOnly(name, pa.schema([("x", pa.int32()), ("X", pa.large_string())]))


def catalog() -> MemoryCatalog:
    return MemoryCatalog(TRIPS, EVERY_TYPE)


def statement_of(sql: str) -> Statement:
    """The one statement of a text, bound."""
    (statement,) = bind(sql, catalog())
    return statement


def plan_of_catalog(sql: str, catalog: MemoryCatalog) -> Plan:
    """The plan of a query over some tables, as bound and before any rule."""
    (statement,) = bind(sql, catalog)
    assert isinstance(statement, Query)
    return statement.plan


def plan_of(sql: str) -> Plan:
    """The plan of a query, as bound and before any rule."""
    statement = statement_of(sql)
    assert isinstance(statement, Query | CreateTableAs | Insert)
    return statement.plan


def window_of(calls: str, schema: pa.Schema) -> Window:
    """Calls of SQL, which share a window, over a child with the schema's columns; as bound."""
    plan = plan_of_catalog(f"SELECT {calls} FROM t", MemoryCatalog(SchemaOnly("t", schema)))
    (window,) = (node for node in nodes_of(plan) if isinstance(node, Window))
    assert [field.name for field in window.child.fields] == schema.names
    return window
