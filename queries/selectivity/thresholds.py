"""Distances that given shares of a table's trips reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.queries.trips.arrow import arrow
from bamquery.storage.tables.snapshot import Snapshot

_SAMPLE_ROWS: Final = 20_000_000
EVERY_TRIP: Final = -1e9
"""Less than any distance: even those of broken meters."""


def thresholds(snapshot: Snapshot, shares: Sequence[float]) -> list[float]:
    """For each share (0 to 1) the distance in miles that about so many of a table's rows reach or exceed.

    Found in every n-th row, by pyarrow from the fragments' Arrow files.
    """
    miles = _sample(snapshot)
    found = []
    for share in shares:
        if share >= 1.0 or not len(miles):
            found.append(EVERY_TRIP)
            continue
        wanted = max(round(share * len(miles)), 1)
        found.append(_nearest_threshold(miles, wanted))
    return found


def _nearest_threshold(miles: NDArray[np.float64], wanted: int) -> float:
    """Distances are rounded, so many are equal: of the two steps around the wanted count the nearer one."""
    value = float(miles[-wanted])
    first = int(np.searchsorted(miles, value, side="left"))
    beyond = int(np.searchsorted(miles, value, side="right"))
    with_equals, without = len(miles) - first, len(miles) - beyond
    if without and wanted - without < with_equals - wanted:
        return float(miles[beyond])
    return value


def _sample(snapshot: Snapshot) -> NDArray[np.float64]:
    """Ascending distances of evenly spread rows, NaN and nulls left out."""
    step = max(snapshot.rows // _SAMPLE_ROWS, 1)
    parts: list[NDArray[np.float64]] = []
    for fragment in snapshot.fragments:
        with arrow.memory_map(str(fragment.path)) as mapped, arrow.ipc.open_file(mapped) as file:
            column: Any = file.get_batch(0).column("trip_distance")
            values = column.to_numpy(zero_copy_only=column.null_count == 0)[::step].copy()
        parts.append(values[~np.isnan(values)])
    return np.sort(np.concatenate(parts)) if parts else np.empty(0)
