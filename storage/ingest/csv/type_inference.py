"""Which type each column of a CSV file has, decided by all of its values.

A column has the first of `READINGS` that every one of its values allows. The file is parsed from end to end
with the readings that fitted so far; where a block does not fit, the columns at fault go on to their next
reading. If values already seen may not fit that one (whole numbers fit DOUBLE, but a time of day is no
date), the file is parsed once more with what was learned. Every further pass has ruled out some reading for
good, so passes are few, and almost always there is one; memory is that of a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.csv import candidates as csv_readings
from bamquery.storage.ingest.csv.blocks import CsvBlock, find_bad_text, read_blocks
from bamquery.storage.ingest.csv.candidates import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FITS_ALSO,
    HUGE,
    INTEGER,
    NOTHING,
    READINGS,
    STAMP,
    TEXT,
    TIME,
    Array,
    Reading,
)
from bamquery.storage.ingest.csv.dialect import Dialect
from bamquery.storage.ingest.csv.parser import Misfit, parse
from bamquery.storage.ingest.csv.rejects import try_block
from bamquery.storage.ingest.sources.reject_log import MOST_REJECTS, Reject
from bamquery.storage.ingest.text.date_formats import DateFormat

_ODD_START: Final = rb"(?:\+|-?0[0-9xX])"


@dataclass(slots=True)
class _Column:
    """What is known of one column so far."""

    alive: list[Reading]
    """Readings that no value has ruled out."""
    exact: bool = True
    """Whether every whole number so far is a double."""

    @property
    def reading(self) -> Reading:
        """The one in use."""
        return self.alive[0]

    def split(self, reading: Reading) -> tuple[list[Reading], list[Reading]]:
        """Those before a reading that is not ruled out, and those from it on."""
        place = self.alive.index(reading)
        return self.alive[:place], self.alive[place:]

    def drop(self) -> bool:
        """Rule out the reading in use; False if values that fitted it may not fit the next."""
        old = self.alive.pop(0)
        if old is NOTHING or self.reading is TEXT:
            return True
        return (old, self.reading) in FITS_ALSO and (self.exact or self.reading is not DOUBLE)

    def narrow(self, text: str) -> None:
        """Rule out the readings that the first value, by its characters, does not allow."""
        self.alive = [reading for reading in self.alive if reading.may_take(text)]

    def keep_format(self, format_: Reading) -> bool:
        """Take no other dates than those of a format; False if values so far may not be of it."""
        if format_ in self.alive:
            self.alive = self.alive[self.alive.index(format_) :]
            return False
        self.alive = [TEXT]
        return True


@dataclass(frozen=True, slots=True)
class Inferred:
    """What `infer` found."""

    readings: tuple[Reading, ...]
    rows: int
    rejects: tuple[Reject, ...] = ()
    """The first lines that were left out."""


@dataclass(frozen=True, slots=True)
class DateReadings:
    """What is known of how dates and timestamps are written.

    Attributes:
        given: the formats that somebody said.
        found: the formats that files before this one have.
    """

    given: tuple[DateFormat, ...] = ()
    found: tuple[DateFormat, ...] = ()


NOTHING_KNOWN: Final = DateReadings()


def infer(
    path: Path,
    dialect: Dialect,
    head: CsvBlock,
    dates: DateReadings = NOTHING_KNOWN,
    on_bytes: Callable[[int], None] = lambda position: None,
    *,
    ignore_errors: bool = False,
) -> Inferred:
    """Read all of the file and decide every column's reading.

    Args:
        path: the file.
        dialect: how it is written.
        head: its first records, for a first guess.
        dates: how dates are written, as far as that is known.
        on_bytes: told after each block how many bytes of the file were read in this pass.
        ignore_errors: lines that are no records are left out.

    Raises:
        IngestError: a line cannot be parsed; names it.
    """
    columns = _columns(head, dialect, path, dates)
    while True:
        rows = position = 0
        sound = True
        rejects: list[Reject] = []
        for block in read_blocks(path, dialect, ignore_errors=ignore_errors):
            fit = partial(_fit, columns, dialect=dialect, path=path)
            if ignore_errors:
                (block_rows, block_sound), found = try_block(block, dialect, path, fit)
                rejects += found[: MOST_REJECTS - len(rejects)]
            else:
                block_rows, block_sound = fit(block)
            rows += block_rows
            sound = sound and block_sound
            position += block.source_bytes
            on_bytes(position)
        sound = _settle_formats(columns, dates.found) and sound
        if sound:
            return Inferred(tuple(column.reading for column in columns), rows, tuple(rejects))


def infer_head(
    head: CsvBlock, dialect: Dialect, path: Path, dates: DateReadings = NOTHING_KNOWN
) -> tuple[Reading, ...]:
    """What the columns are by the first records alone.

    Raises:
        IngestError: a line cannot be parsed; names it.
    """
    return tuple(column.reading for column in _columns(head, dialect, path, dates))


def rows_if_read(readings: Sequence[Reading], block: CsvBlock, dialect: Dialect, path: Path) -> int | None:
    """The rows of a block whose values all are of the types that columns are read as; None if some are not.

    Raises:
        IngestError: a line cannot be parsed; names it.
    """
    types = {i: reading.parsed for i, reading in enumerate(readings)}
    try:
        batch = parse(block, dialect, path, list(types), types)
    except Misfit:
        return None
    odd = _may_have_odd_numbers(block.data, dialect)
    texts = _Texts(block, dialect, path)
    fits = all(
        _allows(_Column([reading]), batch.column(i), odd, partial(texts.column, i))
        for i, reading in enumerate(readings)
    )
    return batch.num_rows if fits else None


def _columns(head: CsvBlock, dialect: Dialect, path: Path, dates: DateReadings) -> list[_Column]:
    """Columns without the readings that the first records rule out, which costs little to find there."""
    readings = csv_readings.readings_with(dates.given) if dates.given else READINGS
    columns = _guess(head, dialect, path, readings)
    if head.data:
        while not (_fit(columns, head, dialect, path)[1] and _settle_formats(columns, dates.found)):
            pass
    return columns


def _settle_formats(columns: Sequence[_Column], found: Sequence[DateFormat]) -> bool:
    """Give dates, and timestamps, the format that the first column with any has, as DuckDB does.

    What may be a day or a month in one column is not guessed otherwise than in the one before, or in the
    file before.

    Returns:
        Whether all values so far are of what their columns are now.
    """
    sound = True
    for is_kind in (pa.types.is_date, _is_local):
        of_kind = [column for column in columns if is_kind(column.reading.type)]
        known = [reading for reading in csv_readings.readings_of_formats(found) if is_kind(reading.type)]
        first = next(iter([*known, *(column.reading for column in of_kind)]), None)
        for column in of_kind:
            if first is not None and column.reading.has_free_format and column.reading != first:
                sound &= column.keep_format(first)
    return sound


def _is_local(type_: DataType) -> bool:
    """Whether it is a timestamp without a zone."""
    return isinstance(type_, pa.TimestampType) and type_.tz is None


def _guess(head: CsvBlock, dialect: Dialect, path: Path, readings: Sequence[Reading]) -> list[_Column]:
    """Columns without the readings that Arrow's guess for a few rows, and the first value, rule out."""
    columns = [_Column(list(readings)) for _ in dialect.names]
    if not head.data:
        return columns
    batch = parse(head, dialect, path, list(range(len(columns))), {})
    texts = _Texts(head, dialect, path)
    for i, (column, array) in enumerate(zip(columns, batch.columns, strict=True)):
        first = _first_possible(array.type)
        before, behind = column.split(first)
        if first is NOTHING:
            continue
        column.alive = [*(reading for reading in before if reading.format), *behind]
        if first is TIME or len(column.alive) > len(behind):
            column.narrow(texts.first(i))
    return columns


