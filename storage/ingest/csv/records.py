"""Records of CSV text as Python's strings: for samples and for messages.

The standard library's reader has a limit on the length of a field that holds for the whole process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache


def read_records(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """The fields of each record; a blank line has none.

    Args:
        lines: with their ends; a record may go over several. One whose quote nothing closes ends with them.
        delimiter: one character.
    """
    quoted = _quoted_field(delimiter)
    source = iter(lines)
    for line in source:
        if not line.strip("\r\n"):
            yield []
        elif '"' not in line:
            yield line.rstrip("\r\n").split(delimiter)
        else:
            yield _fields(line, source, delimiter, quoted)


def _fields(text: str, source: Iterator[str], delimiter: str, quoted: re.Pattern[str]) -> list[str]:
    """The fields of the record that `text` begins, with more lines from `source` where it goes on."""
    fields: list[str] = []
    position = 0
    while True:
        if text.startswith('"', position):
            found = quoted.match(text, position)
            if found is None:  # the quote is not closed on the lines so far
                pieces = [text]
                for line in source:
                    pieces.append(line)
                    if '"' in line:
                        break
                else:
                    rest = "".join(pieces)[position + 1 :]
                    return [*fields, rest.replace('""', '"')]
                text = "".join(pieces)
                continue
            value = found[1].replace('""', '"') + found[2]
            end = found.end()
        else:
            end = text.find(delimiter, position)
            if end < 0:
                end = len(text.rstrip("\r\n"))
            value = text[position:end]
        fields.append(value)
        if not text.startswith(delimiter, end):
            return fields
        position = end + len(delimiter)


@cache
def _quoted_field(delimiter: str) -> re.Pattern[str]:
    """A field in quotes, and what is behind the closing one."""
    return re.compile(rf'"((?:[^"]|"")*+)"([^{re.escape(delimiter)}\r\n]*+)')
