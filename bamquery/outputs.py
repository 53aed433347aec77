"""Where the command line's answers go: a table for people, or a format for programs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from bamquery.display import DEFAULT_WIDTH, render
from bamquery.engine.units import human_seconds, plural
from bamquery.errors import BamQueryError
from bamquery.formats import TEXT_FORMATS, Writer, write_arrow_file, write_arrow_stream, write_parquet
from bamquery.relations.relation import Relation
from bamquery.whole_file import whole_file


class Output(Protocol):
    """Takes answers one after the other."""

    written: bool
    """Whether there is anything in it."""

    def write(self, relation: Relation, started: float) -> None:
        """Run it and write its rows; `started` is when its statement was begun, on `time.perf_counter`."""
        ...


@contextmanager
def open_output(kind: str, path: str | None, max_rows: int) -> Iterator[Output]:
    """An output of a format, to a file or to standard output. A file is there once all of it is.

    Raises:
        BamQueryError: a binary format would go to a terminal, or there was nothing for the file, which is
            then as it was. StorageError: the file cannot be written.
    """
    binary = kind in ("parquet", "arrow")
    if path is None and binary and sys.stdout.isatty():
        raise BamQueryError(f"{kind} is not for terminals: name a file with --output, or redirect")
    with _stream(path) as stream:
        output: Output
        if kind == "table":
            output = TableOutput(stream, max_rows, terminal=path is None and sys.stdout.isatty())
        elif binary:
            arrow = write_arrow_stream if path is None else write_arrow_file
            output = SingleOutput(kind, write_parquet if kind == "parquet" else arrow, stream)
        else:
            output = TextOutput(TEXT_FORMATS[kind], stream)
        yield output
        if path is not None and not output.written:
            raise BamQueryError(f"there was no answer to write to {path}; the statements are done")


class TableOutput:
    """Tables of the first rows, with the number of all rows and the time."""

    def __init__(self, stream: BinaryIO, max_rows: int, *, terminal: bool) -> None:
        self._stream = stream
        self._max_rows = max_rows
        self._width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns if terminal else DEFAULT_WIDTH
        self.written = False
        self._colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def write(self, relation: Relation, started: float) -> None:
        """See `Output`."""
        self.written = True
        if relation.message:
            seconds = human_seconds(time.perf_counter() - started)
            self._print(relation.message + ("" if relation.is_answer else f" ({seconds})"))
            return
        with relation.run() as result:
            shown, total = _head(result, self._max_rows)
        table = pa.Table.from_batches(shown, result.schema)
        seconds = human_seconds(time.perf_counter() - started)
        first = f", the first {table.num_rows:,} shown" if total > table.num_rows else ""
        self._print(render(table, self._width, colour=self._colour))
        self._print(f"{plural(total, 'row')}{first} ({seconds})")

    def _print(self, text: str) -> None:
        # A file's name may be no UTF-8.
        self._stream.write(text.encode(errors="replace") + b"\n")
        self._stream.flush()


class TextOutput:
    """Rows in a text format; statements that have none write nothing."""

    def __init__(self, writer: Writer, stream: BinaryIO) -> None:
        self._writer = writer
        self._stream = stream
        self.written = False

    def write(self, relation: Relation, started: float) -> None:
        """See `Output`."""
        if relation.is_answer:
            self.written = True
            with relation.run() as result:
                self._writer(result, result.schema, self._stream)
            self._stream.flush()


class SingleOutput:
    """Rows in a format of which a file holds one answer only."""

    def __init__(self, kind: str, writer: Writer, stream: BinaryIO) -> None:
        self._kind = kind
        self._writer = writer
        self._stream = stream
        self.written = False

    def write(self, relation: Relation, started: float) -> None:
        """See `Output`.

        Raises:
            BamQueryError: this is the second answer.
        """
        if not relation.is_answer:
            return
        if self.written:
            raise BamQueryError(
                f"{self._kind} holds one answer, and there is a second one: ask for one at a time"
            )
        self.written = True
        with relation.run() as result:
            self._writer(result, result.schema, self._stream)


def _head(batches: Iterable[pa.RecordBatch], limit: int) -> tuple[list[pa.RecordBatch], int]:
    """The first rows, and the number of all."""
    shown: list[pa.RecordBatch] = []
    total = 0
    for batch in batches:
        if total < limit:
            shown.append(batch.slice(0, limit - total))
        total += batch.num_rows
    return shown, total


@contextmanager
def _stream(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    with whole_file(Path(path)) as file:
        yield file
