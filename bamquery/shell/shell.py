"""The shell's state, and what becomes of one input: dot-commands are called, statements are run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from bamquery.errors import BamQueryError
from bamquery.shell.commands.registry import call_command
from bamquery.shell.console import Console
from bamquery.shell.database_opening import Opening
from bamquery.shell.history import ShellHistory
from bamquery.shell.input_text import InputUnit, units
from bamquery.shell.options import ShellOptions
from bamquery.shell.pager import Page, is_paged, page, wrap_notes
from bamquery.text.statement_text import StatementText
from bamquery.text.terminal import escape_lines

if TYPE_CHECKING:
    from bamquery.connection.connection import Connection
    from bamquery.shell.answers import Answers


class Shell:
    """One user's session with one database at a time.

    Attributes:
        opening: the database, which `.open` changes.
        options: what commands set.
        console: where the shell itself writes.
        history: what was typed; None where nobody types.
        interactive: whether somebody types and looks at the screen.
        leaving: whether `.quit` was called.
        latest: the latest statement that was run.
        draft: what the next prompt begins with.
        edit: opens an editor on a text and returns what it became.
        changed: called when tables may have been made or dropped, or another database was opened.
    """

    def __init__(
        self,
        opening: Opening,
        options: ShellOptions,
        console: Console,
        history: ShellHistory | None,
        *,
        interactive: bool,
        settings: Mapping[str, object],
    ) -> None:
        self.opening = opening
        self.options = options
        self.console = console
        self.history = history
        self.interactive = interactive
        self.settings = dict(settings)
        self.leaving = False
        self.latest = ""
        self.draft = ""
        self.changed: Callable[[], None] = lambda: None
        self._answers: Answers | None = None
        self._reading: list[str] = []

    @property
    def connection(self) -> Connection:
        """The connection, waited for.

        Raises:
            BamQueryError: the database cannot be opened.
        """
        return self.opening.connection()

    @property
    def answers(self) -> Answers:
        """Where answers go; the engine is waited for."""
        if self._answers is None:
            self.opening.connection()
            from bamquery.shell.answers import Answers  # noqa: PLC0415 (it imports the engine)

            self._answers = Answers(self.options, self.console, interactive=self.interactive)
        return self._answers

    def run(self, lines: Iterable[str]) -> bool:
        """Run what was typed or read up to the first failure, which is shown; whether there was none.

        Raises:
            KeyboardInterrupt: nothing ran that it could have stopped.
        """
        pending = list(units(lines))
        for position, unit in enumerate(pending):
            if not self._run(unit):
                rest = len(pending) - position - 1
                if rest:
                    self.console.note(f"what follows line {unit.line + 1} was not run")
                return False
            if self.leaving:
                break
        return True

    def run_script(self, path: str, text: str) -> bool:
        """Run a file's text; a file that reads itself is refused.

        Raises:
            BamQueryError: the file is being read already.
        """
        if path in self._reading:
            raise BamQueryError(f"{path} reads itself")
        self._reading.append(path)
        try:
            return self.run(text.splitlines(keepends=True))
        finally:
            self._reading.pop()

    def open(self, database: str) -> None:
        """Go over to another database; the old one stays where the new one cannot be opened.

        Raises:
            BamQueryError: it cannot be opened.
        """
        other = Opening(database, self.settings)
        try:
            other.connection()
        except BaseException:
            other.close()
            raise
        before, self.opening = self.opening, other
        before.close()
        self.changed()

    def close(self) -> None:
        """Let go of everything; says what cannot be written any more."""
        try:
            if self._answers is not None:
                self._answers.redirect(None)
        except BamQueryError as error:
            self.console.note(str(error))
        finally:
            self.opening.close()

    @property
    def width(self) -> int:
        """Columns of the screen."""
        return shutil.get_terminal_size().columns

    def show(self, text: str) -> None:
        """Write a text of the shell's own; by the pager where it does not fit the screen."""
        lines = wrap_notes(escape_lines(text), self.width)
        if self.interactive and is_paged(lines, self.options.pager):
            page(Page(lines), self.options.pager, self.console)
        else:
            self.console.write_lines("\n".join(lines) if self.interactive else text)

    def complain(self, error: Exception) -> None:
        """Show what went wrong, as wide as the screen."""
        if isinstance(error, BamQueryError):
            self.console.failure(error.render(self.width, colour=self.console.has_colours))
            return
        self.console.error(f"this is a bug in BamQuery: {type(error).__name__}: {error}")

    def _run(self, unit: InputUnit) -> bool:
        if not unit.is_command:
            from bamquery.shell.statement_runner import run_statements  # noqa: PLC0415 (it imports the engine)

            text: str = unit.text
            if self._reading:  # so that places in it are those of the file
                text = StatementText("\n" * unit.line + text, label=self._reading[-1])
            return run_statements(self, text)
        try:
            return call_command(self, unit.text)
        except BamQueryError as error:
            self.complain(error)
            return False
