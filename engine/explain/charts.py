"""A profile as a picture."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from bamquery.engine.explain.html_tree import operator_title
from bamquery.engine.human_units import human_bytes, human_seconds
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import ColumnProfile
from bamquery.errors import BamQueryError
from bamquery.storage.format.layout import VECTOR_ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STREAMED: Final = "#1f6fb4"
_FETCHED: Final = "#e08a1e"
_PRUNED: Final = "#c3cad1"
_TIME: Final = "#3b6fb6"
_INCHES: Final = 0.35
"""Of height for each bar."""


def plot_profile(profile: QueryProfile) -> Figure:
    """Two charts of bars: bytes by column where stored tables were scanned, and time by operator.

    A column's bytes are those read, streamed and fetched, and what its pruned vectors would have been as
    plain values, by the bytes that its other rows took.

    Raises:
        BamQueryError: matplotlib is not installed.
    """
    try:
        # Not pyplot: it would keep the figure, and choose a window to open.
        from matplotlib.figure import Figure  # noqa: PLC0415 (large, and rarely wanted)
    except ImportError as error:
        raise BamQueryError(
            "profile.plot() needs matplotlib, which is not installed: pip install matplotlib"
        ) from error
    several = len(profile.scans) > 1
    columns = [
        (f"{scan.source}.{column.name}" if several else column.name, column)
        for scan in profile.scans
        for column in scan.columns.values()
    ]
    operators = list(profile.root.walk())
    heights = [len(columns) + 2, len(operators) + 1] if columns else [len(operators) + 1]
    figure = Figure(figsize=(8, 1.2 + _INCHES * sum(heights)), layout="constrained")
    # Notebooks ask for it; matplotlib's own answer comes with pyplot only.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if columns:
        _plot_columns(axes[0], columns)
    titles = [operator_title(one) for one in operators]
    _plot_times(axes[-1], titles, [one.seconds for one in operators])
    return figure


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _plot_columns(axes: Axes, columns: list[tuple[str, ColumnProfile]]) -> None:
    parts: list[tuple[str, str, list[float]]] = [
        ("streamed", _STREAMED, [c.counters.bytes - c.bytes_fetched for _, c in columns]),
        ("fetched", _FETCHED, [c.bytes_fetched for _, c in columns]),
        ("pruned", _PRUNED, [_pruned_bytes(c) for _, c in columns]),
    ]
    places = range(len(columns))
    starts = [0.0] * len(columns)
    for label, colour, amounts in parts:
        axes.barh(places, amounts, left=starts, label=label, color=colour)
        starts = [start + amount for start, amount in zip(starts, amounts, strict=True)]
    _name(axes, "bytes by column", [name for name, _ in columns], human_bytes)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=len(parts), frameon=False)


def _plot_times(axes: Axes, titles: list[str], seconds: list[float]) -> None:
    bars = axes.barh(range(len(titles)), seconds, color=_TIME)
    axes.bar_label(bars, [human_seconds(one) for one in seconds], padding=3)
    axes.margins(x=0.15)
    _name(axes, "time by operator, without those below it", titles, human_seconds)


def _name(axes: Axes, title: str, names: list[str], figure: Callable[[float], str]) -> None:
    axes.set_title(title, loc="left", fontsize="medium")
    # Names are anybody's: a $ in one is no formula.
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda amount, _: figure(amount) if amount >= 0 else "")
    axes.spines[["top", "right"]].set_visible(False)


def _pruned_bytes(column: ColumnProfile) -> float:
    """What its pruned vectors would have been as plain values."""
    if not column.rows_needed:
        return 0.0
    return column.vectors_pruned * VECTOR_ROWS * column.bytes_needed / column.rows_needed
