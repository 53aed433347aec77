"""What users call peers, where polars may have its tables, and names of BamQuery in tables."""

from __future__ import annotations

from typing import Final, Literal

FilePlace = Literal["parquet", "ipc"]
Place = Literal["parquet", "ipc", "frames"]
PEERS: Final = ("duckdb", "chdb", "polars", "cudf-polars")
OF_POLARS: Final = ("polars", "cudf-polars")
"""Peers that have polars' tables."""
ALONE: Final = "BamQuery"
HOST: Final = "BamQuery, from host memory"
RESIDENT: Final = "BamQuery, resident"
PLACES: Final[tuple[Place, ...]] = ("parquet", "ipc", "frames")
USUAL_PLACES: Final[tuple[Place, ...]] = ("parquet", "frames")
