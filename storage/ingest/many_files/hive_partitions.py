"""Hive partitions: columns that a file does not hold, but the folders it is in: `year=2024/month=1/x.csv`.

The rules are DuckDB's: https://duckdb.org/docs/stable/data/partitioning/hive_partitioning
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote_to_bytes

import pyarrow as pa

from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_each
from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.sources.options import PathOptions
from bamquery.text.identifiers import suggestion

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null."""

_TEXT: Final[DataType] = pa.large_string()
_WHOLE: Final = re.compile(r"\s*(-?\d+|0[xX][0-9a-fA-F]+|0[bB][01]+)\s*")
_LEADING_ZERO: Final = re.compile(r"\s*0\d")
_DAY: Final = r"\s*(\d{1,4})(?:-(\d{1,2})-| (\d{1,2}) )(\d{1,2})"
_DATE: Final = re.compile(_DAY + r"\s*")
_STAMP: Final = re.compile(
    _DAY + r"[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?(?: ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?\s*"
)
_MOST_DIGITS: Final = 80
"""Binary ones and blanks included; int() refuses texts of very many."""
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1

Value: TypeAlias = "pa.Scalar[Any]"
"""Short for annotations."""


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A key of the folders: its name and type, and the value of each file, in the files' order."""

    name: str
    type: DataType
    values: tuple[Value, ...]


def partition_columns(files: Sequence[Path], options: PathOptions) -> list[PartitionColumn]:
    """The keys of the folders that files are in, by name; none where not all files are in such folders.

    A key is BIGINT, DATE or TIMESTAMP where all of its values are, and VARCHAR otherwise.

    Raises:
        IngestError: the options say that there are partitions, and files differ in their keys; or they name a
            key that there is not; or a value is not UTF-8.
    """
    if options.partitioned is False:
        return []
    found = [folder_keys(file) for file in check_each(files)]
    first = found[0].keys()
    different = next((i for i, keys in enumerate(check_each(found)) if keys.keys() != first), None)
    if different is not None:
        if not options.partitioned:
            return []
        here, there = (", ".join(sorted(keys)) or "no keys" for keys in (found[0], found[different]))
        raise IngestError(
            f"its folders have other keys than those of {files[0]}: {there}, not {here}; "
            "hive_partitioning = false reads the files without",
            files[different],
        )
    for name in options.partition_strings:
        if name not in first:
            raise IngestError(
                f'hive_types: the folders have no key "{name}".{suggestion(name, first)}', files[0]
            )
    return [_column(name, [keys[name] for keys in found], files, options) for name in sorted(first)]


def folder_keys(file: Path) -> Mapping[str, str]:
    """The `key=value` of the folders on a file's path, as they are spelled; of two of one key the first."""
    keys: dict[str, str] = {}
    for folder in Path(os.path.normpath(file)).parts[:-1]:
        key, equals, value = folder.partition("=")
        if key and equals and "=" not in value:
            keys.setdefault(key, value)
    return keys


def folder_name(key: str, value: str | None) -> str:
    """The folder for rows of that value, with what file systems or globs could misread as %XX."""
    return f"{quote(key, safe='')}={NULL_FOLDER if value is None else quote(value, safe='')}"


def _column(name: str, texts: Sequence[str], files: Sequence[Path], options: PathOptions) -> PartitionColumn:
    type_ = _TEXT
    if options.guess_types and name not in options.partition_strings:
        type_ = _infer_type(set(texts))
    known: dict[str, Value] = {}
    for text, file in check_each(zip(texts, files, strict=True)):
        if text not in known:
            known[text] = _value(text, type_, name, file)
    return PartitionColumn(name, type_, tuple(known[text] for text in texts))


def _value(text: str, type_: DataType, name: str, file: Path) -> Value:
    if text == NULL_FOLDER:
        null: Value = pa.scalar(None, type_)
        return null
    if type_ != _TEXT:
        return pa.scalar(_READERS[type_](text), type_)
    try:
        return pa.scalar(unquote_to_bytes(os.fsencode(text)).decode(), type_)
    except UnicodeDecodeError as error:
        raise IngestError(
            f'the value of "{name}" in its path is not UTF-8: hive_partitioning = false does without', file
        ) from error


def _infer_type(texts: Iterable[str]) -> DataType:
    """The type of all texts, null aside: the first that each of them reads as."""
    types = {
        next((type_ for type_, read in _READERS.items() if read(text) is not None), _TEXT)
        for text in texts
        if text != NULL_FOLDER
    }
    return types.pop() if len(types) == 1 else _TEXT


def _parse_integer(text: str) -> int | None:
    match = _WHOLE.fullmatch(text)
    if match is None or len(text) > _MOST_DIGITS or _LEADING_ZERO.match(text):
        return None
    value = int(match[1], 0 if match[1][1:2].isalpha() else 10)
    return value if _LOWEST <= value <= _HIGHEST else None


def _date(text: str) -> date | None:
    match = _DATE.fullmatch(text)
    return None if match is None else _day(match)


def _stamp(text: str) -> datetime | None:
    match = _STAMP.fullmatch(text)
    day = None if match is None else _day(match)
    if match is None or day is None:
        return None
    hour, minute, second = (int(match[group] or 0) for group in (5, 6, 7))
    micros = int((match[8] or "").ljust(6, "0")[:6])
    is_midnight = hour == 24 and not (minute or second or micros)
    if not ((hour < 24 or is_midnight) and minute < 60 and second < 60):
        return None
    try:
        return datetime(day.year, day.month, day.day) + timedelta(
            hours=hour, minutes=minute, seconds=second, microseconds=micros
        )
    except OverflowError:
        return None


def _day(match: re.Match[str]) -> date | None:
    try:
        return date(int(match[1]), int(match[2] or match[3]), int(match[4]))
    except ValueError:
        return None


_READERS: Final[Mapping[DataType, Any]] = {
    pa.date32(): _date,
    pa.timestamp("us"): _stamp,
    pa.int64(): _parse_integer,
}
"""Types that a key may have besides VARCHAR, and what reads their values; None for what is none."""