def _first_possible(guessed: pa.DataType) -> Reading:
    for is_of, reading in (
        (pa.types.is_null, NOTHING),
        (pa.types.is_boolean, BOOLEAN),
        (pa.types.is_integer, INTEGER),
        (pa.types.is_floating, HUGE),
        (pa.types.is_time, TIME),
        (pa.types.is_date, DATE),
        (pa.types.is_timestamp, STAMP),
    ):
        if is_of(guessed):
            return reading
    return TIME


class _Texts:
    """The columns of a block as text, made when the first of them is wanted."""

    def __init__(self, block: CsvBlock, dialect: Dialect, path: Path) -> None:
        self._of = (block, dialect, path)
        self._batch: pa.RecordBatch | None = None

    def column(self, i: int) -> Array:
        """One of them.

        Raises:
            IngestError: the block is not UTF-8; names the line.
        """
        if self._batch is None:
            block, dialect, path = self._of
            places = range(len(dialect.names))
            try:
                self._batch = parse(block, dialect, path, list(places), dict.fromkeys(places, TEXT.parsed))
            except Misfit as misfit:
                raise find_bad_text(block, path) or misfit from misfit
        return self._batch.column(i)

    def first(self, i: int) -> str:
        """Its first value; empty if there is none."""
        column = self.column(i)
        row = column.is_valid().index(pa.scalar(value=True)).as_py()
        return "" if row < 0 else str(column[row].as_py())


