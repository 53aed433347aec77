"""The vectors file: one row a vector, one struct a column, and the layout of the file it describes.

It is an Arrow file of one record batch. What stands before and behind the batch's buffers, its *head* and
*tail*, is read when a fragment is opened; the buffers are read column by column, in two *sections* each:
statistics of vectors, and those of their parts. The head has each section's checksum, the manifest that of
head and tail.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.format.layout import FragmentLayout
from bamquery.storage.statistics.parts import is_of_parts

FORMAT: Final = b"6"
KNOWN_FORMATS: Final = (b"3", b"4", b"5", FORMAT)
"""Of which the first has no encoded columns, the second no compressed strings, the third no short escapes."""
FORMAT_KEY: Final = b"bamquery.vectors"
LAYOUT_KEY: Final = b"bamquery.layout"
SCHEMA_KEY: Final = b"bamquery.schema"
SECTIONS_KEY: Final = b"bamquery.sections"
PACKING: Final = "packing"
"""The member of a packed column's struct that has each vector's decode parameters."""
_SECTION_DIGITS: Final = 12, 10
"""Of a section's length and of its checksum: their text is as long before they are known."""


@dataclass(frozen=True, slots=True)
class VectorsFile:
    """The file's bytes, ready to be written, and what the manifest has of them.

    Attributes:
        data: the whole file.
        head: bytes before the first buffer.
        tail: bytes behind the last one.
        crc: CRC-32C of head and tail.
    """

    data: pa.Buffer
    head: int
    tail: int
    crc: int

    @property
    def entry_members(self) -> dict[str, int]:
        """The members of a `FragmentEntry` that are about it."""
        return {
            "vectors_bytes": self.data.size,
            "vectors_head": self.head,
            "vectors_tail": self.tail,
            "vectors_crc": self.crc,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """Some bytes of the file.

    Attributes:
        begin: of its first byte.
        end: of the first byte behind it.
    """

    begin: int
    end: int


def vectors_file(schema: pa.Schema, layout: FragmentLayout, statistics: list[pa.StructArray]) -> VectorsFile:
    """The file of a fragment."""
    metadata: dict[bytes | str, bytes | str] = {
        FORMAT_KEY: FORMAT,
        LAYOUT_KEY: layout.to_json().encode(),
        SCHEMA_KEY: base64.b64encode(schema.serialize()),
    }
    fields = [pa.field(f.name, s.type) for f, s in zip(schema, statistics, strict=True)]
    unknown = sections_text([Section(0, 0)] * 2 * len(fields), [0] * 2 * len(fields))
    data = _write_file(statistics, pa.schema(fields, {**metadata, SECTIONS_KEY: unknown}))
    found = sections(data)
    if not found:  # no buffers at all, in which case nothing is large
        empty = pa.schema(fields, {**metadata, SECTIONS_KEY: sections_text([], [])})
        return describe_vectors_file(_write_file(statistics, empty))
    # The checksums of buffers are in the schema, which stands before them and, once more, behind them.
    contents = view(data)
    crcs = [_native.crc32c(contents[section.begin : section.end]) for section in found]
    for place in _places(data, unknown, found):
        contents[place : place + len(unknown)] = sections_text(found, crcs)
    return describe_vectors_file(data)


def _write_file(statistics: list[pa.StructArray], schema: pa.Schema) -> pa.Buffer:
    batch = pa.RecordBatch.from_arrays(statistics, schema=schema)
    size = pa.MockOutputStream()
    _write_batch(size, batch)
    data = pa.allocate_buffer(size.size())
    _write_batch(pa.FixedSizeBufferWriter(data), batch)
    return data


def _write_batch(sink: Any, batch: pa.RecordBatch) -> None:
    with sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _places(data: pa.Buffer, text: bytes, found: Sequence[Section]) -> list[int]:
    """Where the text stands before the first section, and where it stands behind the last one."""
    contents = view(data)
    begin, end = found[0].begin, found[-1].end
    return [bytes(contents[:begin]).index(text), end + bytes(contents[end:]).index(text)]


def describe_vectors_file(data: pa.Buffer) -> VectorsFile:
    """A whole vectors file and what the manifest has of it."""
    found = sections(data)
    head = found[0].begin if found else data.size
    tail = data.size - found[-1].end if found else 0
    contents = view(data)
    crc = _native.crc32c(contents[data.size - tail :], _native.crc32c(contents[:head]))
    return VectorsFile(data, head, tail, crc)


def sections(data: Any) -> list[Section]:
    """Where the sections of a file are: for each column, of its vectors and of their parts, end to end.

    Of a file's buffers only the places are looked at.

    Raises:
        ValueError, TypeError: buffers of one section are in another one, or not as `column_members` says.
    """
    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        return batch_sections(reader.get_batch(0), pa.py_buffer(data).address)


def batch_sections(batch: pa.RecordBatch, address: int) -> list[Section]:
    """The same of the file's batch, where the file is at that address."""
    extents = [
        extent
        for column in batch.columns
        for extent in column_extents(column, column_members(column), address)
    ]
    known = [extent for extent in extents if extent is not None]
    if not known:
        return []
    found: list[Section] = []
    end = max(extent.end for extent in known)
    # From the last on: a section goes on until the next one begins, and is empty where it has no buffers.
    for extent in reversed(extents):
        begin = end if extent is None else extent.begin
        if begin > end or (extent is not None and extent.end > end):
            raise ValueError("its buffers are not in the order of its columns")
        found.append(Section(begin, end))
        end = begin
    return found[::-1]


def stored_sections(text: bytes, columns: int, body: Section) -> tuple[list[int], list[int]]:
    """What `sections_text` made, of a file with so many columns: sections that fill `body`, and checksums.

    Returns where the first section begins and where each ends; with no section, nothing is in `body`.

    Raises:
        ValueError, TypeError: it cannot be.
    """
    pairs = json.loads(text)
    lengths = [length for length, _ in pairs]
    known = set(map(type, lengths)) <= {int} and min(lengths, default=0) >= 0
    if not known or len(pairs) not in (0, 2 * columns) or sum(lengths) != body.end - body.begin:
        raise ValueError("its sections are not what is between head and tail")
    return list(accumulate(lengths, initial=body.begin)), [crc for _, crc in pairs]


def sections_text(found: Sequence[Section], crcs: Sequence[int]) -> bytes:
    """Lengths and checksums, as the file's metadata has them: JSON of a length that is known before."""
    lengths = [section.end - section.begin for section in found]
    length_digits, crc_digits = _SECTION_DIGITS
    pairs = (
        f"[{length:{length_digits}d},{crc:{crc_digits}d}]" for length, crc in zip(lengths, crcs, strict=True)
    )
    return f"[{','.join(pairs)}]".encode()


def column_members(column: Any) -> dict[str, Any]:
    """The members of a column of the file by their names, compared with its length.

    Raises:
        pyarrow.ArrowInvalid: they are not as long as they should be; first and last offsets of texts are
            looked at, too.
        ValueError, TypeError: two have one name, or it has none.
    """
    column.validate()  # before members are taken: Arrow ends the process where a length cannot be
    members = {child.name: column.field(index) for index, child in enumerate(column.type)}
    if len(members) != column.type.num_fields:
        raise ValueError("two members have one name")
    return members


def column_extents(
    column: Any, members: Mapping[str, Any], address: int
) -> tuple[Section | None, Section | None]:
    """Where buffers of a column's vectors are, and those of their parts; None: there are none.

    `members` are its `column_members`.
    """
    own: list[pa.Buffer | None] = [column.buffers()[0]]
    parts: list[pa.Buffer | None] = []
    for name, member in members.items():
        (parts if is_of_parts(name) else own).extend(member.buffers())
    return _extent(own, address), _extent(parts, address)


def _extent(buffers: Sequence[pa.Buffer | None], address: int) -> Section | None:
    places = [(buffer.address, buffer.size) for buffer in buffers if buffer is not None]
    known = [(begin - address, begin - address + size) for begin, size in places if size]
    if not known:
        return None
    return Section(min(begin for begin, _ in known), max(end for _, end in known))
