"""The picture: for each query a bar a system, and a line across BamQuery's where its floor is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bamquery.queries.plot import pictures, save
from bamquery.queries.speed.measure import Timing

_COLOURS: Final = {
    "BamQuery": "#0b6e4f",
    "BamQuery, from host memory": "#7fb79f",
    "BamQuery, resident": "#0b6e4f",
    "DuckDB": "#f2b705",
    "polars, parquet": "#d9a1aa",
    "polars, frames": "#b04a5a",
    "cudf-polars, parquet": "#c9b0da",
    "cudf-polars, frames": "#7b3fa0",
}
_WIDTH: Final = 0.86
"""Of a query's bars together."""


def draw(timings: Sequence[Timing], title: str, path: Path) -> None:
    """Draw the fastest times on a logarithmic axis, and write them in the format of the path's suffix.

    Raises:
        BamQueryError: matplotlib is not installed.
        StorageError: the picture cannot be written.
    """
    systems = list(dict.fromkeys(one.system for timing in timings for one in timing.systems))
    with pictures() as pyplot:
        inches = 1.5 + 0.12 * len(timings) * max(len(systems), 3)
        figure, axis = pyplot.subplots(figsize=(inches, 4.2), layout="constrained")
        for place, system in enumerate(systems):
            _draw_system(axis, timings, system, place, len(systems))
        axis.set_yscale("log")
        axis.set_xticks(
            range(len(timings)),
            [_short_name(timing, timings) for timing in timings],
            rotation=90,
            fontsize=7.5,
        )
        axis.set_xlim(-0.7, len(timings) - 0.3)
        axis.set_ylabel("fastest, ms")
        axis.set_title(f"{title}\n(time, less is better; black: floor)", loc="left", fontsize=10)
        figure.legend(loc="outside lower left", frameon=False, fontsize=8, ncols=4)
        save(figure, path)


def _draw_system(axis: Any, timings: Sequence[Timing], system: str, place: int, systems: int) -> None:
    width = _WIDTH / systems
    bars, floors = [], []
    for number, timing in enumerate(timings):
        one = timing.timing_of(system)
        if one is None or one.best is None:
            continue
        middle = number + (place - (systems - 1) / 2) * width
        bars.append((middle, 1e3 * one.best))
        if one.floor is not None and one.floor.seconds:
            floors.append((middle, 1e3 * one.floor.seconds))
    if bars:
        axis.bar(*zip(*bars, strict=True), width * 0.94, label=system, color=_COLOURS.get(system, "#888888"))
    if floors:
        middles, heights = zip(*floors, strict=True)
        ends = [middle - width / 2 for middle in middles], [middle + width / 2 for middle in middles]
        axis.hlines(heights, *ends, color="black", linewidth=1.2, zorder=3)


def _short_name(timing: Timing, timings: Sequence[Timing]) -> str:
    """A query's number; with its suite where there are several."""
    one_suite = len({other.query.suite for other in timings}) == 1
    number = timing.query.name.partition("_")[0]
    return number if one_suite else f"{timing.query.suite} {number}"
