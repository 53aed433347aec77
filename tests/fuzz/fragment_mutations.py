"""Opens, reads and checks fragments whose files were mutated; run as a script: folder, kind, seed, count.

Kinds are `vectors` and `data`, the two files of a fragment of plain columns; `packed vectors` and
`packed data`, the same of one with packed columns; and of that one `parameters`, by which its vectors are
decoded, and `values`, payloads and dictionaries.

A crash of the process is for the parent to see; it finds the seed in what was printed last.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from bamquery._native import crc32c
from bamquery.errors import BamQueryError
from bamquery.storage.encodings.fsst.column import FsstColumn
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import Encoding
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.predicate import RangePredicate
from bamquery.storage.statistics.vector_statistics import VectorStatistics
from bamquery.storage.tables.open_fragment import open_fragment

ROWS = 3000


def rows() -> pa.RecordBatch:
    """A few columns of each layout."""
    rng = np.random.default_rng(0)
    texts = [None if i % 13 == 0 else f"text {i}" for i in range(ROWS)]
    columns = {
        "id": pa.array(np.arange(ROWS)),
        "real": pa.array(rng.normal(size=ROWS), mask=rng.random(ROWS) < 0.1),
        "text": pa.array(texts, pa.large_string()),
        "flag": pa.array(rng.random(ROWS) < 0.5),
        "code": pa.array([f"c{i % 50}" for i in range(ROWS)], pa.large_string()).dictionary_encode(),
        "price": pa.array(np.arange(ROWS)).cast(pa.decimal128(21, 2)),
        "fare": pa.array(rng.integers(0, 5000, ROWS) / 100, mask=rng.random(ROWS) < 0.1),
        "cents": pa.array((np.arange(ROWS) % 700).astype(np.int16)).cast(pa.decimal128(9, 2)),
        "word": pa.array([f"w{i % 9}" for i in range(ROWS)], pa.large_string()),
        "note": pa.array(
            [None if i % 7 == 0 else f"{i} is as {i % 97} was" for i in range(ROWS)], pa.large_string()
        ),
        "odd": pa.array(np.where(rng.random(ROWS) < 0.01, 1e300, rng.integers(0, 90, ROWS) / 10)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def mutate(data: bytes, luck: random.Random) -> bytes:
    """A few random edits."""
    changed = bytearray(data)
    for _ in range(luck.randint(1, 5)):
        at = luck.randrange(len(changed))
        match luck.randrange(7):
            case 0 | 1 | 2:
                changed[at] = luck.choice([0, 1, 0x7F, 0x80, 0xFF, luck.randrange(256), changed[at] ^ 1])
            case 3:
                changed[at : at + 8] = luck.choice([-1, 0, 1 << 62, ROWS, 1 << 31]).to_bytes(
                    8, "little", signed=True
                )
            case 4:
                start = luck.randrange(len(changed))
                size = luck.choice([4, 8, 64])
                changed[at : at + size] = changed[start : start + size]
            case 5:
                changed[at : at + luck.randint(1, 64)] = b""
            case 6:
                changed[at : at + 1] = luck.choice([b"0", b"9", b"-", b"[", b"null", b'"', b","])
    return bytes(changed) if changed else b"\0"


def sealed(entry: FragmentEntry, data: bytes) -> FragmentEntry:
    """The entry with right sizes and checksum of a changed vectors file; its buffers' are for the caller."""
    size = len(data)
    head, tail = min(entry.vectors_head, size), max(min(entry.vectors_tail, size - entry.vectors_head), 0)
    crc = crc32c(data[size - tail :], crc32c(data[:head]))
    return dataclasses.replace(
        entry, vectors_bytes=size, vectors_head=head, vectors_tail=tail, vectors_crc=crc
    )


def attempt(work: Callable[..., object], *arguments: object) -> None:
    """Errors that users are told about are fine; anything else ends the process."""
    with suppress(BamQueryError):
        result = work(*arguments)
        if isinstance(result, pa.Array):
            consume(result)


