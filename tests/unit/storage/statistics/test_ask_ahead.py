"""The system is told which statistics will be read, once."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from bamquery.storage.statistics import vector_statistics


@pytest.fixture
def fragment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fragment:
    monkeypatch.setattr(vector_statistics, "_WHOLE", 0)
    numbers = pa.array(range(0, 9000 * 7919, 7919))
    batch = pa.record_batch([numbers, numbers, numbers], names=["a", "b", "c"])
    entry = write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]), encoding="auto")
    return Fragment.open(tmp_path, entry, batch.schema)


def test_what_is_asked_for_is_what_is_read(fragment: Fragment, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    read: list[tuple[int, int]] = []
    real = os.preadv

    def preadv(file: int, buffers: list[memoryview], at: int) -> int:
        read.append((at, len(buffers[0])))
        return real(file, buffers, at)

    monkeypatch.setattr(os, "posix_fadvise", lambda file, at, size, advice: asked.append((at, size)))
    monkeypatch.setattr(os, "preadv", preadv)
    fragment.ask_ahead(["a", "c"], parts=True)
    fragment.ask_ahead(["c"])
    assert len(asked) == 4
    for name in ("a", "c"):
        fragment.column(name)
        fragment.packed_parts(name)
    assert read == asked
    asked.clear()
    fragment.ask_ahead(["a", "c"], parts=True)
    assert not asked
    fragment.ask_ahead(["b"])
    assert len(asked) == 1


def test_a_missing_file_is_damage(fragment: Fragment) -> None:
    (fragment.path.parent / "f.vectors.arrow").unlink()
    with pytest.raises(CorruptionError, match="the file is missing"):
        fragment.ask_ahead(["a"])
