"""SQL as it comes in: text that UTF-8 can hold, without the mark that some editors begin files with."""

from __future__ import annotations

from typing import Any, Final

from bamquery.errors import Reason, SqlError
from bamquery.sql_frontend.syntax.positions import line_and_column

_MARK: Final = "\ufeff"


def sql_text(what: Any, argument: str) -> str:
    """The text to parse.

    Args:
        what: passed by a user.
        argument: its name, for messages.

    Raises:
        TypeError: it is no string.
        SqlError: it has half a character, as Python reads bytes that are not UTF-8.
    """
    if not isinstance(what, str):
        raise TypeError(f"{argument} is SQL in a str, not {type(what).__name__}")
    text = what.removeprefix(_MARK) if what.startswith(_MARK) else what  # which may know what it is called
    half = first_half(text)
    if half is not None:
        place = line_and_column(text, half)
        shown = text.encode(errors="replace").decode()
        raise SqlError(Reason(f"the text is not UTF-8: {_name_character(text[half])}", *place), shown)
    return text


def require_whole(value: str) -> None:
    """Refuse a string that no UTF-8 can be made of.

    Raises:
        ValueError: it has half a character.
    """
    half = first_half(value)
    if half is not None:
        raise ValueError(f"a parameter's text is not Unicode: {_name_character(value[half])} at {half}")


def first_half(text: str) -> int | None:
    """Where the first half of a character is that has no other half; None in whole text."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _name_character(half: str) -> str:
    code = ord(half)
    # Python's way to keep a byte that it cannot decode: in arguments and file names, for one.
    return f"it has the byte {code - 0xDC00:#04x}" if 0xDC80 <= code <= 0xDCFF else f"it has U+{code:04X}"