def _fit(columns: list[_Column], block: CsvBlock, dialect: Dialect, path: Path) -> tuple[int, bool]:
    """Drop readings until the block fits; its rows, and whether blocks before it fit as well."""
    sound = True
    odd = _may_have_odd_numbers(block.data, dialect)
    texts = _Texts(block, dialect, path)
    while True:
        check_cancelled()
        types = {i: column.reading.parsed for i, column in enumerate(columns)}
        try:
            batch = parse(block, dialect, path, list(types), types)
        except Misfit as misfit:
            bad_text = pa.types.is_large_string(types[misfit.column]) and find_bad_text(block, path)
            if bad_text:
                raise bad_text from misfit
            column = columns[misfit.column]
            if column.reading is NOTHING:
                column.narrow(texts.first(misfit.column))
            sound &= column.drop()
            continue
        fits = True
        for i, column in enumerate(columns):
            if column.reading.format is not None:
                check_cancelled()
            while not _allows(column, batch.column(i), odd, partial(texts.column, i)):
                sound &= column.drop()
                if column.reading.parsed != types[i]:
                    fits = False
                    break
        if fits:
            return batch.num_rows, sound


def _may_have_odd_numbers(data: bytes, dialect: Dialect) -> bool:
    """Whether some field starts like 007, 0x1F or +49; a look at the bytes spares reading numbers as text."""
    before = (dialect.delimiter.encode(), dialect.newline, b'"')
    return re.match(_ODD_START, data) is not None or any(
        re.search(re.escape(byte) + _ODD_START, data) for byte in before
    )


def _allows(column: _Column, values: Array, odd: bool, text: Callable[[], Array]) -> bool:
    """Whether what the parser made of a block is what was written: no digit lost, no day invented."""
    reading = column.reading
    if csv_readings.is_number(reading) and odd and csv_readings.has_odd_numbers(text()):
        return False
    if reading is INTEGER:
        column.exact = column.exact and csv_readings.is_exact(values)
    if reading is HUGE:
        column.exact = False
        return csv_readings.all_whole(text())
    if reading is DOUBLE:
        return not csv_readings.may_hide_digits(values) or not csv_readings.hides_digits(text())
    if pa.types.is_timestamp(reading.parsed) and reading.parsed.unit == "ns":
        return not csv_readings.has_overflown(values, text())
    return reading.format is None or reading.format.read(values) is not None
