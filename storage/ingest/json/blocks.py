"""JSON files cut into blocks of whole objects: one a line, the elements of an array, or one after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from bamquery.errors import IngestError
from bamquery.storage.ingest.csv.blocks import TextFile

Layout: TypeAlias = Literal["lines", "array", "objects"]
"""An object a line; one array of them; objects one after another that may go over several lines."""

_BLOCK_BYTES: Final = 4 << 20
_LONGEST_OBJECT: Final = 256 << 20
_SPACE: Final = b" \t\r\n"
_SPACE_TEXT: Final = " \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_LONGEST_TOKEN: Final = 64
"""Characters; what is this far in front of the end and no JSON does not become JSON by what comes next."""
_SCANNER: Final = json.JSONDecoder(parse_int=float)  # an int refuses numbers of very many digits


@dataclass(frozen=True, slots=True)
class JsonBlock:
    """Some whole objects."""

    data: bytes
    place: str
    """Where in the file they are, for messages."""
    first_row: int
    """Number of the first line or object in the file, from 1."""
    unit: Literal["line", "object"]
    """What `first_row` counts; an object in a block of lines is on one line."""


def find_layout(path: Path, said: str) -> Layout:
    """How the file is laid out; `said` as in `FileOptions.layout`."""
    match said:
        case "lines" | "array" | "objects":
            return said
    with TextFile(path) as file:
        while data := file.read(_BLOCK_BYTES):
            start = data.removeprefix(_BOM).lstrip(_SPACE)
            if start.startswith(b"["):
                return "array"
            if start:
                return "objects" if _goes_on(start) else "lines"
    return "lines"


def read_json_blocks(path: Path, layout: Layout) -> Iterator[JsonBlock]:
    """The file's objects in order.

    Raises:
        IngestError: it is not JSON of that layout; names the place. An object is too large.
    """
    return _line_blocks(path) if layout == "lines" else _object_blocks(path, array=layout == "array")


def _goes_on(start: bytes) -> bool:
    """Whether an object begins on the first line that does not end there."""
    line, end, _ = start.partition(b"\n")
    if not end or not line.startswith(b"{"):
        return False
    text = line.decode(errors="replace").rstrip()
    try:
        _SCANNER.raw_decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except RecursionError:
        pass
    return False


def _line_blocks(path: Path) -> Iterator[JsonBlock]:
    line = 1
    pieces: list[bytes] = []  # of a line that goes on
    with TextFile(path) as file:
        while data := file.read(_BLOCK_BYTES):
            if line == 1 and not pieces:
                data = data.removeprefix(_BOM)
            end = data.rfind(b"\n") + 1
            if not end:
                pieces.append(data)
                if sum(map(len, pieces)) > _LONGEST_OBJECT:
                    raise IngestError(f"line {line}: is longer than {_LONGEST_OBJECT >> 20} MiB", path)
                continue
            whole = b"".join([*pieces, data[:end]])
            pieces = [data[end:]]
            lines = whole.count(b"\n")
            if whole.strip(_SPACE):
                yield JsonBlock(whole, f"lines {line} to {line + lines - 1}", line, "line")
            line += lines
    rest = b"".join(pieces)
    if rest.strip(_SPACE):
        yield JsonBlock(rest, f"line {line}", line, "line")


def _object_blocks(path: Path, *, array: bool) -> Iterator[JsonBlock]:
    text, position, row = "", 0, 1
    objects: list[str] = []
    size = 0
    state = "before" if array else "object"
    characters = _characters(path)
    while pieces := _next_pieces(characters, len(text) - position):
        text, position = "".join([text[position:], *pieces]), 0
        while True:
            position = _skip_space(text, position)
            if position == len(text):
                break
            if array and (state == "before" or text[position] in ",]"):
                state = _step(state, text[position], path, row + len(objects))
                position += 1
                continue
            if state in ("after", "end"):
                raise _unreadable_object(path, row + len(objects))
            end = _value_end(text, position, path, row + len(objects))
            if end is None or (end == len(text) and text[end - 1] not in '}]"'):
                break  # it may go on in the next chunk
            objects.append(text[position:end])
            size += end - position
            position, state = end, "after" if array else "object"
            if size >= _BLOCK_BYTES:
                yield _block(objects, row)
                row, objects, size = row + len(objects), [], 0
        if len(text) - position > _LONGEST_OBJECT:
            raise _unreadable_object(path, row + len(objects))
    if not array and position < len(text):
        # Numbers and words may end with the file.
        objects.append(text[position:])
    elif array and (state != "end" or text[position:].strip(_SPACE_TEXT)):
        raise _unreadable_object(path, row + len(objects))
    if objects:
        yield _block(objects, row)


def _next_pieces(characters: Iterator[str], pending: int) -> list[str]:
    """The next pieces, as long as what is pending: a long value is looked at a few times only."""
    pieces = []
    for piece in characters:
        pieces.append(piece)
        pending -= len(piece)
        if pending <= 0:
            break
    return pieces


def _value_end(text: str, position: int, path: Path, row: int) -> int | None:
    """The offset behind the value at `position`, None if it may end in text to come."""
    try:
        return _SCANNER.raw_decode(text, position)[1]
    except RecursionError as error:
        raise IngestError(f"object {row}: is nested too deeply", path) from error
    except json.JSONDecodeError as error:
        if len(text) - error.pos > _LONGEST_TOKEN and not error.msg.startswith("Unterminated string"):
            raise IngestError(f"object {row}: is not JSON ({error.msg})", path) from error
        return None


def _step(state: str, character: str, path: Path, row: int) -> str:
    """What is expected behind a bracket or comma."""
    following = {
        ("before", "["): "first",
        ("first", "]"): "end",
        ("after", ","): "object",
        ("after", "]"): "end",
    }.get((state, character))
    if following is None:
        raise _unreadable_object(path, row)
    return following


def _unreadable_object(path: Path, row: int) -> IngestError:
    return IngestError(f"object {row}: is not JSON, or the array is not closed", path)


def _block(objects: list[str], row: int) -> JsonBlock:
    data = "\n".join(objects).encode()
    return JsonBlock(data, f"objects {row} to {row + len(objects) - 1}", row, "object")


def _characters(path: Path) -> Iterator[str]:
    """The file's text in pieces that cut no character."""
    rest = b""
    with TextFile(path) as file:
        first = True
        while data := file.read(_BLOCK_BYTES):
            data = rest + (data.removeprefix(_BOM) if first else data)
            first = False
            end = len(data)
            while end and data[end - 1] & 0xC0 == 0x80 and len(data) - end < 3:
                end -= 1
            if end and data[end - 1] >= 0xC0:
                end -= 1
            else:
                end = len(data)
            rest = data[end:]
            yield _decode(data[:end], path)
    if rest:
        yield _decode(rest, path)


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise IngestError("is not UTF-8 text: convert it (iconv -f LATIN1 -t UTF-8)", path) from error


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE_TEXT:
        position += 1
    return position
