"""What `bamquery bench formats` measured, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bamquery.queries.formats.measure import FormatResult
from bamquery.queries.formats.systems.registry import FORMATS
from bamquery.queries.formats.worker import Sample, Workload

HEADINGS: Final = (
    "format",
    "MB",
    "take, warm",
    "take, cold",
    "MB read",
    "Q5, warm",
    "Q5, cold",
    "MB read",
)
LEGEND: Final = "ms: median / least, processor time least; cold with opening; MB read: median, from the drive"


def lines_of(results: Sequence[FormatResult]) -> list[list[str]]:
    """One line a format, under `HEADINGS`."""
    return [
        [
            FORMATS[result.name].label,
            f"{result.size / 1e6:.1f}" if result.size else "",
            *(cell for workload in ("take", "q5") for cell in _cells(result, workload)),
        ]
        for result in results
    ]


def table_of(results: Sequence[FormatResult]) -> RenderableType:
    """All formats, and what is wrong."""
    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "format" else "right")
    for line in lines_of(results):
        table.add_row(*line)
    wrong = [Text(line, style="bold red") for line in complaints(results)]
    return Group(table, Text(LEGEND, style="dim"), *wrong)


def markdown_of(results: Sequence[FormatResult]) -> str:
    """The same for a page."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *lines_of(results)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def complaints(results: Sequence[FormatResult]) -> list[str]:
    """One line for each wrong answer and each failure."""
    return [f"{FORMATS[result.name].label}: {problem}" for result in results for problem in result.problems]


def json_of(results: Sequence[FormatResult], about: dict[str, Any]) -> dict[str, Any]:
    """All samples, behind what they are about."""
    return {**about, "complaints": complaints(results), "formats": [result.to_dict() for result in results]}


def _cells(result: FormatResult, workload: Workload) -> list[str]:
    def total(sample: Sample) -> float:
        return sample.seconds + sample.open_seconds

    read = result.figure(workload, False, lambda sample: sample.from_disk)
    return [
        _times(result, workload, True, total),
        _times(result, workload, False, total),
        f"{read[0] / 1e6:.1f}" if read else "",
    ]


def _times(result: FormatResult, workload: Workload, warm: bool, what: Callable[[Sample], float]) -> str:
    clock = result.figure(workload, warm, what)
    processor = result.figure(workload, warm, lambda sample: sample.processor_seconds)
    if clock is None or processor is None:
        return ""
    return f"{_milliseconds(clock[0])} / {_milliseconds(clock[1])}, {_milliseconds(processor[1])}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g}" if seconds < 1 else f"{seconds * 1e3:,.0f}"
