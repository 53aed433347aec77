"""TPC-H's tables as polars sees them: scans of Parquet files, or frames in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bamquery.queries.speed.suites import TPCH_TABLES
from bamquery.queries.speed.systems.names import Place


class Tables:
    """Each table as a `polars.LazyFrame`; frames come into memory when they are first wanted, and stay."""

    def __init__(self, folder: Path, place: Place, texts: Iterable[str]) -> None:
        """Of frames, only the columns that the texts name: TPC-H has no two of one name."""
        self.place: Place = place
        self._folder = folder
        self._words = {word for text in texts for word in re.findall(r"\w+", text)}
        self._frames: dict[str, Any] = {}

    def get(self, table: str) -> Any:
        """One table."""
        import polars  # noqa: PLC0415 (which the peer needs)

        scan = polars.scan_parquet(self._folder / f"{table}.parquet")
        if self.place == "parquet":
            return scan
        if table not in self._frames:
            named = [name for name in scan.collect_schema().names() if name in self._words]
            self._frames[table] = scan.select(named).collect()
        return self._frames[table].lazy()

    def get_all(self) -> dict[str, Any]:
        """By name."""
        return {table: self.get(table) for table in TPCH_TABLES}
