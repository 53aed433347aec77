"""Where statements and dot-commands begin and end in what was typed, pasted or read from a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bamquery.shell.scanner import NORMAL, Kind, State, Token, meaningful, scan

_WORDS = {"exit": ".quit", "quit": ".quit", "help": ".help"}
"""What people type who do not know yet that commands begin with a dot."""


@dataclass(frozen=True, slots=True)
class InputUnit:
    """What is run at once: a dot-command, or statements that follow each other.

    Attributes:
        text: without the dot-commands around it; of statements as they were written, `;` included.
        line: where it begins, from 0.
        is_command: whether it is for the shell.
    """

    text: str
    line: int
    is_command: bool


def is_command(text: str) -> bool:
    """Whether it is for the shell, not for the database."""
    return text[:1] in (".", "\\") or as_command(text) is not None


def as_command(text: str) -> str | None:
    """The dot-command that a text of one bare word means; None for all others."""
    return _WORDS.get(text.strip().rstrip(";").lower())


class StatementEnd:
    """Whether a text that comes line by line is between two statements."""

    def __init__(self) -> None:
        self._state: State = NORMAL
        self._last = ";"

    @property
    def is_reached(self) -> bool:
        """Whether nothing is unfinished: after `;`, or before anything came."""
        return self._state.kind is None and self._last == ";"

    def add(self, line: str) -> bool:
        """Take one more line, its end included; returns `is_reached`."""
        tokens, self._state = scan(line, self._state)
        for token in reversed(tokens):
            if token.kind not in (Kind.SPACE, Kind.COMMENT):
                self._last = token.text
                break
        return self.is_reached


def is_complete(text: str) -> bool:
    """Whether there is nothing more to come: the text ends with `;`, or has no statement in it."""
    if is_command(text):
        return True
    last = text.rstrip().rpartition("\n")[2]
    if last and not last.endswith(";") and "--" not in last and "*/" not in last:
        return False  # without looking at ten thousand lines before it
    return StatementEnd().add(text)


def units(lines: Iterable[str]) -> Iterator[InputUnit]:
    """The commands and runs of statements of a text; the last one may be unfinished."""
    end = StatementEnd()
    gathered: list[str] = []
    first = 0
    for number, line in enumerate(lines):
        if end.is_reached and line[:1] in (".", "\\"):
            if has_statement("".join(gathered)):
                yield InputUnit("".join(gathered), first, is_command=False)
            gathered = []
            yield InputUnit(line.strip(), number, is_command=True)
            continue
        if not gathered:
            if not line.strip():
                continue
            first = number
        gathered.append(line)
        end.add(line)
    text = "".join(gathered)
    command = as_command(text)
    if command is not None:
        yield InputUnit(command, first, is_command=True)
    elif has_statement(text):
        yield InputUnit(text, first, is_command=False)


def has_statement(text: str) -> bool:
    """Whether there is more than spaces, comments and `;`."""
    return any(token.text != ";" for token in meaningful(scan(text)[0]))


def statements(text: str) -> list[str]:
    """The statements of a text, each without its `;`; pieces without one are left out."""
    pieces: list[list[Token]] = [[]]
    for token in scan(text)[0]:
        if token.kind is Kind.OPERATOR and token.text == ";":
            pieces.append([])
        else:
            pieces[-1].append(token)
    return ["".join(token.text for token in piece).strip() for piece in pieces if meaningful(piece)]


def statement_at(text: str, place: int) -> tuple[str, int]:
    """The statement that is typed at a place, and where it begins in the text."""
    start, end = 0, len(text)
    for token in scan(text)[0]:
        if token.kind is Kind.OPERATOR and token.text == ";":
            if token.end > place:
                end = token.start
                break
            start = token.end
    return text[start:end], start
