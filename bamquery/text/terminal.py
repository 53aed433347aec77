"""Text as terminals may have it: nothing in it steers them, and its width is known."""

from __future__ import annotations

import os
import re
import unicodedata
from contextlib import suppress
from typing import Final, TextIO

_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ASCII: Final = re.compile(r"[ -~]*")
_STEERING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that steer (escapes, directions of writing), are invisible, or are none at all."""
_JOINERS: Final = "\u200c\u200d"
"""Invisible, but letters of some scripts and pictures are put together by them."""


def escape_line(text: str) -> str:
    r"""The text on one line: what would steer a terminal, or cannot be seen, as Python writes it (`\x1b`)."""
    if _ASCII.fullmatch(text):
        return text
    return "".join(map(_escape_character, text))


def escape_lines(text: str) -> str:
    """As `escape_line`, but ends of lines stay."""
    return "\n".join(map(escape_line, text.split("\n")))


def cell_width(text: str) -> int:
    """How many columns of a terminal it takes: letters of East Asia take two, accents put on others none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 (not where all is ASCII)

    return cell_len(text)


def truncate(text: str, width: int) -> str:
    """At most so many columns; where there was more, an ellipsis is the last."""
    if cell_width(text) <= width:
        return text
    return f"{prefix_of_width(text, width - 1).rstrip()}…" if width > 0 else ""


def prefix_of_width(text: str, width: int) -> str:
    """As much of its beginning as so many columns hold."""
    if text.isascii():
        return text[: max(width, 0)]
    taken = 0
    for position, character in enumerate(text):
        taken += cell_width(character)
        if taken > width:
            return text[:position]
    return text


def suffix_of_width(text: str, width: int) -> str:
    """As much of its end as so many columns hold."""
    if text.isascii():
        return text[-width:] if width > 0 else ""
    taken = 0
    for position in range(len(text) - 1, -1, -1):
        taken += cell_width(text[position])
        if taken > width:
            return text[position + 1 :]
    return text


def terminal_width(stream: TextIO, otherwise: int) -> int:
    """Columns of the terminal behind a stream, or what COLUMNS says of it; `otherwise` if there is none."""
    if not stream.isatty():
        return otherwise
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    with suppress(OSError, ValueError, AttributeError):
        return os.get_terminal_size(stream.fileno()).columns or otherwise
    return otherwise


def has_colour(wanted: bool | None, *, terminal: bool) -> bool:
    """Whether escapes for colours may be written: as is wanted, or else to terminals that have them.

    https://no-color.org asks for NO_COLOR to count where it is set and not empty.
    """
    if wanted is not None:
        return wanted
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _escape_character(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _STEERING:
        return character
    return _NAMED.get(character) or character.encode("unicode_escape").decode()
