"""One block of a CSV file → one record batch, with errors that know their line."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import csv

from bamquery.storage.ingest.csv_blocks import Block, find_bad_record
from bamquery.storage.ingest.csv_dialect import Dialect
from bamquery.storage.ingest.csv_readings import FALSE_WORDS, TRUE_WORDS
from bamquery.storage.ingest.failures import unreadable
from bamquery.storage.types import DataType

_FEW_BYTES: Final = 1 << 18
"""Blocks for which threads cost more than they bring."""
_FAILED_COLUMN: Final = re.compile(r"In CSV column #(\d+)")


class Misfit(Exception):  # noqa: N818 (no error: the next reading is tried)
    """Some value of column `column` is not of the type asked for."""

    def __init__(self, column: int) -> None:
        super().__init__(column)
        self.column = column


def parse(
    block: Block, dialect: Dialect, path: Path, columns: list[int], types: Mapping[int, DataType]
) -> pa.RecordBatch:
    """The columns at these positions; one that is not among `types` gets the type Arrow guesses.

    Raises:
        Misfit: a value is not of its column's type.
        IngestError: a record has too few or too many fields; names the line.
    """
    names = [str(i) for i in range(len(dialect.names))]
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
            convert_options=csv.ConvertOptions(
                include_columns=[names[i] for i in columns],
                column_types={names[i]: type_ for i, type_ in types.items()},
                null_values=list(dialect.nulls),
                strings_can_be_null=True,
                true_values=list(TRUE_WORDS),
                false_values=list(FALSE_WORDS),
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
