"""What a dot-command is, and how its words are read."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bamquery.errors import BamQueryError
from bamquery.text.identifiers import suggestion

if TYPE_CHECKING:
    from bamquery.shell.shell import Shell


class UsageError(BamQueryError):
    """A command with words that it does not take."""


@dataclass(frozen=True, slots=True)
class CommandArguments:
    """What follows a command's name.

    Attributes:
        raw: as it was written.
        listed: the words, quotes taken off.
    """

    raw: str
    listed: tuple[str, ...]

    def single(self, what: str) -> str:
        """The only word.

        Raises:
            UsageError: there is none, or more.
        """
        if len(self.listed) != 1:
            raise UsageError(f"it takes {what}")
        return self.listed[0]

    def expect_end(self) -> None:
        """Nothing follows.

        Raises:
            UsageError: something does.
        """
        if self.raw:
            raise UsageError("it takes nothing")

    def optional(self, what: str) -> str | None:
        """The only word, or None without one.

        Raises:
            UsageError: there are more.
        """
        if len(self.listed) > 1:
            raise UsageError(f"it takes {what}, or nothing")
        return self.listed[0] if self.listed else None


Run = Callable[["Shell", CommandArguments], bool | None]
"""Does it; False where it failed and has said so. Errors of users are raised."""


@dataclass(frozen=True, slots=True)
class Command:
    """A dot-command.

    Attributes:
        name: without the dot.
        usage: what follows the name: `[FILE]`.
        summary: a line for `.help`.
        run: does it.
        psql: the same as people write it who come from psql, with the backslash.
        completes: what its words are: `tables`, `files`, `commands`, `sql`, or the choices themselves.
        details: more for `.help NAME`.
        early: whether it may stand in the configuration file: it needs no database.
    """

    name: str
    usage: str
    summary: str
    run: Run
    psql: tuple[str, ...] = ()
    completes: str | tuple[str, ...] = ()
    details: str = ""
    early: bool = False


SWITCH: Final = ("on", "off")


def switch(words: CommandArguments, current: bool) -> bool:
    """`on` or `off`; nothing is the other one of the two.

    Raises:
        UsageError: it is something else.
    """
    word = words.optional("on or off")
    if word is None:
        return not current
    if word.lower() not in SWITCH:
        raise UsageError(f"it takes on or off, not {word!r}")
    return word.lower() == "on"


def choice(word: str, choices: tuple[str, ...], what: str) -> str:
    """One of the choices, in any case of letters.

    Raises:
        UsageError: it is none; suggests the nearest.
    """
    if word.lower() not in choices:
        raise UsageError(
            f'there is no {what} "{word}".{suggestion(word, choices)} It takes {", ".join(choices)}'
        )
    return word.lower()


def count(word: str) -> int:
    """A whole number.

    Raises:
        UsageError: it is none.
    """
    if not word.isdecimal() or len(word) > 9:
        raise UsageError(f"it takes whole numbers, not {word!r}")
    return int(word)


def split_words(text: str) -> tuple[str, ...]:
    """The words of a line as a shell reads them, a backslash standing for itself.

    Raises:
        UsageError: a quote is not closed.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    lexer.escape = ""
    try:
        return tuple(lexer)
    except ValueError:
        raise UsageError("a quote is not closed") from None


def expand_path(path: str) -> Path:
    """A path as users write it: `~` is their home.

    Raises:
        UsageError: there is no such home.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: {error}") from None


def quote_name(name: str) -> str:
    """A name as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string as SQL takes any."""
    return "'" + text.replace("'", "''") + "'"
