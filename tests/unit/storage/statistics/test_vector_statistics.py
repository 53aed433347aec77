"""Statistics of vectors are read column by column, whole or not at all."""

from __future__ import annotations

import re
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery._native import crc32c
from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from bamquery.storage.statistics import vector_statistics
from bamquery.storage.statistics.vector_statistics import VectorStatistics
from bamquery.storage.statistics.vectors_file import (
    Section,
    column_members,
    describe_vectors_file,
    sections,
    sections_text,
    stored_sections,
)
from tests.unit.storage.random_columns import ALL_TYPES, column

ROWS = 5000


@pytest.fixture(params=["a large file", "a small file"], autouse=True)
def whole(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Whether the file is read at once, as small ones are."""
    if request.param == "a large file":
        monkeypatch.setattr(vector_statistics, "_WHOLE", 0)
    return request.param == "a small file"


@pytest.fixture
def batch() -> pa.RecordBatch:
    random = np.random.default_rng(3)
    arrays = [column(kind, ROWS, random) for kind in ALL_TYPES]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


@pytest.fixture
def entry(batch: pa.RecordBatch, tmp_path: Path) -> FragmentEntry:
    return write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))


@pytest.fixture
def path(entry: FragmentEntry, tmp_path: Path) -> Path:
    return tmp_path / entry.vectors_name


def extents(path: Path) -> list[Section]:
    return sections(pa.py_buffer(path.read_bytes()))


def flip(path: Path, position: int) -> None:
    contents = bytearray(path.read_bytes())
    contents[position] ^= 4
    path.write_bytes(contents)


def test_everything_is_as_it_was_written(batch: pa.RecordBatch, entry: FragmentEntry, path: Path) -> None:
    with pa.ipc.open_file(path.read_bytes()) as reader:
        written = reader.get_batch(0)
    found = VectorStatistics(path, entry, batch.schema)
    for position in reversed(range(len(ALL_TYPES))):
        whole: Any = written.column(position)
        ours = found.column(position)
        for field in ours.type:
            assert ours.field(field.name).equals(whole.field(field.name))
        parts = found.parts(position)
        assert (parts is None) == (whole.type.get_field_index("part_crc") < 0)
        if parts is not None:
            assert parts.minimum.equals(whole.field("part_min").flatten())
            assert parts.maximum.equals(whole.field("part_max").flatten())
            assert parts.checksums.tolist() == whole.field("part_crc").flatten().to_pylist()


def test_sections_are_end_to_end(batch: pa.RecordBatch, entry: FragmentEntry, path: Path) -> None:
    """So every byte of the file has a checksum."""
    found = extents(path)
    assert len(found) == 2 * len(ALL_TYPES)
    assert found[0].begin == entry.vectors_head
    assert found[-1].end == entry.vectors_bytes - entry.vectors_tail
    assert all(one.end == other.begin for one, other in pairwise(found))


def test_only_what_is_asked_for_is_read(
    batch: pa.RecordBatch, entry: FragmentEntry, path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    read: list[Section] = []
    fill = VectorStatistics._fill

    def noted(self: VectorStatistics, descriptor: int, section: Section) -> None:
        read.append(section)
        fill(self, descriptor, section)

    monkeypatch.setattr(VectorStatistics, "_fill", noted)
    found = VectorStatistics(path, entry, batch.schema)
    end = entry.vectors_bytes - entry.vectors_tail
    expected = [Section(0, entry.vectors_head), Section(end, entry.vectors_bytes)]
    if whole:
        expected.append(Section(entry.vectors_head, end))
    assert read == expected
    found.column(3)
    found.column(3)
    found.parts(4)
    assert found.parts(5) is None  # of bytes there are none
    places = extents(path)
    assert read[len(expected) :] == ([] if whole else [places[6], places[9]])


def test_damage_is_found_where_it_is(batch: pa.RecordBatch, entry: FragmentEntry, path: Path) -> None:
    places = extents(path)
    for index, place in enumerate(places):
        if place.begin == place.end:
            continue
        for position in (place.begin, place.end - 1):
            flip(path, position)
            found = VectorStatistics(path, entry, batch.schema)
            column, parts = divmod(index, 2)
            with pytest.raises(CorruptionError, match=f'"c{column}" have the checksum'):
                (found.parts if parts else found.column)(column)
            with pytest.raises(CorruptionError, match="checksum"):
                found.require_all()
            other = (column + 1) % len(ALL_TYPES)
            assert len(found.column(other)) == 5  # another column has nothing to do with it
            flip(path, position)
    for position in (0, entry.vectors_head - 1, path.stat().st_size - 1):
        flip(path, position)
        with pytest.raises(CorruptionError, match="its checksum is"):
            VectorStatistics(path, entry, batch.schema)
        flip(path, position)


def test_sections_that_are_not_those_of_their_columns(
    batch: pa.RecordBatch, entry: FragmentEntry, path: Path
) -> None:
    """Whoever forges them, with checksums that are right, is found by whoever asks for the column."""
    contents, places = bytearray(path.read_bytes()), extents(path)
    middle = places[0].end - 8
    moved = [replace(places[0], end=middle), replace(places[1], begin=middle), *places[2:]]
    for found in (places, moved):
        text = sections_text(found, [crc32c(contents[place.begin : place.end]) for place in found])
        known = sections_text(places, [crc32c(contents[place.begin : place.end]) for place in places])
        path.write_bytes(bytes(contents).replace(known, text))
        members = describe_vectors_file(pa.py_buffer(path.read_bytes())).entry_members
        forged = VectorStatistics(path, replace(entry, **members), batch.schema)
        assert len(forged.column(1)) == 5
        if found is moved:
            with pytest.raises(CorruptionError, match='"c0" are not where they should be'):
                forged.column(0)


@pytest.mark.parametrize(
    "text", [b"[[8,1]]", b"[[8,1],[9,1]]", b"[[-8,1],[24,1]]", b"[[7.0,1],[9.0,1]]", b"[]"]
)
def test_sections_that_cannot_be(text: bytes) -> None:
    with pytest.raises(ValueError, match="not what is between head and tail"):
        stored_sections(text, 1, Section(16, 32))
    assert stored_sections(b"[[8,1],[8,2]]", 1, Section(16, 32)) == ([16, 24, 32], [1, 2])


def test_members_of_a_length_that_cannot_be(path: Path) -> None:
    """Arrow ends the process where it is asked for one that has less than no rows."""
    contents = path.read_bytes()
    node = struct.pack("<qq", 5, 0)  # rows and nulls of a member, as Arrow's messages have them
    places = [found.start() for found in re.finditer(re.escape(node), contents[: extents(path)[0].begin])]
    assert len(places) > 2 * len(ALL_TYPES)
    for place in places:
        wrong = contents[:place] + struct.pack("<q", -3) + contents[place + 8 :]
        with pytest.raises((pa.ArrowException, OSError, ValueError)):
            sections(pa.py_buffer(wrong))


def test_members_of_one_name() -> None:
    """Which of them is meant nobody can say."""
    twice: Any = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["min", "min"])
    with pytest.raises(ValueError, match="one name"):
        column_members(twice)


def test_a_file_that_changes_later(
    batch: pa.RecordBatch, entry: FragmentEntry, path: Path, whole: bool
) -> None:
    """What was read stays; what was not is missed by name."""
    found = VectorStatistics(path, entry, batch.schema)
    found.column(0)
    contents = path.read_bytes()
    path.write_bytes(contents[:-1])
    found.column(0)
    if whole:
        found.require_all()
        return
    with pytest.raises(CorruptionError, match="bytes instead of"):
        found.column(1)
    path.unlink()
    with pytest.raises(CorruptionError, match="missing"):
        found.column(1)
    path.mkdir()
    with pytest.raises((CorruptionError, StorageError)):
        found.column(1)
    path.rmdir()
    path.write_bytes(contents)
    assert len(found.column(1)) == 5


@pytest.mark.parametrize(("head", "tail"), [(0, 0), (1 << 40, 0), (10, 1 << 40), (-5, 5), (8, 8)], ids=str)
def test_sizes_that_cannot_be(
    batch: pa.RecordBatch, entry: FragmentEntry, path: Path, head: int, tail: int
) -> None:
    forged = FragmentEntry(
        entry.id, ROWS, entry.data_bytes, entry.vectors_bytes, head, tail, entry.vectors_crc
    )
    with pytest.raises(CorruptionError) as caught:
        VectorStatistics(path, forged, batch.schema)
    assert caught.value.path == path


def test_a_size_without_bounds(batch: pa.RecordBatch, entry: FragmentEntry, path: Path) -> None:
    """Memory is laid out for a file that is there."""
    forged = replace(entry, vectors_bytes=1 << 62)
    with pytest.raises(CorruptionError, match="bytes instead of"):
        VectorStatistics(path, forged, batch.schema)


def test_an_empty_fragment(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64()), ("s", pa.large_string())])
    entry = write_fragment(POSIX, tmp_path, "f", schema, BatchRows([]))
    found = VectorStatistics(tmp_path / entry.vectors_name, entry, schema)
    found.require_all()
    assert len(found.column(0)) == 0


def test_threads_read_each_column_once(batch: pa.RecordBatch, entry: FragmentEntry, path: Path) -> None:
    found = VectorStatistics(path, entry, batch.schema)
    failures: list[BaseException] = []

    def reads() -> None:
        try:
            found.require_all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=reads) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
