"""Functions in FROM, by name."""

from __future__ import annotations

from typing import Final

FILE_FUNCTIONS: Final = {
    "read_parquet": "parquet",
    "parquet_scan": "parquet",
    "read_csv": "csv",
    "read_csv_auto": "csv",
    "read_json": "json",
    "read_json_auto": "json",
    "read_ndjson": "json",
    "read_ndjson_auto": "json",
    "read_arrow": "arrow",
    "read_feather": "arrow",
}
"""Functions of files, and the format that each one reads."""

SERIES_FUNCTIONS: Final = ("range", "generate_series")
