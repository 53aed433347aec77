"""`.import`: what a file is taken for, said before it is loaded. Imports the engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bamquery.data_types.names import type_name
from bamquery.engine.human_units import human_bytes, human_rate, human_seconds, plural
from bamquery.errors import BamQueryError
from bamquery.session.progress.bars import progress_bar
from bamquery.storage.ingest import IngestSource, open_source
from bamquery.storage.ingest.csv.source import CsvReader
from bamquery.storage.ingest.sources.formats import detect_format
from bamquery.storage.ingest.sources.options import FileOptions
from bamquery.storage.ingest.sources.paths import expand
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell

_MOST_COLUMNS: Final = 30
_DELIMITERS: Final = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}


def import_file(shell: Shell, pattern: str, table: str, *, replace: bool) -> None:
    """Say what it is, load it, and say what came of it.

    Raises:
        BamQueryError: it cannot be read or does not fit the table; nothing was loaded.
    """
    connection = shell.connection
    console = shell.console
    files = expand(pattern)
    options = FileOptions(union_by_name=True)
    source = open_source(pattern, progress=progress_bar(connection.settings), options=options)
    console.write_lines(_describe_files(pattern, files, source))
    for line in _columns(source):
        console.write_lines(line)
    for sentence in source.drift:
        console.note(sentence)
    exists = fold_case(table) in map(fold_case, connection.tables)
    if fold_case(table) in map(fold_case, connection.views):
        raise BamQueryError(f'"{table}" is a view, and rows go into tables')
    started = time.perf_counter()
    # It opens the files anew: what was found of CSV files is remembered.
    how: Any = "replace" if replace else "append" if exists else "error"
    rows = connection.load(table, pattern, if_exists=how)
    seconds = time.perf_counter() - started
    verb = "replaced" if replace and exists else "added to" if exists else "made"
    size = source.total_bytes
    speed = f", {human_rate(size / seconds)}" if size and seconds else ""
    console.write_lines(f'{verb} table "{table}": {plural(rows, "row")} ({human_seconds(seconds)}{speed})')


def _describe_files(pattern: str, files: list[Path], source: IngestSource) -> str:
    first = files[0]
    kind = detect_format(first)
    many = pattern if len(files) == 1 else f"{plural(len(files), 'file')}, the first {first}"
    said = [f"{many}: {kind.upper() if kind in ('csv', 'tsv', 'json') else kind.capitalize()}"]
    if kind in ("csv", "tsv"):
        said += _dialect(first, "\t" if kind == "tsv" else None)
    if source.total_rows is not None:
        said.append(plural(source.total_rows, "row"))
    if source.total_bytes is not None:
        said.append(human_bytes(source.total_bytes))
    return ", ".join(said)


def _dialect(path: Path, delimiter: str | None) -> list[str]:
    """Delimiter and header, as reading the file found them."""
    found = CsvReader(path, str(path), delimiter=delimiter).dialect  # it is remembered
    name = _DELIMITERS.get(found.delimiter, repr(found.delimiter))
    return [f"delimiter {name}", "with a header" if found.has_header else "without a header"]


def _columns(source: IngestSource) -> list[str]:
    fields = list(source.schema)
    width = min(max((len(field.name) for field in fields), default=0), 40)
    lines = [f"  {field.name:<{width}}  {type_name(field.type)}" for field in fields[:_MOST_COLUMNS]]
    more = len(fields) - len(lines)
    return [*lines, *([f"  and {plural(more, 'more column')}"] if more else [])]
