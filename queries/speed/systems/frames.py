"""Tables as polars sees them: scans of Parquet or IPC files, or frames in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from bamquery.queries.speed.systems.names import FilePlace, Place

ENDINGS: Final[Mapping[FilePlace, str]] = MappingProxyType({"parquet": "parquet", "ipc": "arrow"})


class Tables:
    """Each table as a `polars.LazyFrame`; frames come into memory when they are first wanted, and stay."""

    def __init__(self, folder: Path, place: Place, texts: Iterable[str]) -> None:
        """In a folder of IPC files, or of Parquet. Of frames, only the columns that the texts name."""
        self.place: Place = place
        self._folder = folder
        self._words = {word for text in texts for word in re.findall(r"\w+", text)}
        self._frames: dict[str, Any] = {}

    def get(self, table: str) -> Any:
        """One table."""
        import polars  # noqa: PLC0415 (which the peer needs)

        if self.place == "ipc":
            return polars.scan_ipc(self._folder / f"{table}.{ENDINGS['ipc']}")
        scan = polars.scan_parquet(self._folder / f"{table}.{ENDINGS['parquet']}")
        if self.place == "parquet":
            return scan
        if table not in self._frames:
            named = [name for name in scan.collect_schema().names() if name in self._words]
            self._frames[table] = scan.select(named).collect()
        return self._frames[table].lazy()

    def get_all(self) -> dict[str, Any]:
        """By name."""
        ending = ENDINGS["ipc" if self.place == "ipc" else "parquet"]
        return {file.stem: self.get(file.stem) for file in sorted(self._folder.glob(f"*.{ending}"))}
