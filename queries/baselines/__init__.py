"""The systems that BamQuery is compared with and checked by; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Baseline:
    """A system to compare with.

    Attributes:
        module: of this package; has the class `System`.
        libraries: what it imports, by the names that Python imports.
        label: what people call it.
        extra: of the package bamquery, which installs the libraries.
        gpu: whether it needs an NVIDIA GPU.
    """

    module: str
    libraries: tuple[str, ...]
    label: str
    extra: str = "bench"
    gpu: bool = False


_CUDF: Final = ("cudf", "cupy", "pylibcudf", "rmm")

BASELINES: Final[Mapping[str, Baseline]] = MappingProxyType(
    {
        "duckdb": Baseline("duckdb", ("duckdb",), "DuckDB"),
        "pyarrow": Baseline("pyarrow", ("pyarrow",), "pyarrow.dataset"),
        "polars": Baseline("polars", ("polars",), "Polars"),
        "cudf-pinned": Baseline("cudf_pinned", _CUDF, "cuDF, pinned memory", "cu13", gpu=True),
        "cudf-parquet": Baseline("cudf_parquet", _CUDF, "cuDF read_parquet", "cu13", gpu=True),
        "cudf-filters": Baseline("cudf_filters", _CUDF, "cuDF read_parquet, filters", "cu13", gpu=True),
    }
)
