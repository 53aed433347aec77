"""What users call peers, where polars may have its tables, and names of BamQuery in tables."""

from __future__ import annotations

from typing import Final, Literal

Place = Literal["parquet", "frames"]
PEERS: Final = ("duckdb", "polars", "cudf-polars")
TPCH_ONLY: Final = ("polars", "cudf-polars")
"""Peers that are asked TPC-H alone."""
ALONE: Final = "BamQuery"
HOST: Final = "BamQuery, from host memory"
RESIDENT: Final = "BamQuery, resident"
PLACES: Final[tuple[Place, ...]] = ("parquet", "frames")
