import mmap
import os
from pathlib import Path

import pytest

from bamquery.queries.measuring import cold


def test_files_below(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("x", "a/y", "a/b/z"):
        (tmp_path / name).write_text("1")
    assert cold.files_below(tmp_path) == [tmp_path / "a" / "b" / "z", tmp_path / "a" / "y", tmp_path / "x"]
    assert cold.files_below(tmp_path / "x") == [tmp_path / "x"]


def test_how_much_is_cached_and_dropped(tmp_path: Path) -> None:
    path, empty = tmp_path / "file", tmp_path / "empty"
    path.write_bytes(os.urandom((1 << 20) + 1))
    empty.touch()
    whole = cold.cached_bytes([path, empty])
    assert whole == (1 << 20) + mmap.PAGESIZE
    cold.drop_pages([path, empty])
    assert cold.cached_bytes([path]) in (0, whole)  # all where the file system is memory


def test_it_says_what_it_could_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for /proc/sys/vm/drop_caches: the machine's own is left alone."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    switch = tmp_path / "drop_caches"
    monkeypatch.setattr(cold, "_DROP_CACHES", switch)
    assert cold.drop_caches([path]).endswith("and /proc/sys/vm/drop_caches")
    assert switch.read_text() == "3\n"
    monkeypatch.setattr(cold, "_DROP_CACHES", tmp_path / "no" / "drop_caches")
    assert cold.drop_caches([path]) == "posix_fadvise(DONTNEED) on the files"
    assert len(path.read_bytes()) == 1 << 20
