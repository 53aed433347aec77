"""Whether the first record of a CSV file names its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bamquery.storage.ingest.csv.candidates import NOTHING, TEXT, Reading
from bamquery.storage.ingest.csv.parser import takes
from bamquery.storage.ingest.text.date_formats import DATES, STAMPS, TIME

_VALUE: Final = re.compile(r"\s*([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|\d{4}-\d{1,2}-\d{1,2}([ T].*)?)\s*")


def is_header(
    record: Sequence[str], readings: Sequence[Reading], nulls: Sequence[str], *, alone: bool
) -> bool:
    """Whether the first record holds names.

    As in DuckDB, it does where all columns are texts, where it has no values at all, and where one of its
    fields is not of its column's type. Unlike there, a number or date among them that its column would
    take makes a record of it: rather no names than a row that nobody misses.

    Args:
        record: its fields.
        readings: of the columns, by the records behind it, or by itself if there are none.
        nulls: texts that are null.
        alone: whether it is the only record.
    """
    pairs = [(cell, reading) for cell, reading in zip(record, readings, strict=False) if cell not in nulls]
    if not pairs:
        return True
    if alone:
        return all(reading is TEXT for reading in readings)
    typed = [(cell, reading) for cell, reading in pairs if reading is not TEXT]
    if (typed or any(reading not in (TEXT, NOTHING) for reading in readings)) and all(
        takes(reading, cell) for cell, reading in typed
    ):
        return False
    return not any(
        _is_value(cell) if reading in (TEXT, NOTHING) else _VALUE.fullmatch(cell) and takes(reading, cell)
        for cell, reading in pairs
    )


def _is_value(cell: str) -> bool:
    """Whether a text is a number, or may be a date or a time."""
    return _VALUE.fullmatch(cell) is not None or any(
        format_.fits(cell) for format_ in (TIME, *DATES, *STAMPS)
    )
