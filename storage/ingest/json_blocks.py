"""JSON files cut into blocks of whole objects, one an element of an array or one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv_blocks import TextFile

_BLOCK_BYTES: Final = 4 << 20
_LONGEST_OBJECT: Final = 256 << 20
_SPACE: Final = b" \t\r\n"
_SPACE_TEXT: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """Objects, each on lines of its own."""

    data: bytes
    place: str
    """Where in the file they are, for messages."""
    first_row: int
    """Number of the first one in the file, from 1."""


def is_array(path: Path, layout: str) -> bool:
    """Whether the file is one array, and not a line for each object; `layout` as in `FileOptions`."""
    if layout != "auto":
        return layout == "array"
    with TextFile(path) as file:
        while data := file.read(_BLOCK_BYTES):
            start = data.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
            if start:
                return start.startswith(b"[")
    return False


def read_json_blocks(path: Path, *, array: bool) -> Iterator[JsonBlock]:
    """The file's objects in order.

    Raises:
        IngestError: it is not JSON of that layout; names the place. An object is too large.
    """
    return _array_blocks(path) if array else _line_blocks(path)


def _line_blocks(path: Path) -> Iterator[JsonBlock]:
    line, rest = 1, b""
    with TextFile(path) as file:
        while data := file.read(_BLOCK_BYTES):
            if line == 1 and not rest:
                data = data.removeprefix(b"\xef\xbb\xbf")
            data = rest + data
            end = data.rfind(b"\n") + 1
            if not end and len(data) > _LONGEST_OBJECT:
                raise IngestError(f"line {line}: is longer than {_LONGEST_OBJECT >> 20} MiB", path)
            whole, rest = data[:end], data[end:]
            lines = whole.count(b"\n")
            if whole.strip(_SPACE):
                yield JsonBlock(whole, f"lines {line} to {line + lines - 1}", line)
            line += lines
    if rest.strip(_SPACE):
        yield JsonBlock(rest, f"line {line}", line)


def _array_blocks(path: Path) -> Iterator[JsonBlock]:
    decoder = json.JSONDecoder()
    text, position, row = "", 0, 1
    objects: list[str] = []
    size = 0
    state = "before"
    for chunk in _characters(path):
        text, position = text[position:] + chunk, 0
        while True:
            position = _after_space(text, position)
            if position == len(text):
                break
            if state == "before" or text[position] in ",]":
                state = _step(state, text[position], path, row + len(objects))
                position += 1
                continue
            if state in ("after", "end"):
                raise _broken(path, row + len(objects))
            try:
                _, end = decoder.raw_decode(text, position)
            except ValueError:
                break  # the rest may be in the next chunk
            if end == len(text) and text[end - 1] not in '}]"':
                break  # a number may go on
            objects.append(text[position:end])
            size += end - position
            position, state = end, "after"
            if size >= _BLOCK_BYTES:
                yield _block(objects, row)
                row, objects, size = row + len(objects), [], 0
        if len(text) - position > _LONGEST_OBJECT:
            raise _broken(path, row + len(objects))
    if state != "end" or text[position:].strip(_SPACE_TEXT):
        raise _broken(path, row + len(objects))
    if objects:
        yield _block(objects, row)


def _step(state: str, character: str, path: Path, row: int) -> str:
    """What is expected behind a bracket or comma."""
    following = {
        ("before", "["): "first",
        ("first", "]"): "end",
        ("after", ","): "object",
        ("after", "]"): "end",
    }.get((state, character))
    if following is None:
        raise _broken(path, row)
    return following


def _broken(path: Path, row: int) -> IngestError:
    return IngestError(f"object {row}: is not JSON, or the array is not closed", path)


def _block(objects: list[str], row: int) -> JsonBlock:
    data = "\n".join(objects).encode()
    return JsonBlock(data, f"objects {row} to {row + len(objects) - 1}", row)


def _characters(path: Path) -> Iterator[str]:
    """The file's text in pieces that cut no character."""
    rest = b""
    with TextFile(path) as file:
        first = True
        while data := file.read(_BLOCK_BYTES):
            data = rest + (data.removeprefix(b"\xef\xbb\xbf") if first else data)
            first = False
            end = len(data)
            while end and data[end - 1] & 0xC0 == 0x80 and len(data) - end < 3:
                end -= 1
            if end and data[end - 1] >= 0xC0:
                end -= 1
            else:
                end = len(data)
            rest = data[end:]
            yield _decoded(data[:end], path)
    if rest:
        yield _decoded(rest, path)


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise IngestError("is not UTF-8 text: convert it (iconv -f LATIN1 -t UTF-8)", path) from error


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE_TEXT:
        position += 1
    return position
