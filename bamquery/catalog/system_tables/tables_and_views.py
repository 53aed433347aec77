"""duckdb_tables(), duckdb_columns(), duckdb_views() and what else is about tables and views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.catalog.system_tables.definitions import definition
from bamquery.catalog.system_tables.facts import CatalogFacts, ColumnFacts, RelationFacts
from bamquery.catalog.system_tables.rows import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    NO_TAGS,
    VARCHAR,
    SystemTable,
    columns,
    list_text,
    string_columns,
)
from bamquery.catalog.system_tables.type_numbers import precision
from bamquery.catalog.system_tables.types_table import type_id
from bamquery.data_types.names import type_name
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA, MAIN

_Row: TypeAlias = tuple[Any, ...]

DATABASE_OID: Final = 1
SCHEMA_OID: Final = 2
_FIRST_OID: Final = 100


def number_relations(facts: CatalogFacts) -> Iterator[tuple[int, RelationFacts]]:
    """All tables and views with a number, which is theirs for as long as nothing is made or dropped."""
    return enumerate(facts.relations(), _FIRST_OID)


def columns_of(relation: RelationFacts) -> tuple[ColumnFacts, ...]:
    """Its columns; none where they are not known."""
    return relation.columns or ()


def _place(facts: CatalogFacts) -> _Row:
    return facts.database, DATABASE_OID, MAIN, SCHEMA_OID


def _tables(facts: CatalogFacts) -> Iterator[_Row]:
    for oid, table in number_relations(facts):
        if table.view is None:
            count = None if table.columns is None else len(table.columns)
            end = (table.rows, count, 0, 0, definition(table))
            yield (*_place(facts), table.name, oid, None, NO_TAGS, False, False, False, *end)


def _views(facts: CatalogFacts) -> Iterator[_Row]:
    for oid, view in number_relations(facts):
        if view.view is not None:
            count = None if view.columns is None else len(view.columns)
            end = (count, definition(view), view.columns is not None)
            yield (*_place(facts), view.name, oid, None, NO_TAGS, False, False, *end)


def _columns(facts: CatalogFacts) -> Iterator[_Row]:
    for oid, relation in number_relations(facts):
        for place, column in enumerate(columns_of(relation), 1):
            digits = precision(column.type)
            yield (
                *(*_place(facts), relation.name, oid, column.name, place, None, False, column.default),
                *(not column.not_null, type_name(column.type), type_id(column.type), None, *digits),
                *(NO_TAGS, False, None),
            )


def _constraints(facts: CatalogFacts) -> Iterator[_Row]:
    for oid, relation in number_relations(facts):
        index = 0
        for place, column in enumerate(columns_of(relation)):
            if column.not_null:
                name = f"{relation.name}_{column.name}_not_null"
                yield (
                    *(*_place(facts), relation.name, oid, index, "NOT NULL", "NOT NULL", None),
                    *(list_text([str(place)]), list_text([column.name]), name, None, list_text([])),
                )
                index += 1


def _schemas(facts: CatalogFacts) -> Iterator[_Row]:
    for oid, name in ((SCHEMA_OID, MAIN), (SCHEMA_OID + 1, INFORMATION_SCHEMA)):
        yield oid, facts.database, DATABASE_OID, name, None, NO_TAGS, True, None, None, None


def _databases(facts: CatalogFacts) -> Iterator[_Row]:
    kept = (None, NO_TAGS, False, "bamquery", False, False, None, NO_TAGS)
    yield facts.database, DATABASE_OID, facts.path, *kept


def _sqlite_master(facts: CatalogFacts) -> Iterator[_Row]:
    # pandas looks here for tables of a connection that it does not know.
    for relation in facts.relations():
        kind = "table" if relation.view is None else "view"
        yield kind, relation.name, relation.name, 0, definition(relation)


def _all_tables(facts: CatalogFacts) -> Iterator[_Row]:
    for relation in facts.relations():
        known = columns_of(relation)
        names = list_text(column.name for column in known)
        yield facts.database, MAIN, relation.name, names, list_text(type_name(c.type) for c in known), False


def _table_info(relation: RelationFacts) -> Iterator[_Row]:
    for place, column in enumerate(columns_of(relation)):
        yield place, column.name, type_name(column.type), column.not_null, column.default, False


def _definition(relation: RelationFacts) -> Iterator[_Row]:
    yield relation.name, definition(relation)


_PLACE: Final[Mapping[str, pa.DataType]] = {
    "database_name": VARCHAR,
    "database_oid": BIGINT,
    "schema_name": VARCHAR,
    "schema_oid": BIGINT,
}

TABLES: Final = SystemTable(
    columns(
        **_PLACE,
        table_name=VARCHAR,
        table_oid=BIGINT,
        comment=VARCHAR,
        tags=VARCHAR,
        internal=BOOLEAN,
        temporary=BOOLEAN,
        has_primary_key=BOOLEAN,
        estimated_size=BIGINT,
        column_count=BIGINT,
        index_count=BIGINT,
        check_constraint_count=BIGINT,
        sql=VARCHAR,
    ),
    _tables,
)
VIEWS: Final = SystemTable(
    columns(
        **_PLACE,
        view_name=VARCHAR,
        view_oid=BIGINT,
        comment=VARCHAR,
        tags=VARCHAR,
        internal=BOOLEAN,
        temporary=BOOLEAN,
        column_count=BIGINT,
        sql=VARCHAR,
        is_bound=BOOLEAN,
    ),
    _views,
)
COLUMNS: Final = SystemTable(
    columns(
        **_PLACE,
        table_name=VARCHAR,
        table_oid=BIGINT,
        column_name=VARCHAR,
        column_index=INTEGER,
        comment=VARCHAR,
        internal=BOOLEAN,
        column_default=VARCHAR,
        is_nullable=BOOLEAN,
        data_type=VARCHAR,
        data_type_id=BIGINT,
        character_maximum_length=INTEGER,
        numeric_precision=INTEGER,
        numeric_precision_radix=INTEGER,
        numeric_scale=INTEGER,
        tags=VARCHAR,
        is_generated=BOOLEAN,
        generation_expression=VARCHAR,
    ),
    _columns,
)
CONSTRAINTS: Final = SystemTable(
    columns(
        **_PLACE,
        table_name=VARCHAR,
        table_oid=BIGINT,
        constraint_index=BIGINT,
        constraint_type=VARCHAR,
        constraint_text=VARCHAR,
        expression=VARCHAR,
        constraint_column_indexes=VARCHAR,
        constraint_column_names=VARCHAR,
        constraint_name=VARCHAR,
        referenced_table=VARCHAR,
        referenced_column_names=VARCHAR,
    ),
    _constraints,
)
SCHEMAS: Final = SystemTable(
    columns(
        oid=BIGINT,
        database_name=VARCHAR,
        database_oid=BIGINT,
        schema_name=VARCHAR,
        comment=VARCHAR,
        tags=VARCHAR,
        internal=BOOLEAN,
        sql=VARCHAR,
        parent_schema=VARCHAR,
        parent_schema_oid=BIGINT,
    ),
    _schemas,
)
DATABASES: Final = SystemTable(
    columns(
        database_name=VARCHAR,
        database_oid=BIGINT,
        path=VARCHAR,
        comment=VARCHAR,
        tags=VARCHAR,
        internal=BOOLEAN,
        type=VARCHAR,
        readonly=BOOLEAN,
        encrypted=BOOLEAN,
        cipher=VARCHAR,
        options=VARCHAR,
    ),
    _databases,
)
INDEXES: Final = SystemTable(
    columns(
        **_PLACE,
        index_name=VARCHAR,
        index_oid=BIGINT,
        table_name=VARCHAR,
        table_oid=BIGINT,
        comment=VARCHAR,
        tags=VARCHAR,
        is_unique=BOOLEAN,
        is_primary=BOOLEAN,
        expressions=VARCHAR,
        sql=VARCHAR,
    ),
)
SEQUENCES: Final = SystemTable(
    columns(
        **_PLACE,
        sequence_name=VARCHAR,
        sequence_oid=BIGINT,
        comment=VARCHAR,
        tags=VARCHAR,
        temporary=BOOLEAN,
        start_value=BIGINT,
        min_value=BIGINT,
        max_value=BIGINT,
        increment_by=BIGINT,
        cycle=BOOLEAN,
        last_value=BIGINT,
        sql=VARCHAR,
    ),
)
SQLITE_MASTER: Final = SystemTable(
    columns(type=VARCHAR, name=VARCHAR, tbl_name=VARCHAR, rootpage=INTEGER, sql=VARCHAR), _sqlite_master
)
ALL_TABLES: Final = SystemTable(
    columns(
        database=VARCHAR,
        schema=VARCHAR,
        name=VARCHAR,
        column_names=VARCHAR,
        column_types=VARCHAR,
        temporary=BOOLEAN,
    ),
    _all_tables,
)
TABLE_INFO: Final = SystemTable(
    columns(cid=INTEGER, name=VARCHAR, type=VARCHAR, notnull=BOOLEAN, dflt_value=VARCHAR, pk=BOOLEAN),
    rows_of=_table_info,
)
DEFINITION: Final = SystemTable(string_columns("name sql"), rows_of=_definition)
