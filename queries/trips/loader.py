"""TLC files of any year into the tidy table `trips`, with an account of what could not be read."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from bamquery.errors import CatalogError, StorageError
from bamquery.queries.trips.convert import tidy
from bamquery.queries.trips.csv_blocks import CsvFile
from bamquery.queries.trips.schema import TRIPS, NameMap, map_names
from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import DEFAULT_ENCODING
from bamquery.storage.ingest import Progress, open_source
from bamquery.storage.ingest.sources.formats import detect_format
from bamquery.storage.ingest.sources.options import FileOptions, PathOptions
from bamquery.storage.ingest.sources.paths import expand
from bamquery.storage.ingest.sources.read_ahead import ReadAhead
from bamquery.storage.tables.writer import TableWriter

EXAMPLES: Final = 3


@dataclass(frozen=True)
class Rejected:
    """A row that could not be read.

    Attributes:
        file: its file.
        line: line number in a CSV file (1 is the header), row number from 1 in others.
        reason: what is wrong with it.
        text: the line, or the row as JSON.
    """

    file: Path
    line: int
    reason: str
    text: str


@dataclass
class FileReport:
    """What became of one file.

    Attributes:
        file: its path.
        service: yellow, green, fhv or fhvhv.
        rows: how many were loaded.
        rejected: how many could not be read.
        examples: the first of them.
        left_out: columns that `trips` has no place for.
    """

    file: Path
    service: str = ""
    rows: int = 0
    rejected: int = 0
    examples: list[Rejected] = field(default_factory=list)
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadReport:
    """What became of all files.

    Attributes:
        files: one report a file, in the order given.
        seconds: from the first read to the commit.
    """

    files: list[FileReport]
    seconds: float

    @property
    def rows(self) -> int:
        """Rows loaded."""
        return sum(file.rows for file in self.files)

    @property
    def rejected(self) -> int:
        """Rows that could not be read."""
        return sum(file.rejected for file in self.files)


def load(
    database: Database,
    files: Sequence[str | Path],
    *,
    table: str = "trips",
    replace: bool = False,
    rejects: Path | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Load files into a table, all of them in one commit or none.

    Args:
        database: where.
        files: paths and patterns of Parquet, Arrow and CSV files, CSV also compressed.
        table: made if there is none, otherwise appended to.
        replace: begin the table anew.
        rejects: a CSV file to write rows to that could not be read (file, line, reason, text).
        progress: where to show it; by default a bar if standard error is a terminal.

    Raises:
        IngestError: a file cannot be read or is none of TLC's.
        CatalogError: the table exists with other columns.
        StorageError: the database cannot be written.
    """
    paths = expand([str(file) for file in files])
    sizes = [path.stat().st_size for path in paths]
    begun = time.perf_counter()
    reports: list[FileReport] = []
    show = (progress or Progress()).show(f"Loading {table}", None, sum(sizes))
    with ExitStack() as stack:
        writer = stack.enter_context(_writer(database, table, replace))
        reject = stack.enter_context(RejectsFile(rejects)) if rejects else None
        tell = stack.enter_context(show)
        rows = 0
        for place, path in enumerate(paths):
            report = FileReport(path)
            reports.append(report)

            def on_reject(rejected: Rejected, report: FileReport = report) -> None:
                report.rejected += 1
                if len(report.examples) < EXAMPLES:
                    report.examples.append(rejected)
                if reject is not None:
                    reject.write(rejected)

            source = open_trips(path, on_reject)
            report.service, report.left_out = source.names.service, source.names.unknown
            with ReadAhead(source.batches()) as batches:
                for batch in batches:
                    writer.write(batch)
                    report.rows += batch.num_rows
                    rows += batch.num_rows
                    tell(rows, sum(sizes[:place]) + min(source.bytes_read, sizes[place]))
        writer.commit()
    return LoadReport(reports, time.perf_counter() - begun)


class TripSource(Protocol):
    """One file as rows of `trips`."""

    @property
    def names(self) -> NameMap:
        """Where its columns go."""
        ...

    @property
    def bytes_read(self) -> int:
        """How much of the file the batches so far stand for."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Rows that can be read, in order, once; the others are told as they are met."""
        ...


def open_trips(path: Path, on_reject: Callable[[Rejected], None]) -> TripSource:
    """Open one TLC file of whatever year and format.

    Raises:
        IngestError: it cannot be read, or none of its columns is one of TLC's.
    """
    if detect_format(path) in ("csv", "tsv"):
        return _CsvTrips(path, on_reject)
    return _ColumnarTrips(path, on_reject)


class _CsvTrips:
    def __init__(self, path: Path, on_reject: Callable[[Rejected], None]) -> None:
        self._file = CsvFile(path)
        self._reject = on_reject
        self.names = self._file.names

    @property
    def bytes_read(self) -> int:
        return self._file.bytes_read

    def batches(self) -> Iterator[pa.RecordBatch]:
        path = self._file.path
        for block in self._file.blocks():
            tidied = tidy(block.arrays, self.names)
            found = {reject.line: reject.reason for reject in block.rejects}
            found |= {int(block.lines[row]): reason for row, reason in tidied.problems.items()}
            texts = block.texts(sorted(found))
            for line, text in texts.items():
                self._reject(Rejected(path, line, found[line], text))
            yield tidied.batch


class _ColumnarTrips:
    def __init__(self, path: Path, on_reject: Callable[[Rejected], None]) -> None:
        self._path = path
        self._source = open_source(path, options=FileOptions(paths=PathOptions(partitioned=False)))
        self._reject = on_reject
        self.names = map_names(self._source.schema.names, path)

    @property
    def bytes_read(self) -> int:
        return self._source.bytes_read

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in self._source.batches():
            tidied = tidy(batch.columns, self.names)
            for row, reason in sorted(tidied.problems.items()):
                text = json.dumps(batch.slice(row, 1).to_pylist()[0], default=str)
                self._reject(Rejected(self._path, rows + row + 1, reason, text))
            rows += batch.num_rows
            yield tidied.batch


class RejectsFile:
    """The CSV file of rows that could not be read; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open it for writing.

        Raises:
            StorageError: it cannot be written.
        """
        self._path = path
        try:
            self._file = path.open("w", newline="", encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write rejected rows: {error.strerror}", path) from error
        self._writer = csv.writer(self._file)
        self._writer.writerow(("file", "line", "reason", "text"))

    def write(self, rejected: Rejected) -> None:
        """Add one row."""
        try:
            self._writer.writerow((str(rejected.file), rejected.line, rejected.reason, rejected.text))
        except OSError as error:
            raise StorageError(f"cannot write rejected rows: {error.strerror}", self._path) from error

    def __enter__(self) -> RejectsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _writer(database: Database, table: str, replace: bool) -> TableWriter:
    if replace or not database.has_table(table):
        return database.create_table(table, TRIPS, or_replace=replace, encoding=DEFAULT_ENCODING)
    writer = database.table(table).append()
    if writer.schema != TRIPS:
        writer.abort()
        raise CatalogError(
            f'table "{table}" exists with other columns than trips have: --table names another, '
            "--replace begins it anew"
        )
    return writer
