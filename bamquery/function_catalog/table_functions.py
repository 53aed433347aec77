"""Functions that stand in FROM."""

from __future__ import annotations

from typing import Final

from bamquery.function_catalog.entry import Entry, Section

_PATHS: Final = "(paths VARCHAR, ...) -> TABLE"
_NOTHING: Final = "() -> TABLE"
_SERIES: Final = (
    "(stop BIGINT) -> TABLE | (start BIGINT, stop BIGINT [, step BIGINT]) -> TABLE"
    " | (start TIMESTAMP, stop TIMESTAMP, step INTERVAL) -> TABLE"
)

_FILES: Final = (
    Entry(
        "read_parquet parquet_scan",
        _PATHS,
        "Parquet files by a path, a pattern or a list of them.",
        call="read_parquet(paths [, option = value]…)",
    ),
    Entry(
        "read_csv read_csv_auto",
        _PATHS,
        "CSV files by a path, a pattern or a list of them.",
        call="read_csv(paths [, option = value]…)",
    ),
    Entry(
        "read_json read_json_auto read_ndjson read_ndjson_auto",
        _PATHS,
        "JSON files by a path, a pattern or a list of them.",
        call="read_json(paths [, option = value]…)",
    ),
    Entry(
        "read_arrow read_feather",
        _PATHS,
        "Arrow IPC files by a path, a pattern or a list of them.",
        call="read_arrow(paths [, option = value]…)",
    ),
)
_OF_SERIES: Final = (
    Entry(
        "range",
        _SERIES,
        "Numbers or times from a start, without the stop.",
        call="range([start,] stop [, step])",
    ),
    Entry(
        "generate_series",
        _SERIES,
        "Numbers or times from a start up to and with the stop.",
        call="generate_series([start,] stop [, step])",
    ),
)
_CATALOG: Final = (
    Entry("bamquery_columns duckdb_columns", _NOTHING, "The columns of all tables and views."),
    Entry("bamquery_constraints duckdb_constraints", _NOTHING, "What tables demand: NOT NULL."),
    Entry("bamquery_databases duckdb_databases", _NOTHING, "The database, with its folder."),
    Entry("bamquery_functions duckdb_functions", _NOTHING, "All functions, as on this page."),
    Entry("bamquery_indexes duckdb_indexes", _NOTHING, "No rows: there are no indexes."),
    Entry("bamquery_keywords duckdb_keywords", _NOTHING, "Words of the language, and which are reserved."),
    Entry("bamquery_schemas duckdb_schemas", _NOTHING, "The schemas."),
    Entry("bamquery_sequences duckdb_sequences", _NOTHING, "No rows: there are no sequences."),
    Entry("bamquery_settings duckdb_settings", _NOTHING, "The settings, with their values of now."),
    Entry("bamquery_tables duckdb_tables", _NOTHING, "The tables, with their rows and definitions."),
    Entry("bamquery_types duckdb_types", _NOTHING, "The types, under all their names."),
    Entry("bamquery_views duckdb_views", _NOTHING, "The views, with their definitions."),
    Entry("pragma_table_info", "(table VARCHAR) -> TABLE", "The columns of one table or view."),
    Entry("pragma_version", _NOTHING, "BamQuery's version."),
)

SECTION: Final = Section("Table functions", "table", (*_FILES, *_OF_SERIES, *_CATALOG))

FILE_FUNCTIONS: Final = {
    name: entry.name.removeprefix("read_") for entry in _FILES for name in entry.all_names
}
"""Functions of files, and the format that each one reads."""

SERIES_FUNCTIONS: Final = tuple(entry.name for entry in _OF_SERIES)

SYSTEM_FUNCTIONS: Final = {
    name: entry.name.partition("_")[2] for entry in _CATALOG for name in entry.all_names
}
"""Table functions over the catalogue, and what each is about."""
