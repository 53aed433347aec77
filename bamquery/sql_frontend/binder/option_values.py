"""Values of options in a statement: words, numbers, lists, formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from sqlglot import exp

from bamquery.sql_frontend.syntax.ast_nodes import Plus
from bamquery.text.identifiers import fold_case

if TYPE_CHECKING:
    from bamquery.storage.ingest.text.date_formats import DateFormat

_HIGHEST_COUNT: Final = (1 << 63) - 1
_FEW_DIGITS: Final = 19
"""Those of the highest count: int() refuses strings of very many."""


def boolean(value: exp.Expr | None) -> bool:
    """TRUE, FALSE, their strings, 1 or 0; an option alone is TRUE."""
    value = unwrap(value)
    if value is None:
        return True
    if isinstance(value, exp.Boolean):
        return bool(value.this)
    text = _word(value, "TRUE or FALSE").lower()
    if text in ("true", "1", "on"):
        return True
    if text in ("false", "0", "off"):
        return False
    raise ValueError("it takes TRUE or FALSE")


def string_value(value: exp.Expr | None, takes: str = "a text") -> str:
    """A string, or a word without quotes; `takes` says in the error what there has to be."""
    return _word(unwrap(value), takes)


def character(value: exp.Expr | None) -> str:
    """A single character that ends no line; a backslash and t are a tab."""
    found = string_value(value, "one ASCII character").replace("\\t", "\t")
    if len(found) != 1 or not found.isascii():
        raise ValueError("it takes one ASCII character")
    if found in "\n\r\0":
        raise ValueError(f"it takes one ASCII character, but not {found!r}: no reader could read the file")
    return found


def count(value: exp.Expr | None) -> int:
    """A whole number that is not below zero."""
    found = integer(value, "a whole number not below zero")
    if found < 0:
        raise ValueError("it takes a whole number not below zero")
    return found


def integer(value: exp.Expr | None, takes: str = "a whole number") -> int:
    """A whole number of 64 bits; `takes` as in `string_value`."""
    found = string_value(value, takes)
    digits = found.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError(f"it takes {takes}")
    if len(digits) > _FEW_DIGITS or int(digits) > _HIGHEST_COUNT:
        raise ValueError(f"it takes {takes}, of 64 bits")
    return int(found)


def string_values(value: exp.Expr | None, takes: str = "a string or a list of strings") -> tuple[str, ...]:
    """A string or a list of them; `takes` as in `string_value`."""
    value = unwrap(value)
    if isinstance(value, (exp.Array, exp.Tuple)):
        return tuple(string_value(one, takes) for one in value.expressions)
    return (string_value(value, takes),)


def word_reader(*choices: str) -> Callable[[exp.Expr | None], str]:
    """What reads one of these words, in any case."""
    takes = f"one of {', '.join(choices)}"

    def read_word(value: exp.Expr | None) -> str:
        word = string_value(value, takes).lower()
        if word not in choices:
            raise ValueError(f"it takes {takes}")
        return word

    return read_word


def _word(value: exp.Expr | None, takes: str) -> str:
    if isinstance(value, Plus):
        value = value.this
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    if isinstance(value, exp.Literal):
        # 'x' and x, '1' and 1 are the same to an option.
        return str(value.this) if value.args["is_string"] else value.name
    if isinstance(value, (exp.Var, exp.Column, exp.Identifier, exp.Boolean)):
        return str(value.name)
    raise ValueError(f"it takes {takes}")


def unwrap(value: exp.Expr | None) -> exp.Expr | None:
    """A value without parentheses around it."""
    return value.unnest() if isinstance(value, exp.Paren) else value


def date_format(kind: Literal["date", "timestamp"]) -> Callable[[exp.Expr | None], DateFormat | None]:
    """What reads a format of strptime; 'auto' is none."""

    def read_format(value: exp.Expr | None) -> DateFormat | None:
        # Few statements have such an option, and what formats need is slow to import.
        from bamquery.storage.ingest.text.date_formats import format_of  # noqa: PLC0415

        pattern = _string(value, "a format such as '%d/%m/%Y'")
        return None if fold_case(pattern) == "auto" else format_of(pattern, kind)

    return read_format


def sample_size(value: exp.Expr | None) -> int:
    """A number of rows, or -1 for all: types are found in all rows, whatever it is."""
    rows = integer(value)
    if rows < 1 and rows != -1:
        raise ValueError("it takes a number of rows, or -1 for all")
    return rows


def null_strings(value: exp.Expr | None) -> tuple[str, ...]:
    """One string or several."""
    takes = "a string or a list of strings"
    value = unwrap(value)
    if not isinstance(value, (exp.Array, exp.Tuple)):
        return (_string(value, takes),)
    if not value.expressions:
        raise ValueError(f"it takes {takes}, and no empty list")
    return tuple(_string(one, takes) for one in value.expressions)


def column_names(value: exp.Expr | None) -> tuple[str, ...]:
    """Names of columns, each other than the ones before."""
    names = string_values(value)
    if not all(name.strip() for name in names):
        raise ValueError("a name cannot be empty, or nothing but blanks")
    for name, times in Counter(map(fold_case, names)).items():
        if times > 1:
            raise ValueError(f'"{name}" is given {times} times')
    return names


def _string(value: exp.Expr | None, takes: str) -> str:
    """A string or a word: a number is none."""
    value = unwrap(value)
    if isinstance(value, exp.Literal) and not value.args["is_string"]:
        raise ValueError(f"it takes {takes}")
    return string_value(value, takes)
