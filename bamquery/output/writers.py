"""Where answers go, one after the other: a table for people, or a format for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from bamquery.engine.human_units import human_bytes, human_seconds, plural
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.errors import BamQueryError
from bamquery.output.arrow_batches import small_batches
from bamquery.output.atomic_file import whole_file
from bamquery.output.binary_files import write_arrow_file, write_arrow_stream, write_parquet
from bamquery.output.display_options import BINARY_FORMATS, DEFAULT_WIDTH, DisplayOptions
from bamquery.output.formats import TEXT_FORMATS
from bamquery.output.terminal_stream import TerminalStream
from bamquery.output.text_table import TableLayout, TableStyle
from bamquery.text.terminal import escape_lines, has_colour, terminal_width

_SAMPLE_ROWS = 10_000
"""Rows that say how wide columns are where all of them are shown; those after them are cut to that."""


class Batches(Protocol):
    """Rows as they come; a `Result`."""

    schema: pa.Schema
    profile: QueryProfile

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class Answer(Protocol):
    """What a statement has to say; a `Relation`."""

    message: str
    is_answer: bool

    def run(self) -> AbstractContextManager[Batches]:
        """A run of its own."""
        ...


class AnswerWriter(Protocol):
    """Takes answers one after the other."""

    written: bool
    """Whether there is anything in it."""

    def write(self, answer: Answer, started: float) -> None:
        """Run it and write its rows; `started` is when its statement was begun, on `time.perf_counter`."""
        ...


@contextmanager
def open_output(options: DisplayOptions, path: str | None = None) -> Iterator[AnswerWriter]:
    """An output as the options say, to a file or to standard output. A file is there once all of it is.

    Raises:
        BamQueryError: a binary format would go to a terminal, or there was nothing for the file, which is
            then as it was. StorageError: the file cannot be written.
    """
    if path is None:
        yield make_writer(sys.stdout.buffer, options, terminal=sys.stdout.isatty())
        return
    with whole_file(Path(path)) as file:
        output = make_writer(file, options, seekable=True)
        yield output
        if not output.written:
            raise BamQueryError(f"there was no answer to write to {path}; the statements are done")


def make_writer(
    stream: BinaryIO, options: DisplayOptions, *, terminal: bool = False, seekable: bool = False
) -> AnswerWriter:
    """An output as the options say, to a stream that stays open.

    Args:
        stream: gets UTF-8, or the bytes of a binary format.
        options: see there.
        terminal: whether what is written comes to a terminal, if by a pager: it may have colours then, is
            as wide as the terminal, and nothing in the data steers it.
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
        return SingleAnswerWriter(
            options.format, write_parquet if options.format == "parquet" else arrow, stream
        )
    if options.format in ("table", "box"):
        return TableWriter(stream, options, terminal=terminal)
    return TextWriter(TerminalStream(stream) if terminal else stream, options)


