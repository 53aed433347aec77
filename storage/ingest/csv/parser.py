"""One block of a CSV file → one record batch, with errors that know their line."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.csv.blocks import CsvBlock, find_bad_record
from bamquery.storage.ingest.csv.candidates import (
    FALSE_WORDS,
    NOTHING,
    READINGS,
    TEXT,
    TRUE_WORDS,
    Reading,
    has_odd_numbers,
    is_number,
)
from bamquery.storage.ingest.csv.dialect import Dialect
from bamquery.storage.ingest.sources.failures import unreadable

_FEW_BYTES: Final = 1 << 18
"""Blocks for which threads cost more than they bring."""
_FAILED_COLUMN: Final = re.compile(r"In CSV column #(\d+)")


class Misfit(Exception):  # noqa: N818 (no error: the next reading is tried)
    """Some value of column `column` is not of the type asked for."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


def parse(  # noqa: PLR0917 (what, and as what)
    block: CsvBlock,
    dialect: Dialect,
    path: Path,
    columns: list[int],
    types: Mapping[int, DataType],
    time_formats: Sequence[str] = (),
) -> pa.RecordBatch:
    """The columns at these positions; one that is not among `types` gets the type Arrow guesses.

    `time_formats` are those that timestamps may have besides ISO 8601.

    Raises:
        Misfit: a value is not of its column's type.
        IngestError: a record has too few or too many fields; names the line.
    """
    names = [str(i) for i in range(len(dialect.names))]
    if not block.data:
        nothing = {names[i]: pa.array([], types.get(i, pa.null())) for i in columns}
        return pa.RecordBatch.from_pydict(nothing)
    try:
        table = csv.read_csv(
            io.BytesIO(block.data),
            # One block, since Arrow wants records shorter than its blocks; columns still run in parallel.
            read_options=csv.ReadOptions(
                column_names=names,
                block_size=len(block.data) + 1,
                use_threads=len(block.data) > _FEW_BYTES,
            ),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=b'"' in block.data,
                # In a file of one column a blank line is a row without its value.
                ignore_empty_lines=len(names) > 1,
            ),
            convert_options=_conversion(
                {names[i]: type_ for i, type_ in types.items()},
                [names[i] for i in columns],
                dialect.nulls,
                time_formats,
            ),
        )
    except pa.ArrowInvalid as error:
        failed = _FAILED_COLUMN.search(str(error))
        if failed:
            raise Misfit(int(failed.group(1))) from error
        place = f"lines {block.first_line} to {block.last_line}"
        raise find_bad_record(block, dialect, path) or unreadable(path, error, place) from error
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def takes(reading: Reading, text: str) -> bool:
    """Whether a column of a reading may have a value; of a type, dates with years first are of one format."""
    if _takes_itself(reading, text):
        return True
    texts: pa.Array[Any] = pa.array([text], pa.large_string())
    return any(
        other.format is not None and other.format.fits(text) and other.format.read(texts) is not None
        for other in READINGS
        if other.type == reading.type and not other.has_free_format and not reading.has_free_format
    )


def _takes_itself(reading: Reading, text: str) -> bool:
    if reading in (NOTHING, TEXT):
        return reading is TEXT
    try:
        table = csv.read_csv(
            # In quotes, whatever it is; a name for a column that has none.
            io.BytesIO(b'"' + text.encode("utf-8", "surrogateescape").replace(b'"', b'""') + b'"'),
            read_options=csv.ReadOptions(column_names=["0"], use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=_conversion({"0": reading.parsed}, ["0"], nulls=[]),
        )
    except pa.ArrowInvalid:
        return False
    values = table.column(0).combine_chunks()
    if reading.format is not None:
        return reading.format.read(values) is not None
    return not (is_number(reading) and has_odd_numbers(pa.array([text], pa.large_string())))


def _conversion(
    types: dict[str, DataType], columns: list[str], nulls: Sequence[str], time_formats: Sequence[str] = ()
) -> csv.ConvertOptions:
    parsers: list[Any] = [csv.ISO8601, *time_formats]
    return csv.ConvertOptions(
        timestamp_parsers=parsers if time_formats else None,
        include_columns=columns,
        column_types=types,
        null_values=list(nulls),
        strings_can_be_null=True,
        true_values=list(TRUE_WORDS),
        false_values=list(FALSE_WORDS),
    )
