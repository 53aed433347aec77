"""CSV files: what they are is found out by reading them once, then they are read for good."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.csv.blocks import CsvBlock, TextFile, find_bad_text, read_blocks, whole_records
from bamquery.storage.ingest.csv.candidates import NOTHING, TEXT, Reading, reading_for
from bamquery.storage.ingest.csv.dialect import Dialect, sniff
from bamquery.storage.ingest.csv.header import is_header
from bamquery.storage.ingest.csv.parser import Misfit, parse
from bamquery.storage.ingest.csv.rejects import sift, try_block
from bamquery.storage.ingest.csv.type_inference import DateReadings, infer, infer_head
from bamquery.storage.ingest.sources.failures import unreadable
from bamquery.storage.ingest.sources.options import NO_OPTIONS, FileOptions
from bamquery.storage.ingest.sources.reject_log import Reject
from bamquery.storage.ingest.sources.source import BATCH_BYTES, Chunk
from bamquery.storage.ingest.text.date_formats import DateFormat
from bamquery.text.identifiers import fold_case, suggestion

_HEAD_BYTES: Final = 1 << 16
_LONGEST_HEAD: Final = 16 << 20
_REMEMBERED_FILES: Final = 256
_SETTLED_NS: Final = 2_000_000_000
"""Files modified less than this ago may be modified again without their time of modification telling."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What a pass over a file found."""

    dialect: Dialect
    readings: tuple[Reading, ...]
    rows: int
    rejects: tuple[Reject, ...]


class CsvReader:
    """One CSV file, plain, gzip or zstd.

    Types are those that all values allow (see `csv_types`), so a file is parsed twice: when it is opened, and
    when it is read. A file that did not change is looked through once in a process. Fields that
    the header does not name and no record fills, as in some TLC files, are left out.

    Attributes:
        readings: what all columns are, also those that are left out.
        rejects: with `ignore_errors`, the first lines that are no records and were left out.
    """

    is_text: Final = True

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        delimiter: str | None = None,
        options: FileOptions = NO_OPTIONS,
        found: tuple[DateFormat, ...] = (),
        on_bytes: Callable[[int], None] = lambda position: None,
    ) -> None:
        """Look through the file.

        Args:
            path: the file.
            name: for messages.
            delimiter: if it is known; otherwise comma, tab, semicolon or bar, whichever fits best.
            options: what else is known of it; its delimiter comes before `delimiter`.
            found: the `date_formats` of the files before it.
            on_bytes: told how many bytes of it were looked through, again and again.

        Raises:
            IngestError: empty, no text, or with a line that cannot be parsed; names the line.
        """
        self.path = path
        self.name = name
        try:
            status = path.stat()
        except OSError as error:
            raise unreadable(path, error) from error
        self.bytes = status.st_size
        if options.delimiter is None:
            options = replace(options, delimiter=delimiter)
        known = _look_through(path, status, options, found, on_bytes)
        self.rows: int | None = known.rows
        self.readings = known.readings
        self.rejects = known.rejects
        if options.rejects is not None:
            options.rejects.add(path, known.rejects)
        self._ignores_errors = options.ignore_errors
        self._dialect = known.dialect
        self._readings = list(known.readings)
        for _ in range(known.dialect.unnamed):
            if self._readings[-1] is not NOTHING:
                break
            self._readings.pop()
        if options.all_text:
            self._readings = [TEXT] * len(self._readings)
        for place, kind in _declared_types(options, known.dialect.names[: len(self._readings)], path):
            self._readings[place] = reading_for(self._readings[place], kind)
        self.schema: pa.Schema = pa.schema(
            [pa.field(name, r.type) for name, r in zip(known.dialect.names, self._readings, strict=False)]
        )

    def alike(self, path: Path, size: int) -> CsvReader:
        """Another file of `size` bytes that is written like this one, with values of the same types."""
        reader = copy(self)
        reader.path, reader.name, reader.bytes, reader.rows = path, str(path), size, None
        return reader

    @property
    def date_formats(self) -> tuple[DateFormat, ...]:
        """How its dates and timestamps are written, where that is not ISO 8601."""
        return tuple(one.format for one in self._readings if one.format and one.has_free_format)

    @property
    def dialect(self) -> Dialect:
        """How it is written."""
        return self._dialect

    def read(
        self, columns: Sequence[int], types: Sequence[DataType], batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Chunk]:
        """See `SourceReader.read`; a column wanted as a string is the text itself, whatever its reading."""
        del batch_bytes
        readings = {
            i: TEXT if pa.types.is_large_string(type_) else self._readings[i]
            for i, type_ in zip(columns, types, strict=True)
        }
        # No column at all would parse nothing, not even count the rows.
        parsed = {i: reading.parsed for i, reading in readings.items()} or {0: TEXT.parsed}
        for block in read_blocks(self.path, self._dialect, ignore_errors=self._ignores_errors):
            place = f"lines {block.first_line} to {block.last_line}"
            parse_block = partial(
                parse, dialect=self._dialect, path=self.path, columns=list(parsed), types=parsed
            )
            try:
                if self._ignores_errors:
                    batch, _ = try_block(block, self._dialect, self.path, parse_block)
                else:
                    batch = parse_block(block)
            except Misfit as misfit:
                raise find_bad_text(block, self.path) or self._file_changed(place) from misfit
            arrays = {str(i): batch.column(str(i)) for i in columns}
            for i, reading in readings.items():
                if reading.format is not None:
                    interpreted = reading.format.read(arrays[str(i)])
                    if interpreted is None:
                        raise self._file_changed(place)
                    arrays[str(i)] = interpreted
            chosen = pa.RecordBatch.from_pydict(arrays) if arrays else batch.select([])
            yield Chunk(chosen, place, 1, block.source_bytes)

    def _file_changed(self, place: str) -> IngestError:
        return IngestError(f"{place}: the file changed since its columns' types were found", self.path)


