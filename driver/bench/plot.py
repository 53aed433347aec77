"""The picture of a sweep: rate over what is swept, one curve a path."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

from bamquery.driver.bench.report import Report, title_of
from bamquery.errors import BamQueryError, StorageError

_LOOKS: Final = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "bamquery",  # equal measurements, equal files
}
_COLOURS: Final = ("#0b6e4f", "#f2b705", "#5b7db1", "#b04a5a", "#7a6f9b")


def draw(report: Report, path: Path) -> None:
    """Draw GB/s and operations a second, and write the picture in the format of the path's suffix.

    Raises:
        BamQueryError: matplotlib is not installed.
        StorageError: the picture cannot be written.
    """
    pyplot = load_pyplot()
    places = [run.swept for run in report.runs] if report.sweep else [""]
    names = list(dict.fromkeys(figures.path for run in report.runs for figures in run.figures))
    with pyplot.rc_context(_LOOKS):
        figure, (bytes_axis, operations_axis) = pyplot.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
        for number, name in enumerate(names):
            points = [
                (place, figures)
                for place, run in enumerate(report.runs)
                for figures in run.figures
                if figures.path == name
            ]
            at = [place for place, _ in points]
            looks: dict[str, Any] = {
                "label": name,
                "color": _COLOURS[number % len(_COLOURS)],
                "marker": "o",
                "markersize": 4,
            }
            bytes_axis.plot(at, [figures.gigabytes_per_second for _, figures in points], **looks)
            operations_axis.plot(at, [figures.iops / 1e6 for _, figures in points], **looks)
        for axis, label in ((bytes_axis, "GB/s"), (operations_axis, "million operations a second")):
            axis.set_xticks(range(len(places)), places)
            axis.set_xlabel(report.sweep)
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
        bytes_axis.legend(frameon=False, fontsize=8)
        if report.runs:
            figure.suptitle(title_of(report.runs[0].workload), fontsize=9, x=0.01, ha="left")
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
        except (OSError, ValueError) as error:
            raise StorageError(f"cannot write the picture: {error}", path) from error
        finally:
            pyplot.close(figure)


def load_pyplot() -> Any:
    """Matplotlib's pyplot without a display.

    Raises:
        BamQueryError: it is not installed.
    """
    try:
        importlib.import_module("matplotlib").use("Agg")
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise BamQueryError(
            'drawing needs matplotlib, which is not installed: pip install "bamquery[bench]"'
        ) from error