class TableWriter:
    """Tables that fit the terminal; `table` also says how many rows there are and what they took."""

    def __init__(self, stream: BinaryIO, options: DisplayOptions, *, terminal: bool) -> None:
        self._stream = stream
        self._options = options
        self._is_box = options.format == "box"
        self._terminal = terminal
        self._colour = has_colour(options.colour, terminal=terminal)
        self.written = False

    def write(self, answer: Answer, started: float) -> None:
        """See `AnswerWriter`."""
        self.written = True
        if answer.message:
            took = "" if answer.is_answer else self._elapsed_time(started)
            self._print([escape_lines(answer.message) + (f" ({took})" if took else "")])
            return
        with answer.run() as result:
            limit = self._options.row_limit
            shown, total = self._print_first_rows(result, limit) if limit else self._print_all_rows(result)
            profile = result.profile
        if self._is_box:
            if shown < total:
                self._print([f"the first {shown:,} of {plural(total, 'row')}"])
            return
        first = f", the first {shown:,} shown" if shown < total else ""
        figures = [self._elapsed_time(started), *(_figures(profile) if self._options.statistics else [])]
        told = ", ".join(figure for figure in figures if figure)
        self._print([f"{plural(total, 'row')}{first}" + (f" ({told})" if told else "")])

    def _print_first_rows(self, result: Batches, limit: int) -> tuple[int, int]:
        """A table of the first rows; how many were shown, and how many there are."""
        shown, total = _head(result, limit)
        table = pa.Table.from_batches(shown, result.schema)
        layout = TableLayout(table, self._style())
        self._print(chain(layout.top(), layout.body(table), layout.bottom()))
        return table.num_rows, total

    def _print_all_rows(self, result: Batches) -> tuple[int, int]:
        """A table of all rows, which are written as they come."""
        batches = iter(result)
        sample: list[pa.RecordBatch] = []
        total = 0
        while total < _SAMPLE_ROWS and (batch := next(batches, None)) is not None:
            sample.append(batch)
            total += batch.num_rows
        layout = TableLayout(
            pa.Table.from_batches(sample, result.schema).slice(0, _SAMPLE_ROWS), self._style()
        )
        self._print(layout.top())
        for batch in small_batches(sample):
            self._print(layout.body(batch))
        del sample
        for batch in small_batches(batches):
            self._print(layout.body(batch))
            total += batch.num_rows
        self._print(layout.bottom())
        return total, total

    def _style(self) -> TableStyle:
        options = self._options
        width = options.width
        if width is None:
            elsewhere = 0 if self._is_box else DEFAULT_WIDTH
            width = terminal_width(sys.stdout, DEFAULT_WIDTH) if self._terminal else elsewhere
        return TableStyle(
            width=width,
            headers=options.headers,
            types=not self._is_box,
            null="NULL" if options.null_value is None else options.null_value,
            colour=self._colour,
            square=self._is_box,
            column_widths=options.column_widths,
        )

    def _elapsed_time(self, started: float) -> str:
        return human_seconds(time.perf_counter() - started) if self._options.timer else ""

    def _print(self, lines: Iterable[str]) -> None:
        # A file's name may be no UTF-8.
        self._stream.writelines(f"{line}\n".encode(errors="replace") for line in lines)
        self._stream.flush()


class TextWriter:
    """Rows in a text format; statements that have none write nothing."""

    def __init__(self, stream: BinaryIO, options: DisplayOptions) -> None:
        self._writer = TEXT_FORMATS[options.format]
        self._stream = stream
        self._options = options
        self.written = False

    def write(self, answer: Answer, started: float) -> None:
        """See `AnswerWriter`."""
        del started
        if not answer.is_answer:
            return
        if self.written and self._options.format in ("line", "markdown"):
            self._stream.write(b"\n")
        self.written = True
        limit = self._options.row_limit if self._options.format == "line" else 0
        with answer.run() as result:
            if limit:
                shown, total = _head(result, limit)
                self._writer(shown, result.schema, self._stream, self._options)
                if total > limit:
                    self._stream.write(f"\nthe first {limit:,} of {plural(total, 'row')}\n".encode())
            else:
                self._writer(small_batches(result), result.schema, self._stream, self._options)
        self._stream.flush()


class SingleAnswerWriter:
    """Rows in a format of which a file holds one answer only."""

    def __init__(
        self,
        kind: str,
        writer: Callable[[Iterable[pa.RecordBatch], pa.Schema, BinaryIO], int],
        stream: BinaryIO,
    ) -> None:
        self._kind = kind
        self._writer = writer
        self._stream = stream
        self.written = False

    def write(self, answer: Answer, started: float) -> None:
        """See `AnswerWriter`.

        Raises:
            BamQueryError: this is the second answer.
        """
        del started
        if not answer.is_answer:
            return
        if self.written:
            raise BamQueryError(
                f"{self._kind} holds one answer, and there is a second one: ask for one at a time"
            )
        self.written = True
        with answer.run() as result:
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


def _figures(profile: QueryProfile) -> list[str]:
    """What was read for an answer, if it was counted."""
    io = profile.io
    if io.amplification is None:
        return []
    return [f"{human_bytes(io.bytes_read)} read", f"amplification {io.amplification:.2f}"]
