"""The picture of measurements: time by system, and amplification by query."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bamquery.errors import BamQueryError, StorageError

_COLOURS: Final = {
    "BamQuery": "#0b6e4f",
    "DuckDB": "#f2b705",
    "pyarrow.dataset": "#5b7db1",
    "Polars": "#b04a5a",
}
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
    try:
        importlib.import_module("matplotlib").use("Agg")
        pyplot: Any = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise BamQueryError(
            'drawing needs matplotlib, which is not installed: pip install "bamquery[bench]"'
        ) from error
    with pyplot.rc_context(_LOOKS):
        figure, axes = pyplot.subplots(
            len(runs), 2, figsize=(10, 0.4 + 3.2 * len(runs)), squeeze=False, layout="constrained"
        )
        for row, run in zip(axes, runs, strict=True):
            _draw_times(row[0], run)
            _draw_amplification(row[1], run)
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot write the picture: {error}", path) from error
        finally:
            pyplot.close(figure)


def _draw_times(axis: Any, run: Measurements) -> None:
    systems = [entry["system"] for entry in run["queries"][0]["systems"]]
    width = 0.8 / len(systems)
    for place, system in enumerate(systems):
        medians = [query["systems"][place]["median"] * 1e3 for query in run["queries"]]
        at = [number + (place - (len(systems) - 1) / 2) * width for number in range(len(medians))]
        bars = axis.bar(at, medians, width * 0.92, label=system, color=_COLOURS.get(system, "#888888"))
        axis.bar_label(bars, labels=[f"{value:.3g}" for value in medians], fontsize=6.5, padding=1)
    _name_queries(axis, run)
    caches = "cold caches" if run["cold"] else "warm caches"
    axis.set_title(f"{run['table']}, {_rows(run['table_rows'])}: time, {caches}", loc="left", fontsize=10)
    axis.set_ylabel("median, ms")
    axis.margins(y=0.18)
    if len(systems) > 1:
        axis.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")


def _draw_amplification(axis: Any, run: Measurements) -> None:
    values = [query["amplification"] or 0.0 for query in run["queries"]]
    bars = axis.bar(range(len(values)), values, 0.6, color=_COLOURS["BamQuery"])
    axis.bar_label(bars, labels=[f"{value:.2f}" for value in values], fontsize=8, padding=2)
    axis.axhline(1.0, color="#999999", linewidth=0.8, linestyle="--")
    _name_queries(axis, run)
    maps = "with" if run["settings"].get("zone_maps", True) else "without"
    axis.set_title(f"BamQuery {maps} zone maps: bytes read ÷ needed", loc="left", fontsize=10)
    axis.set_ylim(0, max(1.2, *values) * 1.15)


def _name_queries(axis: Any, run: Measurements) -> None:
    axis.set_xticks(range(len(run["queries"])), [query["query"].upper() for query in run["queries"]])


def _rows(count: int) -> str:
    if count >= 1_000_000:
        return f"{count / 1e6:.3g} M rows"
    return f"{count / 1e3:.3g} k rows" if count >= 1000 else f"{count} rows"
