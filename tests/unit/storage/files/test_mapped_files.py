"""Maps that stay: of whom, how many, until when."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import CorruptionError
from bamquery.storage.files.mapped_files import MappedFiles

SIZE = 1 << 14


def _file(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(SIZE))
    return path


def _mapped(path: Path) -> bool:
    return str(path) in Path("/proc/self/maps").read_text()


def test_a_map_stays_for_the_next_reader(tmp_path: Path) -> None:
    path, maps = _file(tmp_path, "a"), MappedFiles()
    first = maps.open(path, SIZE, 512)
    assert maps.open(path, SIZE, 512) is first
    assert maps.open(path, SIZE, 4096) is not first
    maps.close(first)
    maps.close(first)
    assert _mapped(path)
    assert maps.open(path, SIZE, 512) is first


def test_those_used_last_stay(tmp_path: Path) -> None:
    maps = MappedFiles(most_files=2)
    paths = [_file(tmp_path, name) for name in "abc"]
    for path in paths:
        maps.close(maps.open(path, SIZE, 512))
    assert [_mapped(path) for path in paths] == [False, True, True]
    held = [maps.open(path, SIZE, 512) for path in paths]
    assert all(map(_mapped, paths))
    for mapped in held:
        maps.close(mapped)
    assert sum(map(_mapped, paths)) == 2


def test_maps_take_no_descriptors(tmp_path: Path) -> None:
    maps = MappedFiles()
    maps.open(_file(tmp_path, "first"), SIZE, 512)
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "empty").touch()
    held = [maps.open(_file(tmp_path, str(number)), SIZE, 512) for number in range(10)]
    held.append(maps.open(tmp_path / "empty", 0, 512))
    assert len(os.listdir("/proc/self/fd")) == before


def test_files_of_which_much_was_read_do_not_stay(tmp_path: Path) -> None:
    path, maps = tmp_path / "a", MappedFiles(most_bytes=4 << 20)
    path.touch()
    os.truncate(path, 20 << 20)
    mapped = maps.open(path, 20 << 20, 512)
    mapped.note_ranges(np.array([0, 100, (2 << 20) - 1]))
    assert mapped.bytes == 2 << 20
    mapped.note_span(10 << 20, (12 << 20) - 1)
    maps.close(mapped)
    assert _mapped(path)
    assert maps.open(path, 20 << 20, 512) is mapped
    mapped.note_ranges(np.array([(20 << 20) - 5]))
    maps.close(mapped)
    assert not _mapped(path)


def test_a_file_put_in_anothers_place_is_mapped_anew(tmp_path: Path) -> None:
    path, maps = _file(tmp_path, "a"), MappedFiles()
    first = maps.open(path, SIZE, 512)
    os.replace(_file(tmp_path, "b"), path)
    second = maps.open(path, SIZE, 512)
    assert second is not first
    maps.close(first)
    maps.close(second)
    assert maps.open(path, SIZE, 512) is second


def test_sizes_are_looked_at_each_time(tmp_path: Path) -> None:
    path, maps = _file(tmp_path, "a"), MappedFiles()
    maps.close(maps.open(path, SIZE, 512))
    os.truncate(path, 10)
    with pytest.raises(CorruptionError):
        maps.open(path, SIZE, 512)
    path.unlink()
    with pytest.raises(CorruptionError):
        maps.open(path, SIZE, 512)


def test_forgotten_maps_go_with_their_last_reader(tmp_path: Path) -> None:
    path, maps = _file(tmp_path, "a"), MappedFiles()
    mapped = maps.open(path, SIZE, 512)
    maps.forget(tmp_path)
    assert _mapped(path)
    maps.close(mapped)
    assert not _mapped(path)


def test_closing_a_database_and_vacuum_let_go(tmp_path: Path) -> None:
    folder = tmp_path / "db.bq"
    with bamquery.connect(folder, device="cpu") as connection:
        rows = pa.table({"a": range(5000)})
        connection.sql("CREATE TABLE t AS FROM rows")
        assert connection.sql("SELECT a FROM t").to_arrow().num_rows == rows.num_rows
        assert _mapped(folder)
        connection.vacuum()
        assert not _mapped(folder)
        assert connection.sql("SELECT a FROM t").to_arrow().num_rows == rows.num_rows
        assert _mapped(folder)
    assert not _mapped(folder)