def exercise(folder: Path, entry: FragmentEntry, schema: pa.Schema) -> None:
    """Everything that queries and `check` do with a fragment."""
    fragment = Fragment.open(folder, entry, schema)
    attempt(fragment.check)
    vectors, rows = np.arange(fragment.vector_count), np.arange(0, fragment.rows, 7)
    reader = MappedReader(fragment.path, fragment.data_bytes)
    for verify in (True, False):
        columns = FragmentReader(fragment, reader, verify)
        for name in schema.names:
            attempt(columns.stream, name, vectors, ReadCounters())
            attempt(columns.fetch_vectors, name, rows, ReadCounters())
            attempt(columns.fetch_blocks, name, rows, ReadCounters())
            attempt(fragment.zone_map.column_statistics, name)
    number, text = pa.scalar(1500, pa.int64()), pa.scalar("text 5", pa.large_string())
    attempt(fragment.zone_map.surviving_vectors, [RangePredicate("id", "=", (number,))])
    attempt(fragment.zone_map.surviving_vectors, [RangePredicate("text", ">", (text,))])
    reader.close()
    attempt(open_all, fragment.path)


def open_all(path: Path) -> None:
    """As a program does that has only the files."""
    for batch in open_fragment(path):
        for column in batch.columns:
            consume(column)


def consume(array: pa.Array) -> None:
    """Touch every value, as kernels do; nothing may lie outside the array's buffers.

    What is read without its checksum, or with a forged one, may hold other values than were written, text
    that is not UTF-8 among them, and other nulls than were counted.
    """
    if pa.types.is_dictionary(array.type):
        array.dictionary.validate(full=True)
        array = array.dictionary_decode()
    if pa.types.is_large_string(array.type):
        array = array.view(pa.large_binary())
        array = pa.Array.from_buffers(array.type, len(array), array.buffers(), offset=array.offset)
        array.validate(full=True)
    array.validate()
    array.take(pa.array(np.arange(len(array))[::-1].copy()))


def mutable(fragment: Fragment, kind: str) -> list[tuple[int, int]]:
    """Where bytes of that kind are in their file: (begin, end)."""
    columns = fragment.layout.columns
    if kind == "values":
        extents = [extent for column in columns if column.encoding for extent in column.buffers]
        return [(extent.offset, extent.end) for extent in extents if extent.length]
    assert kind == "parameters"
    data = fragment.path.with_name(fragment.entry.vectors_name).read_bytes()
    found = []
    for name, column in zip(fragment.schema.names, columns, strict=True):
        stored = fragment.column(name)
        if isinstance(stored, (PackedColumn, FsstColumn)):
            assert column.encoding is not None
            parameters = stored.parameters.tobytes()
            begin = data.index(parameters)
            found.append((begin, begin + len(parameters)))
    return found


def mutate_within(data: bytes, places: list[tuple[int, int]], luck: random.Random) -> bytes:
    """The same bytes, but for a few there: fields of parameters, codes, escapes, offsets, indexes."""
    changed = bytearray(data)
    for _ in range(luck.randint(1, 3)):
        begin, end = luck.choice(places)
        at = luck.randrange(begin, end)
        match luck.randrange(4):
            case 0 | 1:
                changed[at] ^= 1 << luck.randrange(8)
            case 2:
                changed[at] = luck.choice([0, 1, 0x3F, 0x40, 0x7F, 0x80, 0xFF])
            case 3:
                word = luck.choice([-1, 0, 1 << 62, 1 << 31, -(1 << 63), (1 << 63) - 1])
                size = min(8, end - at)
                changed[at : at + size] = word.to_bytes(8, "little", signed=True)[:size]
    return bytes(changed)


def main() -> None:
    """Mutate one of the two files, again and again."""
    base, kind, seed, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    batch = rows()
    encoding: Encoding = "plain" if kind in ("vectors", "data") else "auto"
    entry = write_fragment(POSIX, base, "f", batch.schema, BatchRows([batch]), encoding=encoding)
    exercise(base, entry, batch.schema)
    fragment = Fragment.open(base, entry, batch.schema)
    assert fragment.layout.is_encoded == (encoding == "auto")
    places = mutable(fragment, kind) if kind in ("parameters", "values") else []
    of_vectors = kind in ("vectors", "packed vectors", "parameters")
    path = base / (entry.vectors_name if of_vectors else entry.data_name)
    original = path.read_bytes()
    VectorStatistics._compare = lambda self, index: None  # type: ignore[method-assign]
    for number in range(seed, seed + count):
        print(number, flush=True)
        luck = random.Random(number)
        data = mutate_within(original, places, luck) if places else mutate(original, luck)
        path.write_bytes(data)
        # Vectors files behind a right checksum, so that the parsers are reached.
        changed = sealed(entry, data) if of_vectors else dataclasses.replace(entry, data_bytes=len(data))
        attempt(exercise, base, changed, batch.schema)


if __name__ == "__main__":
    main()
