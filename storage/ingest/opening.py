"""`open_source`: whatever a user may want to load, as an `IngestSource`."""

# ruff: noqa: PLC0415 (each format's reader is imported with its first file)

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_each
from bamquery.storage.database.file_access import FileAccess
from bamquery.storage.ingest.progress import Progress
from bamquery.storage.ingest.sources.failures import unreadable
from bamquery.storage.ingest.sources.formats import Format, check_compression, check_format, detect_format
from bamquery.storage.ingest.sources.options import NO_OPTIONS, FileOptions, PathOptions
from bamquery.storage.ingest.sources.paths import EVERYTHING, expand
from bamquery.storage.ingest.sources.source import IngestSource, SourceReader

if TYPE_CHECKING:
    from bamquery.storage.ingest.csv.same_header import AlikeFiles
    from bamquery.storage.ingest.csv.source import CsvReader
    from bamquery.storage.ingest.text.date_formats import DateFormat

_GEOJSON: Final = ".geojson"
_LARGE_CSV: Final = 64 << 20
"""Bytes from which on the look through a CSV file takes long enough to show how far it is."""


_MANY: Final = 32
"""CSV files of which those that are alike are looked at together."""


def _go_on() -> None:
    pass


def open_source(
    what: Any,
    *,
    format: str | None = None,  # noqa: A002 (the name users expect)
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
    options: FileOptions = NO_OPTIONS,
    by_need: bool = False,
    access: FileAccess = EVERYTHING,
    check: Callable[[], None] = _go_on,
) -> IngestSource:
    """Open something that has rows.

    Of most files only metadata is read; CSV files are looked through from end to end for their types. Where
    `options` say that columns are not those of all files, or folders give columns, most files are not opened.

    Args:
        what: a path or pattern, a list of them (formats and schemas may differ: they are unified), a pyarrow
            Table, RecordBatch, RecordBatchReader or Dataset, a pandas or polars frame, or any object with
            `__arrow_c_stream__` or `__arrow_c_array__`. Streams can be read once, everything else again.
        format: "parquet", "csv", "tsv", "json" or "arrow", where neither names nor first bytes of files tell.
        columns: those to have, in this order; None for all.
        exclude: those to leave out.
        progress: where to show how far the look through a large CSV file is.
        options: what else is known of files.
        by_need: whether columns of types that cannot be stored are refused only when they are read.
        access: which files may be read.
        check: called before each file that is looked for or opened; what it raises ends that.

    Raises:
        IngestError: it does not exist, is damaged, has columns that cannot be stored, or its files do not go
            together; names the file and the column.
        AccessError: a file that is not to be read.
    """
    from bamquery.storage.ingest.many_files.union import UnifiedSource

    if isinstance(columns, str) or isinstance(exclude, str):
        raise IngestError("columns and exclude are lists of names, not a single name")
    known_format = None if format is None else check_format(format)
    if not _is_paths(what):
        if format is not None:
            raise IngestError("format is for files only")
        from bamquery.storage.ingest.arrow.stream import open_object

        reader = open_object(what)
        return UnifiedSource(reader.name, [reader], columns=columns, exclude=exclude, by_need=by_need)
    files = expand(what, access, check)
    if isinstance(what, (str, os.PathLike)):
        name = os.fspath(what)
    else:
        name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    opener = _Opener(known_format, progress, options)
    paths = options.paths
    partitions = []
    if paths.partitioned is not False and any("=" in str(file) for file in check_each(files)):
        from bamquery.storage.ingest.many_files.hive_partitions import partition_columns

        partitions = partition_columns(files, paths)
    if options.union_by_name or (options.union_by_name is None and not partitions) or len(files) == 1:
        readers = opener.open_all(files, check)
    else:
        from bamquery.storage.ingest.many_files.deferred_reader import open_alike

        readers = open_alike(files, opener, check)
    if not any(len(reader.schema) for reader in readers):
        from bamquery.storage.ingest.json.source import JsonReader

        if isinstance(readers[0], JsonReader):
            readers[0].name_nothing()
    made: Sequence[str] = ()
    hidden: Sequence[str] = ()
    if partitions or paths != PathOptions():
        from bamquery.storage.ingest.many_files.virtual_columns import with_made_columns

        formats = {known_format or detect_format(file) for file in check_each(files)}
        readers, made, hidden = with_made_columns(readers, partitions, paths, formats)
    return UnifiedSource(
        name,
        readers,
        columns=columns,
        exclude=exclude,
        by_need=by_need,
        virtual_columns=made,
        hidden_columns=hidden,
    )


