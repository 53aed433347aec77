"""What the catalogue is asked by: names of schemas, of its tables and of functions of the session."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MAIN: Final = "main"
"""The schema of all tables and views."""

INFORMATION_SCHEMA: Final = "information_schema"

INFORMATION_TABLES: Final = (
    *("schemata", "tables", "columns", "views", "table_constraints", "key_column_usage"),
    *("referential_constraints", "character_sets"),
)
"""Tables of the schema `information_schema`."""

SYSTEM_VIEWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{
            f"duckdb_{subject}": subject
            for subject in ("columns", "constraints", "databases", "indexes", "schemas", "tables", "types")
        },
        "duckdb_views": "views",
        "reject_errors": "reject_errors",
        "reject_scans": "reject_scans",
        "sqlite_master": "sqlite_master",
        "sqlite_schema": "sqlite_master",
    }
)
"""Names that stand for a table of the catalogue where no table or view has them."""

SESSION_VALUE: Final = "session_value"
"""What a node of the syntax tree notes the value of such a function by: a constant."""


def may_ask_session(sql: str) -> bool:
    """Whether the text of a statement has something like the name of such a function."""
    folded = sql.lower()
    parts = ("current_", "version", "user", "in_search_path", "getvariable", "$")
    return any(part in folded for part in parts)
