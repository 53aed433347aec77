"""The tables of the schema information_schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from bamquery.catalog.system_tables.definitions import definition
from bamquery.catalog.system_tables.facts import CatalogFacts
from bamquery.catalog.system_tables.rows import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    SystemTable,
    columns,
    concatenate_columns,
    string_columns,
)
from bamquery.catalog.system_tables.tables_and_views import columns_of
from bamquery.catalog.system_tables.type_numbers import precision
from bamquery.data_types.names import type_name
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA, MAIN

_Row: TypeAlias = tuple[Any, ...]

_OWNER: Final = "bamquery"


def _schemata(facts: CatalogFacts) -> Iterator[_Row]:
    for schema in (MAIN, INFORMATION_SCHEMA):
        yield facts.database, schema, _OWNER, None, None, None, None


def _tables(facts: CatalogFacts) -> Iterator[_Row]:
    for relation in facts.relations():
        kind, insertable = ("BASE TABLE", "YES") if relation.view is None else ("VIEW", "NO")
        unknown = (None,) * 5
        yield facts.database, MAIN, relation.name, kind, *unknown, insertable, "NO", None, None


def _columns(facts: CatalogFacts) -> Iterator[_Row]:
    for relation in facts.relations():
        for place, column in enumerate(columns_of(relation), 1):
            nullable = "NO" if column.not_null else "YES"
            yield (
                *(facts.database, MAIN, relation.name, column.name, place, column.default, nullable),
                *(type_name(column.type), None, None, *precision(column.type), *(None,) * 28),
                *("NEVER", None, None, None),
            )


def _views(facts: CatalogFacts) -> Iterator[_Row]:
    for relation in facts.relations():
        if relation.view is not None:
            cannot = ("NO",) * 5
            yield facts.database, MAIN, relation.name, definition(relation), "NONE", *cannot


def _table_constraints(facts: CatalogFacts) -> Iterator[_Row]:
    for relation in facts.relations():
        for column in columns_of(relation):
            if column.not_null:
                place, name = (facts.database, MAIN), f"{relation.name}_{column.name}_not_null"
                yield *place, name, *place, relation.name, "CHECK", "NO", "NO", "YES", "YES"


def _character_sets(facts: CatalogFacts) -> Iterator[_Row]:
    yield None, None, "UTF8", "UCS", "UTF8", facts.database, MAIN, "ucs_basic"


_CONSTRAINT: Final = "constraint_catalog constraint_schema constraint_name"

INFORMATION_SCHEMA_TABLES: Final[Mapping[str, SystemTable]] = MappingProxyType(
    {
        "schemata": SystemTable(
            string_columns(
                "catalog_name schema_name schema_owner default_character_set_catalog "
                "default_character_set_schema default_character_set_name sql_path"
            ),
            _schemata,
        ),
        "tables": SystemTable(
            string_columns(
                "table_catalog table_schema table_name table_type self_referencing_column_name "
                "reference_generation user_defined_type_catalog user_defined_type_schema "
                "user_defined_type_name is_insertable_into is_typed commit_action TABLE_COMMENT"
            ),
            _tables,
        ),
        "columns": SystemTable(
            concatenate_columns(
                string_columns("table_catalog table_schema table_name column_name"),
                columns(ordinal_position=INTEGER),
                string_columns("column_default is_nullable data_type"),
                columns(
                    character_maximum_length=INTEGER,
                    character_octet_length=INTEGER,
                    numeric_precision=INTEGER,
                    numeric_precision_radix=INTEGER,
                    numeric_scale=INTEGER,
                    datetime_precision=INTEGER,
                ),
                string_columns("interval_type"),
                columns(interval_precision=INTEGER),
                string_columns(
                    "character_set_catalog character_set_schema character_set_name collation_catalog "
                    "collation_schema collation_name domain_catalog domain_schema domain_name udt_catalog "
                    "udt_schema udt_name scope_catalog scope_schema scope_name"
                ),
                columns(maximum_cardinality=BIGINT),
                string_columns("dtd_identifier"),
                columns(is_self_referencing=BOOLEAN, is_identity=BOOLEAN),
                string_columns(
                    "identity_generation identity_start identity_increment identity_maximum identity_minimum"
                ),
                columns(identity_cycle=BOOLEAN),
                string_columns("is_generated generation_expression"),
                columns(is_updatable=BOOLEAN),
                string_columns("COLUMN_COMMENT"),
            ),
            _columns,
        ),
        "views": SystemTable(
            string_columns(
                "table_catalog table_schema table_name view_definition check_option is_updatable "
                "is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into"
            ),
            _views,
        ),
        "table_constraints": SystemTable(
            string_columns(
                f"{_CONSTRAINT} table_catalog table_schema table_name constraint_type is_deferrable "
                "initially_deferred enforced nulls_distinct"
            ),
            _table_constraints,
        ),
        "key_column_usage": SystemTable(
            concatenate_columns(
                string_columns(f"{_CONSTRAINT} table_catalog table_schema table_name column_name"),
                columns(ordinal_position=BIGINT, position_in_unique_constraint=BIGINT),
            ),
        ),
        "referential_constraints": SystemTable(
            string_columns(
                f"{_CONSTRAINT} unique_constraint_catalog unique_constraint_schema unique_constraint_name "
                "match_option update_rule delete_rule"
            ),
        ),
        "character_sets": SystemTable(
            string_columns(
                "character_set_catalog character_set_schema character_set_name character_repertoire "
                "form_of_use default_collate_catalog default_collate_schema default_collate_name"
            ),
            _character_sets,
        ),
    }
)
