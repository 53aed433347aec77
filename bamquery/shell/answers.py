"""Where the shell's answers go: the screen, a pager, or a file. Imports the engine."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.errors import BamQueryError
from bamquery.output.display_options import BINARY_FORMATS, PAGED_FORMATS
from bamquery.output.writers import AnswerWriter, Batches, make_writer, open_output
from bamquery.relations.relation import Relation
from bamquery.shell.console import Console
from bamquery.shell.options import ShellOptions
from bamquery.shell.pager import Page, is_paged, page, wrap_notes

PAGER_ROWS: Final = 10_000
"""Rows that a pager has where `.maxrows` says nothing."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_HEADERS: Final = {"table": 4, "box": 3, "line": 0}
"""Lines above the first row, by format."""


class Answers:
    """Takes answers one after the other.

    Attributes:
        profile: of the latest query that was run for its rows; None before there is one.
    """

    def __init__(self, options: ShellOptions, console: Console, *, interactive: bool) -> None:
        """`interactive`: whether somebody is there who can turn pages."""
        self._options = options
        self._console = console
        self._interactive = interactive
        self._file: AnswerWriter | None = None
        self._stack = ExitStack()
        self._once: str | None = None
        self.profile: QueryProfile | None = None

    def write(self, answer: Relation, started: float) -> None:
        """Run it and write its rows; `started` is when its statement was begun, on `time.perf_counter`.

        Raises:
            BamQueryError: it failed, or the output cannot be written.
        """
        followed = _Followed(answer, self._remember_profile)
        if self._once is not None:
            if not answer.is_answer:
                self._write_to_screen(followed, started)
                return
            path, self._once = self._once, None
            with open_output(self._options.display, path) as output:
                output.write(followed, started)
        elif self._file is not None and answer.is_answer:
            self._file.write(followed, started)
        else:
            self._write_to_screen(followed, started)

    def redirect(self, path: str | None) -> None:
        """Let answers go to a file from now on, with None to the screen. A file is there once it is left.

        Raises:
            BamQueryError: the file that is left cannot be written, or nothing was written to it.
        """
        stack, self._stack, self._file = self._stack, ExitStack(), None
        stack.close()
        if path is not None:
            self._file = self._stack.enter_context(open_output(self._options.display, path))

    def redirect_once(self, path: str) -> None:
        """Let the next answer go to a file."""
        self._once = path

    def _remember_profile(self, profile: QueryProfile) -> None:
        self.profile = profile

    def _write_to_screen(self, answer: _Followed, started: float) -> None:
        display = self._options.display
        if display.format in BINARY_FORMATS and self._interactive:
            raise BamQueryError(
                f"{display.format} is not for terminals: name a file with .once or .output, or choose a .mode"
            )
        terminal = sys.stdout.isatty()
        # Who asks for all rows gets them as they come: a pager would have to hold them.
        paged = display.format in PAGED_FORMATS and display.max_rows != 0
        if not (self._interactive and answer.is_answer and paged):
            answer.streams = terminal
            make_writer(sys.stdout.buffer, display, terminal=terminal).write(answer, started)
            return
        # All columns and more rows than are printed: what does not fit is for the pager.
        paging = self._options.pager != "off"
        if display.max_rows is None and (paging or display.format != "table"):
            display = replace(display, max_rows=PAGER_ROWS)
        if paging:
            display = replace(display, width=0)
        written = io.BytesIO()
        make_writer(written, display, terminal=True).write(answer, started)
        text = written.getvalue()
        plain = _COLOURS.sub("", text.decode(errors="replace"))
        if answer.message:
            lines = wrap_notes(plain, shutil.get_terminal_size().columns)
            text = "".join(f"{line}\n" for line in lines).encode()
        else:
            lines = plain.splitlines()
        if not is_paged(lines, self._options.pager):
            self._console.write(text)
            return
        below = lines[-1:] if display.format == "table" and not answer.message else []
        headers = _HEADERS[display.format] if display.headers and not answer.message else 0
        content = Page(lines[: len(lines) - len(below)], "".join(below), header_lines=headers)
        page(content, self._options.pager, self._console)
        if below:
            self._console.write_lines(below[0])


class _Followed:
    """An answer of which the profile is kept, and whose bar stays until there is something to be seen."""

    def __init__(self, answer: Relation, keep: Callable[[QueryProfile], None]) -> None:
        self._answer = answer
        self._keep = keep
        self.streams = False
        """Whether rows are on the screen as soon as they come."""
        self.message = answer.message
        self.is_answer = answer.is_answer

    @contextmanager
    def run(self) -> Iterator[Batches]:
        """See `Answer`."""
        with self._answer.run() as result:
            with nullcontext() if self.streams else result.running.call():
                yield result
            self._keep(result.profile)
