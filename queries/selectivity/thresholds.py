"""Distances that given shares of a table's trips reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.tables.open_fragment import open_fragment
from bamquery.storage.tables.snapshot import Snapshot

_SAMPLE_ROWS: Final = 20_000_000
EVERY_TRIP: Final = -1e9
"""Less than any distance: even those of broken meters."""


def thresholds(snapshot: Snapshot, shares: Sequence[float]) -> list[float]:
    """For each share (0 to 1) the distance in miles that about so many of a table's rows reach or exceed.

    Found in every n-th row of each fragment.
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
        with open_fragment(fragment.path, ["trip_distance"]) as batches:
            begin = 0  # of the first row wanted of the next batch
            for batch in batches:
                column: Any = batch.column(0)
                values = column.to_numpy(zero_copy_only=False)[begin::step].copy()
                parts.append(values[~np.isnan(values)])
                begin = (begin - batch.num_rows) % step
    return np.sort(np.concatenate(parts)) if parts else np.empty(0)