_known_files: OrderedDict[tuple[object, ...], _Known] = OrderedDict()
_known_files_lock: Final = threading.Lock()


def _declared_types(options: FileOptions, names: Sequence[str], path: Path) -> Iterator[tuple[int, DataType]]:
    """Positions of the columns whose types are given, and these."""
    folded = [fold_case(name) for name in names]
    for column, kind in options.declared:
        if isinstance(column, str):
            if fold_case(column) not in folded:
                raise IngestError(f'has no column "{column}".{suggestion(column, names)}', path)
            yield folded.index(fold_case(column)), kind
        elif column < len(names):
            yield column, kind


def _look_through(
    path: Path,
    status: os.stat_result,
    options: FileOptions,
    found: tuple[DateFormat, ...],
    on_bytes: Callable[[int], None],
) -> _Known:
    key = (
        os.fspath(path.absolute()),
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        replace(options, declared=(), all_text=False, rejects=None),
        found,
    )
    with _known_files_lock:
        if key in _known_files:
            _known_files.move_to_end(key)
            return _known_files[key]
    settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
    given = (options.date_format, options.timestamp_format)
    dates = DateReadings(tuple(format_ for format_ in given if format_), found)
    dialect, head = _sniff(path, options, dates)
    inferred = infer(path, dialect, head, dates, on_bytes, ignore_errors=options.ignore_errors)
    known = _Known(dialect, inferred.readings, inferred.rows, inferred.rejects)
    if settled:
        with _known_files_lock:
            _known_files[key] = known
            while len(_known_files) > _REMEMBERED_FILES:
                _known_files.popitem(last=False)
    return known


def _sniff(path: Path, options: FileOptions, dates: DateReadings) -> tuple[Dialect, CsvBlock]:
    """The dialect, and the first records behind the header."""
    size = _HEAD_BYTES
    while True:
        with TextFile(path) as file:
            head = file.read(size)
        found = _sniff_head(head, path, options, dates, is_all=len(head) < size)
        if found is not None:
            return found
        if size >= _LONGEST_HEAD:
            raise IngestError(
                f"line 1: does not end within {_LONGEST_HEAD >> 20} MiB; is it CSV, is each quote closed?",
                path,
            )
        size *= 16


def _sniff_head(
    head: bytes, path: Path, options: FileOptions, dates: DateReadings, *, is_all: bool
) -> tuple[Dialect, CsvBlock] | None:
    """As above, by the first bytes; None where these are too few."""
    skipped = _skip_lines(head, options.skip, path, is_all=is_all)
    sniffed = partial(
        sniff, head[skipped:], path, is_all=is_all, delimiter=options.delimiter, nulls=options.nulls
    )

    def complete(dialect: Dialect) -> tuple[Dialect, CsvBlock]:
        dialect = replace(
            dialect,
            start=dialect.start + skipped,
            first_line=dialect.first_line + options.skip,
        )
        data = whole_records(head[dialect.start :], dialect, is_all=is_all)
        lines = data.count(dialect.newline)
        block = CsvBlock(data, dialect.first_line, dialect.first_line + lines - 1, 0)
        if options.ignore_errors:
            block = sift(block, dialect).block_like(block)
        return dialect, block

    found = sniffed(header=options.header is not False)
    if found is None:
        return None
    dialect, block = complete(found)
    if options.header is None:
        if not block.data.strip(b"\r\n") and not is_all:
            return None
        if not _has_header(
            head[skipped:], found, block, partial(infer_head, path=path, dates=dates), sniffed
        ):
            found = sniffed(header=False)
            assert found is not None, "it ends its first record with a header, and without one"
            dialect, block = complete(found)
    if len(options.names) > len(dialect.names):
        raise IngestError(f"has {len(dialect.names)} columns, not {len(options.names)}", path)
    names = (*options.names, *dialect.names[len(options.names) :])
    _require_different(names, path)
    unnamed = min(dialect.unnamed, len(dialect.names) - len(options.names))
    return replace(dialect, names=names, unnamed=unnamed), block


def _has_header(
    head: bytes,
    dialect: Dialect,
    behind: CsvBlock,
    inferred: Callable[[CsvBlock, Dialect], tuple[Reading, ...]],
    sniffed: Callable[..., Dialect | None],
) -> bool:
    """Whether the first record of `head`, which `dialect` takes for the header, is one."""
    if behind.data.strip(b"\r\n"):
        return is_header(dialect.first, inferred(behind, dialect), dialect.nulls, alone=False)
    plain = sniffed(header=False)
    assert plain is not None, "it was read with a header"
    record = CsvBlock(head[plain.start : dialect.start], 1, 1, 0)
    return is_header(dialect.first, inferred(record, plain), dialect.nulls, alone=True)


def _require_different(names: Sequence[str], path: Path) -> None:
    """Raise where names that are given are equal to each other, or to one that the header has."""
    seen = set()
    for name in names:
        if fold_case(name) in seen:
            raise IngestError(f'two columns would be called "{name}": give one of them another name', path)
        seen.add(fold_case(name))


def _skip_lines(head: bytes, lines: int, path: Path, *, is_all: bool) -> int:
    """Bytes of the first `lines` lines."""
    position = 0
    for _ in range(lines):
        end = head.find(b"\n", position)
        if end < 0:
            if is_all:
                raise IngestError(f"has fewer than {lines + 1} lines", path)
            return 0
        position = end + 1
    return position
