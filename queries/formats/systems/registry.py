"""The formats by name: where they are implemented, and what has to be installed for them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from bamquery.errors import BamQueryError
from bamquery.queries.formats.systems.system import FormatSystem
from bamquery.text.identifiers import suggestion


@dataclass(frozen=True)
class Format:
    """Something that keeps the rows.

    Attributes:
        label: what people call it.
        module: of this package.
        library: what it imports; empty for what BamQuery needs itself.
        package: of pip, which installs the library.
        options: for the class `System` of the module.
        written_by: another format whose files it reads; empty where it has its own.
    """

    label: str
    module: str
    library: str = ""
    package: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    written_by: str = ""


def _bamquery(label: str, written_by: str = "", **options: Any) -> Format:
    return Format(label, "bamquery_table", options=options, written_by=written_by)


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "auto": _bamquery("BamQuery", encoding="auto", reader="auto"),
        "auto-direct": _bamquery("BamQuery, direct reads", "auto", encoding="auto", reader="direct"),
        "auto-blocks": _bamquery(
            "BamQuery, direct reads of blocks", "auto", encoding="auto", reader="direct", strategy="blocks"
        ),
        "plain": _bamquery("BamQuery, plain", encoding="plain", reader="auto"),
        "parquet": Format("Parquet (zstd), pyarrow", "parquet"),
        "parquet-duckdb": Format(
            "Parquet (zstd), DuckDB", "duckdb_file", "duckdb", "duckdb", {"parquet": True}, "parquet"
        ),
        "duckdb": Format("DuckDB", "duckdb_file", "duckdb", "duckdb"),
        "vortex": Format("Vortex", "vortex_file", "vortex", "vortex-data"),
        "lance": Format("Lance", "lance_dataset", "lance", "pylance"),
        "clickhouse": Format("ClickHouse", "clickhouse", "chdb", "chdb"),
    }
)
OURS: Final = tuple(name for name, found in FORMATS.items() if found.module == "bamquery_table")


def require_format(name: str) -> Format:
    """The format of that name.

    Raises:
        BamQueryError: there is none, or its library is not installed.
    """
    if name not in FORMATS:
        raise BamQueryError(
            f'there is no format "{name}" to compare with, only {", ".join(FORMATS)}.'
            f"{suggestion(name, FORMATS)}"
        )
    found = FORMATS[name]
    if found.library and importlib.util.find_spec(found.library) is None:
        raise BamQueryError(
            f"comparing with {found.label} needs {found.library}, which is not installed: "
            f"pip install {found.package}"
        )
    return found


def make_system(name: str, folder: Path, threads: int) -> FormatSystem:
    """The system of a format whose files are in a folder, or will be.

    Raises:
        BamQueryError: see `require_format`.
    """
    found = require_format(name)
    module = importlib.import_module(f"bamquery.queries.formats.systems.{found.module}")
    system: FormatSystem = module.System(folder, threads, **found.options)
    return system
