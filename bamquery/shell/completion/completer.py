"""What prompt_toolkit asks for completions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from bamquery.shell.commands.registry import COMMANDS, GROUPS, find, split_name
from bamquery.shell.completion.names import Names
from bamquery.shell.completion.paths import paths
from bamquery.shell.completion.ranking import Candidate, rank
from bamquery.shell.completion.sql import SqlCandidates
from bamquery.shell.input_text import statement_at

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell

_PATIENCE: Final = 2.0
"""Seconds that Tab waits for names right after the start, so as not to be for nothing."""


class ShellCompleter(Completer):
    """Completes dot-commands and their words, and SQL."""

    def __init__(self, names: Names, shell: Shell | None = None) -> None:
        """`shell`: whose settings are known."""
        self._sql = SqlCandidates(names)
        self._names = names
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """See prompt_toolkit."""
        if complete_event.completion_requested:
            self._names.wait_first(_PATIENCE)
        before = document.text_before_cursor
        line = before.rpartition("\n")[2]
        if before[:1] in (".", "\\"):
            return _completions(*self._command(before))
        begun = statement_at(before, len(before) - len(line))[1]
        if line[:1] in (".", "\\") and not before[begun : len(before) - len(line)].strip():
            return _completions(*self._command(line))
        statement, start = statement_at(document.text, len(before))
        found, typed = self._sql.complete_at(statement, len(before) - start)
        # A menu that opens by itself should not open for nothing.
        if not typed and not complete_event.completion_requested and not self._sql.opens_unasked(before):
            return iter(())
        return _completions(found, typed)

    def _command(self, line: str) -> tuple[list[Candidate], str]:
        if " " not in line:
            listed = [
                Candidate(name, name, command.summary, 0 if name[1:] == command.name else 1)
                for name, command in COMMANDS.items()
                if name[0] == line[0]
            ]
            return rank(listed, line), line
        name, _ = split_name(line)
        typed = line[max((line.rfind(end) for end in " "), default=-1) + 1 :]
        try:
            completes = find(name).completes
        except Exception:  # an unknown command completes nothing
            return [], typed
        if completes == "sql":
            raw = line.partition(" ")[2]
            found, word = self._sql.complete_at(raw, len(raw), tables_first=True)
            return found, word
        return self._words(completes, typed)

    def _words(self, completes: str | tuple[str, ...], typed: str) -> tuple[list[Candidate], str]:
        if completes == "files":
            quote = typed[:1] if typed[:1] in ("'", '"') else ""
            rest = typed[len(quote) :]
            return paths(rest), rest
        if completes == "tables":
            tables = self._names.catalogue.tables
            return rank([Candidate(name, name, kind) for name, kind in tables.items()], typed), typed
        if completes == "commands":
            commands = [c for group in GROUPS.values() for c in group]
            listed = [Candidate(c.name, c.name, c.summary) for c in commands]
            return rank([*listed, *self._sql.functions(calls=False)], typed), typed
        return rank([Candidate(word, word) for word in completes], typed), typed


def _completions(found: Iterable[Candidate], typed: str) -> Iterator[Completion]:
    for candidate in found:
        yield Completion(
            candidate.text,
            start_position=-len(typed),
            display=candidate.name,
            display_meta=candidate.meta,
        )
