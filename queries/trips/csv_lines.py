"""One line of a TLC CSV file at a time: the slow, exact way, for blocks that the fast parser cannot take."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SetAside:
    """A line that is not a record: its number in the file (1 is the header), why, and the line."""

    line: int
    reason: str
    text: str


@dataclass
class Sifted:
    """What a block of lines holds.

    Attributes:
        data: the records, each with exactly the expected number of fields, as CSV lines.
        lines: the line number of each record.
        set_aside: lines that are not records.
    """

    data: bytes = b""
    lines: list[int] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)


def sift(numbered: Iterable[tuple[int, bytes]], delimiter: str, fields: int, width: int) -> Sifted:
    """Sort lines into records and others; blank lines are neither.

    Args:
        numbered: line numbers and lines without their line feed.
        delimiter: what separates fields.
        fields: how many fields a record has.
        width: how many fields each line of `data` gets: `fields`, and empty ones up to it.
    """
    sifted = Sifted()
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    for number, raw in numbered:
        line = raw.rstrip(b"\r")
        if not line.strip():
            continue
        try:
            values = _split_fields(line, delimiter, fields)
        except ValueError as error:
            sifted.set_aside.append(SetAside(number, str(error), line.decode(errors="backslashreplace")))
            continue
        sifted.lines.append(number)
        writer.writerow(values + [""] * (width - fields))
    sifted.data = out.getvalue().encode()
    return sifted


def _split_fields(line: bytes, delimiter: str, fields: int) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    if "\r" in text:
        raise ValueError("a carriage return inside the line")
    if '"' in text:
        try:
            values = next(csv.reader([text], delimiter=delimiter, strict=True))
        except csv.Error:
            raise ValueError("a quote that does not close") from None
    else:
        values = text.split(delimiter)
    if len(values) < fields:
        raise ValueError(f"only {len(values)} of the {fields} fields that the header names")
    for place, value in enumerate(values[fields:], fields + 1):
        if value.strip():
            raise ValueError(f"field {place} holds {value!r}, the header names only {fields}")
    return values[:fields]
