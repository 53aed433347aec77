"""Where the command line's answers go: a table for people, or a format for programs."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from bamquery.engine.profile import QueryProfile
from bamquery.engine.units import human_seconds, plural
from bamquery.errors import BamQueryError
from bamquery.output.display_options import BINARY_FORMATS, DEFAULT_WIDTH, DisplayOptions
from bamquery.output.formats import TEXT_FORMATS, Writer, write_arrow_file, write_arrow_stream, write_parquet
from bamquery.output.tables import render
from bamquery.whole_file import whole_file


class Batches(Protocol):
    """Rows as they come; a `Result`."""

    schema: pa.Schema
    profile: QueryProfile

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class Answer(Protocol):
    """What a statement has to say; a `Relation`."""

    message: str
    is_answer: bool

    def execute(self) -> AbstractContextManager[Batches]:
        """A run of its own."""
        ...


class Output(Protocol):
    """Takes answers one after the other."""

    written: bool
    """Whether there is anything in it."""

    def write(self, answer: Answer, started: float) -> None:
        """Run it and write its rows; `started` is when its statement was begun, on `time.perf_counter`."""
        ...


@contextmanager
def open_output(options: DisplayOptions, path: str | None = None) -> Iterator[Output]:
    """An output as the options say, to a file or to standard output. A file is there once all of it is.

    Raises:
        BamQueryError: a binary format would go to a terminal, or there was nothing for the file, which is
            then as it was. StorageError: the file cannot be written.
    """
    if path is None:
        yield output_to(sys.stdout.buffer, options, terminal=sys.stdout.isatty())
        return
    with whole_file(Path(path)) as file:
        output = output_to(file, options, seekable=True)
        yield output
        if not output.written:
            raise BamQueryError(f"there was no answer to write to {path}; the statements are done")


def output_to(
    stream: BinaryIO, options: DisplayOptions, *, terminal: bool = False, seekable: bool = False
) -> Output:
    """An output as the options say, to a stream that stays open.

    Args:
        stream: gets UTF-8, or the bytes of a binary format.
        options: see there.
        terminal: whether what is written comes to a terminal, if by a pager: it may have colours then, and
            its size is the terminal's.
        seekable: whether it is a file, and `arrow` an IPC file.

    Raises:
        BamQueryError: a binary format would go to a terminal.
    """
    if options.format in BINARY_FORMATS:
        if terminal:
            raise BamQueryError(
                f"{options.format} is not for terminals: name a file with --output, or redirect"
            )
        arrow = write_arrow_file if seekable else write_arrow_stream
        return SingleOutput(options.format, write_parquet if options.format == "parquet" else arrow, stream)
    if options.format == "table":
        return TableOutput(stream, options, terminal=terminal)
    return TextOutput(TEXT_FORMATS[options.format], stream)


class TableOutput:
    """Tables of the first rows, with the number of all rows and the time."""

    def __init__(self, stream: BinaryIO, options: DisplayOptions, *, terminal: bool) -> None:
        self._stream = stream
        self._max_rows = options.row_limit
        self._width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns if terminal else DEFAULT_WIDTH
        self.written = False
        self._colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def write(self, answer: Answer, started: float) -> None:
        """See `Output`."""
        self.written = True
        if answer.message:
            seconds = human_seconds(time.perf_counter() - started)
            self._print(answer.message + ("" if answer.is_answer else f" ({seconds})"))
            return
        with answer.execute() as result:
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

    def write(self, answer: Answer, started: float) -> None:
        """See `Output`."""
        if answer.is_answer:
            self.written = True
            with answer.execute() as result:
                self._writer(result, result.schema, self._stream)
            self._stream.flush()


class SingleOutput:
    """Rows in a format of which a file holds one answer only."""

    def __init__(self, kind: str, writer: Writer, stream: BinaryIO) -> None:
        self._kind = kind
        self._writer = writer
        self._stream = stream
        self.written = False

    def write(self, answer: Answer, started: float) -> None:
        """See `Output`.

        Raises:
            BamQueryError: this is the second answer.
        """
        if not answer.is_answer:
            return
        if self.written:
            raise BamQueryError(
                f"{self._kind} holds one answer, and there is a second one: ask for one at a time"
            )
        self.written = True
        with answer.execute() as result:
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