def _is_paths(what: Any) -> bool:
    if isinstance(what, (str, os.PathLike)):
        return True
    return isinstance(what, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in what)


class _Opener:
    """Opens files one after another: what may be a day or a month in one of them is the same in the next."""

    def __init__(self, format_: Format | None, progress: Progress | None, options: FileOptions) -> None:
        self._opened = partial(_open_file, format_=format_, progress=progress, options=options)
        self._dates: tuple[DateFormat, ...] = ()

    def __call__(self, path: Path) -> SourceReader:
        reader = self._opened(path, dates=self._dates)
        self._dates = self._dates or getattr(reader, "date_formats", ())
        return reader

    def open_all(self, files: Sequence[Path], check: Callable[[], None]) -> list[SourceReader]:
        """All of them; `check` as in `open_source`."""
        readers: list[SourceReader] = []
        alike: AlikeFiles | None = None
        while len(readers) < len(files):
            check()
            reader = self(files[len(readers)])
            readers.append(reader)
            if len(files) < _MANY or type(reader).__name__ != "CsvReader":
                continue
            from bamquery.storage.ingest.csv.same_header import AlikeFiles
            from bamquery.storage.ingest.csv.source import CsvReader

            assert isinstance(reader, CsvReader)
            alike = alike or AlikeFiles()
            while more := alike.open(reader, files[len(readers) :], check):
                readers += more
        return readers


def _open_file(
    path: Path,
    *,
    format_: Format | None,
    progress: Progress | None,
    options: FileOptions,
    dates: tuple[DateFormat, ...],
) -> SourceReader:
    name = str(path)
    match format_ or detect_format(path):
        case "parquet":
            from bamquery.storage.ingest.parquet.source import ParquetReader

            return ParquetReader(path, name)
        case "arrow":
            from bamquery.storage.ingest.arrow.file import ArrowFileReader

            return ArrowFileReader(path, name)
        case "json":
            from bamquery.storage.ingest.json.source import JsonReader

            check_compression(path, options.compression)
            if _GEOJSON in (suffix.lower() for suffix in path.suffixes):
                raise IngestError(
                    "is GeoJSON, and features are not made rows here: jq -c '.features[].properties' writes "
                    "what they say of themselves as objects, which read_json() reads",
                    path,
                )
            return JsonReader(path, name, options)
        case "csv":
            return _open_csv(path, None, progress, options, dates)
        case "tsv":
            return _open_csv(path, "\t", progress, options, dates)


def _open_csv(
    path: Path,
    delimiter: str | None,
    progress: Progress | None,
    options: FileOptions,
    dates: tuple[DateFormat, ...],
) -> CsvReader:
    from bamquery.storage.ingest.csv.source import CsvReader

    try:
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(path, error) from error
    check_compression(path, options.compression)
    # What was found out of a file does not depend on what paths give.
    options = replace(options, paths=PathOptions(), union_by_name=None)
    opened = partial(CsvReader, path, str(path), delimiter=delimiter, options=options, found=dates)
    if progress is None or size < _LARGE_CSV:
        return opened()
    with progress.show(f"Looking through {path}", None, size) as report:
        return opened(on_bytes=partial(report, 0))
