"""Tables of the catalogue by their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery import __version__
from bamquery.catalog.system_tables import functions_and_keywords as language
from bamquery.catalog.system_tables import tables_and_views as relations
from bamquery.catalog.system_tables.facts import CatalogFacts, RelationFacts
from bamquery.catalog.system_tables.information_schema import INFORMATION_SCHEMA_TABLES
from bamquery.catalog.system_tables.rejects import REJECT_ERRORS, REJECT_SCANS
from bamquery.catalog.system_tables.rows import SystemTable, batch_of, string_columns
from bamquery.catalog.system_tables.settings_table import SETTINGS
from bamquery.catalog.system_tables.types_table import TYPES
from bamquery.errors import CatalogError
from bamquery.sql_frontend.system_names import INFORMATION_SCHEMA
from bamquery.text.identifiers import suggestion


def schema(subject: str) -> pa.Schema:
    """The columns of a table of the catalogue."""
    return _TABLES[subject].schema


def batch(facts: CatalogFacts, subject: str, relation: str | None = None) -> pa.RecordBatch:
    """Its rows; of one table or view, where it is about one.

    Raises:
        CatalogError: there is no such table or view.
    """
    found = _TABLES[subject]
    if relation is None:
        return batch_of(found.schema, list(found.rows(facts)))
    return batch_of(found.schema, list(found.rows_of(_relation(facts, relation))))


def _relation(facts: CatalogFacts, name: str) -> RelationFacts:
    found = facts.relation(name)
    if found is None:
        hint = suggestion(name, [relation.name for relation in facts.relations()])
        raise CatalogError(f'there is no table "{name}".{hint}')
    return found


def _version(facts: CatalogFacts) -> tuple[tuple[str, str, str]]:
    return ((f"v{__version__}", "", ""),)


_TABLES: Final[Mapping[str, SystemTable]] = MappingProxyType(
    {
        **{f"{INFORMATION_SCHEMA}.{name}": table for name, table in INFORMATION_SCHEMA_TABLES.items()},
        "all_tables": relations.ALL_TABLES,
        "columns": relations.COLUMNS,
        "constraints": relations.CONSTRAINTS,
        "databases": relations.DATABASES,
        "definition": relations.DEFINITION,
        "functions": language.FUNCTIONS,
        "indexes": relations.INDEXES,
        "keywords": language.KEYWORDS,
        "reject_errors": REJECT_ERRORS,
        "reject_scans": REJECT_SCANS,
        "schemas": relations.SCHEMAS,
        "sequences": relations.SEQUENCES,
        "settings": SETTINGS,
        "sqlite_master": relations.SQLITE_MASTER,
        "table_info": relations.TABLE_INFO,
        "tables": relations.TABLES,
        "types": TYPES,
        "version": SystemTable(string_columns("library_version source_id codename"), _version),
        "views": relations.VIEWS,
    }
)
"""By what they are about: see `bamquery.sql_frontend.system_names`."""
