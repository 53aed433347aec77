"""The systems that BamQuery is compared with and checked by; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Module and library, and what people call it.
BASELINES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "duckdb": "DuckDB",
        "pyarrow": "pyarrow.dataset",
        "polars": "Polars",
    }
)
