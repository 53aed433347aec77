"""The values of a block of JSON as Python's, for what Arrow's parser changes or refuses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from bamquery.errors import IngestError
from bamquery.statement_context.cancellation import check_cancelled
from bamquery.storage.ingest.json.blocks import JsonBlock

Row: TypeAlias = "dict[str, Any] | None"
"""The members of an object; None for a null in the place of one."""

_LONGEST_INTEGER: Final = 4000
"""Digits that Python makes an int of; a longer number is infinite like any other that no DOUBLE holds."""
_SPACE: Final = " \t\r\n"
_KINDS: Final = {dict: "an object", list: "an array", str: "a text", bool: "a boolean"}


class WrittenFloat(float):
    """A number with a fraction or an exponent, and how it is written."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        """Of the text."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_INTEGER else WrittenFloat(text)


class _Repeating(dict[str, Any]):
    """An object that has a member twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else _Repeating(pairs)


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=WrittenFloat, object_pairs_hook=_members)


def text_of(block: JsonBlock, path: Path) -> str:
    """The text of a block.

    Raises:
        IngestError: it is not UTF-8; names the place.
    """
    try:
        return block.data.decode()
    except UnicodeDecodeError as error:
        raise IngestError(
            f"{block.place}: is not UTF-8 text: convert it (iconv -f LATIN1 -t UTF-8)", path
        ) from error


def read_values(
    block: JsonBlock, path: Path, wanted: Container[str] | None = None
) -> Iterator[tuple[str, Row]]:
    """For each object of the block the place of it, for messages, and its members.

    Args:
        block: of the file.
        path: of the file, for messages.
        wanted: names of the members that matter; None for all.

    Raises:
        IngestError: what is there is not JSON, no object, or has a wanted member twice; names the place.
    """
    text = text_of(block, path)
    counted, position, number = 0, 0, block.first_row
    while True:
        check_cancelled()
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if block.unit == "line":
            number += text.count("\n", counted, position)
            counted = position
        if position == len(text):
            return
        place = f"{block.unit} {number}"
        value, position = _decode_value(text, position, place, block, path)
        if value is not None and not isinstance(value, dict):
            is_line = block.unit == "line" and isinstance(value, list)
            hint = "; format='array' reads a file of one array" if is_line else ""
            raise IngestError(f"{place}: is {kind_of(value)}, not an object{hint}", path)
        if isinstance(value, _Repeating):
            for name in value.repeated:
                if wanted is None or name in wanted:
                    raise IngestError(f'{place}: has member "{name}" twice', path)
        yield place, value
        number += block.unit != "line"


def _decode_value(text: str, position: int, place: str, block: JsonBlock, path: Path) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        goes_on = block.unit == "line" and (error.pos >= len(text) or "\n" in text[position : error.pos])
        hint = "; format='unstructured' reads objects over several lines" if goes_on else ""
        raise IngestError(f"{place}: is not JSON ({error.msg}){hint}", path) from error
    except RecursionError as error:
        raise IngestError(f"{place}: is nested too deeply", path) from error


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    return _KINDS.get(type(value), "a number")


def as_text(value: Any) -> str:
    """A value as text: a text itself, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, WrittenFloat) and value in (float("inf"), float("-inf")):
        return value.text
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
