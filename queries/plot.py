"""The picture of a run: time by system, and amplification by query."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bamquery.errors import BamQueryError, StorageError
from bamquery.queries.runner import RunResult

_COLOURS: Final = {
    "BamQuery": "#0b6e4f",
    "DuckDB": "#f2b705",
    "pyarrow.dataset": "#5b7db1",
    "Polars": "#b04a5a",
}


def draw(results: Sequence[RunResult], path: Path) -> None:
    """Draw runs, one row of panels each, and write the picture in the format of the path's suffix.

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
    style = {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": "bamquery",
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(
            len(results), 2, figsize=(10, 0.4 + 3.2 * len(results)), squeeze=False, layout="constrained"
        )
        for row, result in zip(axes, results, strict=True):
            _draw_times(row[0], result)
            _draw_amplification(row[1], result)
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot write the picture: {error}", path) from error
        finally:
            pyplot.close(figure)


def _draw_times(axis: Any, result: RunResult) -> None:
    systems = [timing.system for timing in result.questions[0].timings]
    width = 0.8 / len(systems)
    for place, system in enumerate(systems):
        medians = [asked.timings[place].median * 1e3 for asked in result.questions]
        at = [number + (place - (len(systems) - 1) / 2) * width for number in range(len(medians))]
        bars = axis.bar(at, medians, width * 0.92, label=system, color=_COLOURS.get(system, "#888888"))
        axis.bar_label(bars, labels=[f"{value:.3g}" for value in medians], fontsize=6.5, padding=1)
    axis.set_xticks(range(len(result.questions)), [asked.question.name.upper() for asked in result.questions])
    state = "cold" if result.plan.cold else "warm"
    axis.set_title(
        f"{result.plan.table}, {_rows(result.rows)}: time, {state} caches", loc="left", fontsize=10
    )
    axis.set_ylabel("median, ms")
    axis.margins(y=0.15)
    if len(systems) > 1:
        axis.legend(frameon=False, fontsize=8)


def _draw_amplification(axis: Any, result: RunResult) -> None:
    values = [(asked.io.amplification or 0.0) if asked.io else 0.0 for asked in result.questions]
    bars = axis.bar(range(len(values)), values, 0.6, color=_COLOURS["BamQuery"])
    axis.bar_label(bars, labels=[f"{value:.2f}" for value in values], fontsize=8, padding=2)
    axis.axhline(1.0, color="#999999", linewidth=0.8, linestyle="--")
    _name_queries(axis, result)
    axis.set_title("I/O amplification: bytes read ÷ bytes needed", loc="left", fontsize=10)
    axis.set_ylim(0, max(1.2, *values) * 1.15)


def _name_queries(axis: Any, result: RunResult) -> None:
    axis.set_xticks(range(len(result.questions)), [asked.question.name.upper() for asked in result.questions])


def _rows(count: int) -> str:
    if count >= 1_000_000:
        return f"{count / 1e6:.3g} M rows"
    return f"{count / 1e3:.3g} k rows" if count >= 1000 else f"{count} rows"
