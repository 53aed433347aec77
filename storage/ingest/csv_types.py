"""Which type each column of a CSV file has, decided by all of its values.

A column has the first of `READINGS` that every one of its values allows. The file is parsed from end to end
with the readings that fitted so far; where a block does not fit, the columns at fault go on to their next
reading. If values already seen may not fit that one (whole numbers fit DOUBLE, but a time of day is no
date), the file is parsed once more with what was learned. Every further pass has ruled out some reading for
good, so passes are few, and almost always there is one; memory is that of a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from bamquery.storage.ingest import csv_readings
from bamquery.storage.ingest.csv_blocks import Block, find_bad_text, read_blocks
from bamquery.storage.ingest.csv_dialect import Dialect
from bamquery.storage.ingest.csv_parse import Misfit, parse
from bamquery.storage.ingest.csv_readings import (
    BOOLEAN,
    BY_NAME,
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

_ODD_START: Final = rb"(?:\+|-?0[0-9xX])"


@dataclass(slots=True)
class _Column:
    """What is known of one column so far."""

    alive: list[Reading] = field(default_factory=lambda: list(READINGS))
    """Readings that no value has ruled out."""
    rival_fits: bool = True
    """Whether the reading that `alive[0]` is ambiguous with has fitted all values too."""
    exact: bool = True
    """Whether every whole number so far is a double."""

    @property
    def reading(self) -> Reading:
        """The one in use."""
        return self.alive[0]

    def drop(self) -> bool:
        """Rule out the reading in use; False if values that fitted it may not fit the next."""
        old = self.alive.pop(0)
        self.rival_fits = True
        if old is NOTHING or self.reading is TEXT:
            return True
        return (old, self.reading) in FITS_ALSO and (self.exact or self.reading is not DOUBLE)

    def decision(self) -> Reading:
        """What the column is, once all values were seen."""
        return TEXT if self.reading.ambiguous_with and self.rival_fits else self.reading


@dataclass(frozen=True, slots=True)
class Inferred:
    """What `infer` found."""

    readings: tuple[Reading, ...]
    rows: int


def infer(
    path: Path, dialect: Dialect, head: Block, on_bytes: Callable[[int], None] = lambda position: None
) -> Inferred:
    """Read all of the file and decide every column's reading.

    Args:
        path: the file.
        dialect: how it is written.
        head: its first records, for a first guess.
        on_bytes: told after each block how many bytes of the file were read in this pass.

    Raises:
        IngestError: a line cannot be parsed; names it.
    """
    columns = _guess(head, dialect, path)
    if head.data:
        _fit(columns, head, dialect, path)  # what a few rows rule out costs little to find here
    while True:
        rows = position = 0
        sound = True
        for block in read_blocks(path, dialect):
            block_rows, block_sound = _fit(columns, block, dialect, path)
            rows += block_rows
            sound = sound and block_sound
            position += block.source_bytes
            on_bytes(position)
        if sound:
            return Inferred(tuple(column.decision() for column in columns), rows)


def _guess(head: Block, dialect: Dialect, path: Path) -> list[_Column]:
    """Columns without the readings that Arrow's guess for a few rows rules out already."""
    columns = [_Column() for _ in dialect.names]
    if not head.data:
        return columns
    batch = parse(head, dialect, path, list(range(len(columns))), {})
    for column, array in zip(columns, batch.columns, strict=True):
        first = _first_possible(array.type)
        column.alive = column.alive[column.alive.index(first) :]
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


def _fit(columns: list[_Column], block: Block, dialect: Dialect, path: Path) -> tuple[int, bool]:
    """Drop readings until the block fits; its rows, and whether blocks before it fit as well."""
    sound = True
    odd = _may_have_odd_numbers(block.data, dialect)
    while True:
        types = {i: column.reading.parsed for i, column in enumerate(columns)}
        try:
            batch = parse(block, dialect, path, list(types), types)
        except Misfit as misfit:
            bad_text = pa.types.is_large_string(types[misfit.column]) and find_bad_text(block, path)
            if bad_text:
                raise bad_text from misfit
            sound &= columns[misfit.column].drop()
            continue
        misfits = [
            column
            for i, column in enumerate(columns)
            if not _allows(column, batch.column(i), odd, partial(_text, block, dialect, path, i))
        ]
        if not misfits:
            return batch.num_rows, sound
        for column in misfits:
            sound &= column.drop()


def _text(block: Block, dialect: Dialect, path: Path, column: int) -> Array:
    return parse(block, dialect, path, [column], {column: TEXT.parsed}).column(0)


def _may_have_odd_numbers(data: bytes, dialect: Dialect) -> bool:
    """Whether some field starts like 007, 0x1F or +49; a look at the bytes spares reading numbers as text."""
    before = (dialect.delimiter.encode(), dialect.newline, b'"')
    return re.match(_ODD_START, data) is not None or any(
        re.search(re.escape(byte) + _ODD_START, data) for byte in before
    )


def _allows(column: _Column, values: Array, odd: bool, text: Callable[[], Array]) -> bool:
    """Whether what the parser made of a block is what was written: no digit lost, no day invented."""
    reading = column.reading
    if reading in (INTEGER, HUGE, DOUBLE) and odd and csv_readings.has_odd_numbers(text()):
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
    if reading.pattern:
        rival = BY_NAME.get(reading.ambiguous_with)
        if rival and column.rival_fits:
            column.rival_fits = csv_readings.interpret(values, rival) is not None
        return csv_readings.interpret(values, reading) is not None
    return True
