"""`bamquery columns`: what each column of a table takes, as a table, as JSON, and as a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from bamquery.command_line.arguments import Parser
from bamquery.command_line.interruption import interruptible
from bamquery.data_types.names import type_name
from bamquery.engine.human_units import human_bytes, plural
from bamquery.output.display_options import DEFAULT_WIDTH
from bamquery.output.text_table import TableLayout, TableStyle
from bamquery.storage.database.database import Database
from bamquery.storage.tables.column_report import ColumnReport, column_reports
from bamquery.text.terminal import escape_line, terminal_width

_ROW_HEIGHT = 0.28
"""Inches of the picture that a column takes."""
_PLAIN, _STORED = "#d9d9d9", "#0b6e4f"


def report_columns(database: Path, table: str) -> tuple[str, list[ColumnReport]]:
    """The table's name as its creator wrote it, and what its latest version's columns take.

    Raises:
        StorageError: there is no database, or a fragment cannot be read.
        CatalogError: there is no such table.
    """
    with Database.open(database, create=False) as opened:
        found = opened.table(table)
        with found.snapshot() as snapshot:
            return found.name, list(column_reports(snapshot))


def write_table(name: str, reports: Sequence[ColumnReport], out: TextIO) -> None:
    """For people: a line a column, and all of them together below."""
    rows = pa.table(
        {
            "column": [report.name for report in reports],
            "type": [type_name(report.type) for report in reports],
            "encoding": [_encoding(report) for report in reports],
            "bits": _round_each(report.storage.bits for report in reports),
            "plain": _round_each(report.storage.plain_bits for report in reports),
            "ratio": _round_each(report.ratio for report in reports),
            "distinct": [
                f"{'' if report.distinct_exact else 'about '}{report.distinct:,}" for report in reports
            ],
            "nulls": pa.array([report.nulls for report in reports], pa.int64()),
        }
    )
    width = terminal_width(out, DEFAULT_WIDTH) if out.isatty() else 0
    layout = TableLayout(rows, TableStyle(width, types=False, null="-"))
    for line in [*layout.top(), *layout.body(rows), *layout.bottom()]:
        print(line, file=out)
    print(_describe_total(name, reports), file=out)


def to_json(name: str, reports: Sequence[ColumnReport]) -> dict[str, Any]:
    """For programs; bits are of a value, None where no row is stored."""
    return {
        "table": name,
        "columns": [
            {
                "name": report.name,
                "type": type_name(report.type),
                "encodings": dict(report.storage.encodings),
                "forms": dict(report.forms),
                "rows": report.storage.rows,
                "stored_bytes": report.storage.stored_bytes,
                "plain_bytes": report.storage.plain_bytes,
                "statistics_bytes": report.statistics_bytes,
                "bits": report.storage.bits,
                "plain_bits": report.storage.plain_bits,
                "ratio": report.ratio,
                "distinct": report.distinct,
                "distinct_exact": report.distinct_exact,
                "nulls": report.nulls,
            }
            for report in reports
        ],
    }


def write_json(name: str, reports: Sequence[ColumnReport], out: TextIO) -> None:
    """`to_json`, on lines."""
    print(json.dumps(to_json(name, reports), indent=1), file=out)


def draw(name: str, reports: Sequence[ColumnReport], path: Path) -> None:
    """Bits a value of each column, stored before plain, in the format of the path's suffix.

    Raises:
        BamQueryError: matplotlib is not installed. StorageError: the picture cannot be written.
    """
    from bamquery.queries.plot import pictures, save  # noqa: PLC0415 (which only pictures need)

    with pictures() as pyplot:
        figure, axis = pyplot.subplots(
            figsize=(8, 1.4 + _ROW_HEIGHT * len(reports)), layout="constrained", squeeze=True
        )
        places = range(len(reports))
        plain = [report.storage.plain_bits or 0.0 for report in reports]
        stored = [report.storage.bits or 0.0 for report in reports]
        axis.barh(places, plain, 0.8, label="plain Arrow", color=_PLAIN)
        bars = axis.barh(places, stored, 0.5, label="stored", color=_STORED)
        labels = [f" {bits:.3g}  {_encoding(report)}" for bits, report in zip(stored, reports, strict=True)]
        for bar, label, most in zip(bars, labels, map(max, plain, stored), strict=True):
            axis.text(most, bar.get_y() + bar.get_height() / 2, label, va="center", fontsize=8)
        # Names are anybody's: a $ in one is no formula.
        axis.set_yticks(places, [escape_line(report.name) for report in reports], parse_math=False)
        axis.invert_yaxis()
        axis.margins(x=0.5, y=0.02)
        axis.set_xlabel("bits a value, less is better")
        title = _describe_total(name, reports).replace("; ", "\n").replace("$", r"\$")
        axis.set_title(title, loc="left", fontsize=10)
        axis.legend(frameon=False, fontsize=8, loc="lower right")
        save(figure, path)


def _encoding(report: ColumnReport) -> str:
    """`packed (decimal, constant)`, `dictionary`, `plain`."""
    encoding = report.storage.encoding
    if report.storage.encodings.keys().isdisjoint(("packed", "fsst")):
        return encoding
    return f"{encoding} ({', '.join(form for form, _ in report.forms.most_common())})"


def _describe_total(name: str, reports: Sequence[ColumnReport]) -> str:
    rows = max((report.storage.rows for report in reports), default=0)
    stored = sum(report.storage.stored_bytes for report in reports)
    plain = sum(report.storage.plain_bytes for report in reports)
    statistics = sum(report.statistics_bytes for report in reports)
    if not rows:
        return f"{escape_line(name)}: no rows"
    return (
        f"{escape_line(name)}: {plural(rows, 'row')}, {8 * stored / rows:.4g} bits each instead of "
        f"{8 * plain / rows:.4g}; {human_bytes(stored)} instead of {human_bytes(plain)}, "
        f"and {human_bytes(statistics)} of zone maps and checksums"
    )


def _round_each(values: Any) -> Any:
    return pa.array([None if value is None else round(value, 2) for value in values], pa.float64())


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit status.

    Raises:
        BamQueryError: as `report_columns` and `draw`.
    """
    options = _parser().parse_args(arguments)
    with interruptible():
        name, reports = report_columns(Path(options.database), options.table)
    (write_json if options.json else write_table)(name, reports, sys.stdout)
    if options.picture is not None:
        draw(name, reports, options.picture)
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="bamquery columns",
        description="Say of each column of a table how it is stored and what that takes: encoding, bits a "
        "value, and in plain Arrow, about how many distinct values, and NULLs.",
    )
    parser.add_argument("database", metavar="DB", help="the database's folder")
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="draw it, too (.png, .svg, .pdf)")
    return parser
