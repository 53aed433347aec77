"""Functions of the connection and its database."""

from __future__ import annotations

from typing import Final

from bamquery.function_catalog.entry import Entry, Section

_NAME: Final = "() -> VARCHAR"

SECTION: Final = Section(
    "The connection",
    "scalar",
    (
        Entry(
            "current_setting",
            "(name VARCHAR) -> ANY",
            "The value of a setting (a constant), of the setting's own type.",
            example="current_setting('threads')",
        ),
        Entry(
            "getvariable",
            "(name VARCHAR) -> ANY",
            "The value that SET VARIABLE gave a name (a constant); NULL where there is none.",
            example="getvariable('least')",
        ),
        Entry("version", _NAME, "BamQuery's version."),
        Entry("current_database", _NAME, "The database's name: that of its folder without the extension."),
        Entry(
            "current_catalog",
            _NAME,
            "As current_database(), with and without parentheses.",
            call="current_catalog",
        ),
        Entry("current_schema", _NAME, "main, the one schema there is.", call="current_schema"),
        Entry(
            "current_schemas",
            "(include_implicit BOOLEAN) -> VARCHAR",
            "The schemas that names are looked for in, as the text of a list.",
            example="current_schemas(true)",
        ),
        Entry(
            "in_search_path",
            "(database VARCHAR, schema VARCHAR) -> BOOLEAN",
            "Whether names are looked for in that schema (constants).",
            example="in_search_path(current_database(), 'main')",
        ),
        Entry(
            "current_user",
            _NAME,
            "bamquery: there are no users. With and without parentheses.",
            call="current_user",
        ),
        Entry("session_user", _NAME, "As current_user.", call="session_user"),
        Entry("user", _NAME, "As current_user.", call="user"),
        Entry("current_role", _NAME, "As current_user.", call="current_role"),
    ),
)

SESSION_FUNCTIONS: Final = frozenset(entry.name for entry in SECTION.entries)
"""Functions whose answer the connection knows when a statement is bound."""

WITHOUT_PARENTHESES: Final = frozenset(entry.name for entry in SECTION.entries if entry.call == entry.name)
"""Those that are written as if they were columns, too; a column of that name comes first."""
