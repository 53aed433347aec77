"""The picture: for each table time by share, a curve a strategy, what was chosen marked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bamquery.queries.plot import Measurements, pictures, rows_label, save

_COLOURS: Final = {"stream": "#5b7db1", "vectors": "#f2b705", "blocks": "#b04a5a", "auto": "#0b6e4f"}


def draw(run: Measurements, path: Path) -> None:
    """Draw what `report.json_of` describes, and write it in the format of the path's suffix.

    Raises:
        BamQueryError: matplotlib is not installed.
        StorageError: the picture cannot be written.
    """
    with pictures() as pyplot:
        curves = run["curves"]
        figure, axes = pyplot.subplots(
            1,
            len(curves),
            figsize=(0.6 + 4.2 * len(curves), 3.8),
            squeeze=False,
            sharey=True,
            layout="constrained",
        )
        for axis, curve in zip(axes[0], curves, strict=True):
            _draw_curve(axis, curve)
        axes[0][0].set_ylabel("median, ms")
        axes[0][0].legend(frameon=False, fontsize=8, loc="upper left")
        save(figure, path)


def _draw_curve(axis: Any, curve: Mapping[str, Any]) -> None:
    points = [point for point in curve["points"] if point["matching_rows"]]
    percents = [100.0 * point["matching_rows"] / curve["table_rows"] for point in points]
    for place, first in enumerate(points[0]["strategies"] if points else []):
        name = first["strategy"]
        medians = [1e3 * point["strategies"][place]["median"] for point in points]
        automatic = name == "auto"
        axis.plot(
            percents,
            medians,
            label=name,
            color=_COLOURS.get(name, "#888888"),
            linestyle="--" if automatic else "-",
            linewidth=1.2,
            marker="" if automatic else ".",
        )
        chosen = [at for at, point in enumerate(points) if point["chosen"] == name]
        if chosen:
            axis.plot(
                [percents[at] for at in chosen],
                [medians[at] for at in chosen],
                linestyle="",
                marker="o",
                markersize=10,
                markerfacecolor="none",
                markeredgecolor=_COLOURS["auto"],
            )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("rows that match, %  (○ chosen)")
    condition = curve.get("condition", "column")
    found = "" if condition == "column" else f" by {condition}"
    axis.set_title(f"{curve['table']}{found}, {rows_label(curve['table_rows'])}", loc="left", fontsize=10)
