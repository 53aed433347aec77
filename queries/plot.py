"""The picture of measurements: time by system, and amplification by query."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bamquery.errors import BamQueryError, StorageError

_COLOURS: Final = {
    "BamQuery": "#0b6e4f",
    "DuckDB": "#f2b705",
    "pyarrow.dataset": "#5b7db1",
    "Polars": "#b04a5a",
    "cuDF, pinned memory": "#7b3fa0",
    "cuDF read_parquet": "#b48ad0",
    "cuDF read_parquet, filters": "#d9c4e8",
}
_WIDE: Final = 30.0
"""Values of which the greatest is this many times the least are drawn on a logarithmic axis."""
_LOOKS: Final = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "bamquery",  # equal measurements, equal files
}

Measurements = Mapping[str, Any]


def read_measurements(path: Path) -> Measurements:
    """What `bamquery taxi run --json` wrote.

    Raises:
        StorageError: it cannot be read, or is something else.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot be read: {error}", path) from error
    if not isinstance(found, dict) or not {"table", "table_rows", "cold", "queries"} <= set(found):
        raise StorageError("holds no measurements of `bamquery taxi run --json`", path)
    return found


def draw(runs: Sequence[Measurements], path: Path) -> None:
    """Draw runs, two panels each, and write the picture in the format of the path's suffix.

    Args:
        runs: as `report.json_of` describes them, or read back by `read_measurements`.
        path: .png, .svg, .pdf, ...

    Raises:
        BamQueryError: matplotlib is not installed.
        StorageError: the picture cannot be written.
    """
    with pictures() as pyplot:
        figure, axes = pyplot.subplots(
            len(runs), 2, figsize=(10, 0.4 + 3.2 * len(runs)), squeeze=False, layout="constrained"
        )
        for row, run in zip(axes, runs, strict=True):
            _draw_times(row[0], run)
            _draw_amplification(row[1], run)
        save(figure, path)


@contextmanager
def pictures() -> Iterator[Any]:
    """matplotlib.pyplot, looking as all pictures here do; figures are closed at the end.

    Raises:
        BamQueryError: it is not installed.
    """
    try:
        importlib.import_module("matplotlib").use("Agg")
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise BamQueryError(
            'drawing needs matplotlib, which is not installed: pip install "bamquery[bench]"'
        ) from error
    with pyplot.rc_context(_LOOKS):
        try:
            yield pyplot
        finally:
            pyplot.close("all")


def save(figure: Any, path: Path) -> None:
    """Write a picture: equal figures, equal files.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot write the picture: {error}", path) from error


def _draw_times(axis: Any, run: Measurements) -> None:
    systems = [entry["system"] for entry in run["queries"][0]["systems"]]
    medians = {
        system: [query["systems"][place]["median"] * 1e3 for query in run["queries"]]
        for place, system in enumerate(systems)
    }
    _draw_bars(axis, medians)
    _name_queries(axis, run)
    caches = "cold caches" if run["cold"] else "warm caches"
    maps = "with" if run["settings"].get("zone_maps", True) else "without"
    table = f"{run['table']}, {rows_label(run['table_rows'])}"
    axis.set_title(
        f"{table}: time, less is better\n({caches}, BamQuery {maps} zone maps)", loc="left", fontsize=10
    )
    axis.set_ylabel("median, ms")
    if len(systems) > 1:
        axis.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")


def _draw_amplification(axis: Any, run: Measurements) -> None:
    """Systems of which the bytes are known."""
    ratios = {}
    for place, entry in enumerate(run["queries"][0]["systems"]):
        values = [_amplification(query, place) for query in run["queries"]]
        if any(value is not None for value in values):
            ratios[entry["system"]] = [value or 0.0 for value in values]
    _draw_bars(axis, ratios)
    axis.axhline(1.0, color="#999999", linewidth=0.8, linestyle="--")
    _name_queries(axis, run)
    maps = "with" if run["settings"].get("zone_maps", True) else "without"
    axis.set_title(
        f"bytes read ÷ needed, less is better\n(BamQuery {maps} zone maps; dashed: as many as needed)",
        loc="left",
        fontsize=10,
    )
    if axis.get_yscale() == "linear":
        axis.set_ylim(0, max(1.2, *(value for values in ratios.values() for value in values)) * 1.2)


def _amplification(query: Mapping[str, Any], place: int) -> float | None:
    """A system's; measurements of versions before had BamQuery's alone."""
    found = query["systems"][place].get("amplification", query["amplification"] if place == 0 else None)
    return None if found is None else float(found)


def _draw_bars(axis: Any, values: Mapping[str, Sequence[float]]) -> None:
    """Groups of bars, one a query, with a bar for each system."""
    width = 0.8 / max(len(values), 1)
    for place, (system, heights) in enumerate(values.items()):
        at = [number + (place - (len(values) - 1) / 2) * width for number in range(len(heights))]
        bars = axis.bar(at, heights, width * 0.92, label=system, color=_COLOURS.get(system, "#888888"))
        several = len(values) > 1  # then each says whose it is, upright: figures side by side run together
        labels = [f" {value:.3g} {system}" if several else f"{value:.3g}" for value in heights]
        axis.bar_label(bars, labels=labels, fontsize=6.5, padding=1, rotation=90 if several else 0)
    shown = [value for heights in values.values() for value in heights if value > 0]
    if shown and max(shown) > _WIDE * min(shown):
        axis.set_yscale("log")
        axis.set_ylim(min(shown) / 2, max(shown) * 20)  # with room for the legend
    else:
        axis.margins(y=0.45)


def _name_queries(axis: Any, run: Measurements) -> None:
    axis.set_xticks(range(len(run["queries"])), [query["query"].upper() for query in run["queries"]])


def rows_label(count: int) -> str:
    """`400 M rows`, `50 k rows`, `7 rows`."""
    if count >= 1_000_000:
        return f"{count / 1e6:.3g} M rows"
    return f"{count / 1e3:.3g} k rows" if count >= 1000 else f"{count} rows"
