"""Real trips that ship with the package; README.md beside this file tells where they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent
ZONE_LOOKUP: Final = FOLDER / "taxi_zone_lookup.csv"


def trip_files() -> list[Path]:
    """The sample's trip files, by name."""
    return sorted(FOLDER.glob("*.parquet"))
