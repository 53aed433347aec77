"""What stands behind `%%bamquery`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bamquery.errors import BamQueryError
from bamquery.text.identifiers import suggestion

_OPTION: Final = re.compile(
    r"\s*(?P<flag>--?[A-Za-z][\w-]*)(?:(?:\s+|=)(?P<value>\"[^\"]*\"|'[^']*'|[^\s-]\S*))?"
)
_LONG: Final[Mapping[str, str]] = {"-c": "--connection", "-o": "--output"}
_KNOWN: Final = ("--connection", "--output")


@dataclass(frozen=True)
class CellOptions:
    """Options and SQL of a cell.

    Attributes:
        connection: a variable's name or a path; None: the one used before.
        output: the variable that gets the relation; None: it is shown.
        sql: what is left.
    """

    connection: str | None
    output: str | None
    sql: str


def parse_options(line: str, cell: str | None) -> CellOptions:
    """Of the line behind the magic's name, and of the lines below it.

    Raises:
        BamQueryError: an option that there is not, or without its value; a name that is none.
    """
    found: dict[str, str] = {}
    rest = line
    while (match := _OPTION.match(rest)) is not None:
        flag = _LONG.get(match["flag"], match["flag"])
        if flag not in _KNOWN:
            raise BamQueryError(
                f"%%bamquery has no option {flag}.{suggestion(flag, _KNOWN)} "
                "Options: -c/--connection NAME or PATH, -o/--output NAME"
            )
        if match["value"] is None:
            raise BamQueryError(f"{flag} needs a value: {flag} NAME")
        found[flag] = match["value"].strip("\"'")
        rest = rest[match.end() :]
    output = found.get("--output")
    if output is not None and not output.isidentifier():
        raise BamQueryError(f"--output takes the name of a variable, not {output!r}")
    sql = rest.strip() if cell is None else f"{rest}\n{cell}" if rest.strip() else cell
    return CellOptions(found.get("--connection"), output, sql)
