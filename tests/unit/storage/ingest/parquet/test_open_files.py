"""Row groups that are batches are read by whoever loads them, of a file whose footer is read once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.parquet.open_files import OpenFiles

GROUPS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Row groups of 1,000 rows; by its strings each might be more than a batch should have."""
    table = pa.table({"n": range(GROUPS * 1000), "s": [f"string {n}" for n in range(GROUPS * 1000)]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1000)
    return tmp_path / "x.parquet"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each time that a file is opened, whether its footer is known."""
    found: list[bool] = []
    real = pq.ParquetFile

    def open_file(*arguments: Any, metadata: Any = None, **options: Any) -> Any:
        found.append(metadata is not None)
        return real(*arguments, metadata=metadata, **options)

    monkeypatch.setattr(pq, "ParquetFile", open_file)
    return found


def count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    read: list[int] = []
    real: Callable[..., Any] = pq.ParquetFile.iter_batches

    def iter_batches(file: Any, *arguments: Any, row_groups: list[int], **options: Any) -> Any:
        read.extend(row_groups)
        return real(file, *arguments, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    return read


def test_a_pass_reads_the_footer_once(path: Path, opened: list[bool]) -> None:
    source = open_source(path)
    opened.clear()
    assert sum(batch.num_rows for batch in source.batches(batch_bytes=1 << 20)) == GROUPS * 1000
    assert opened == [False, True]  # the file, and once more with strings as dictionaries


def test_groups_are_read_by_who_loads_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = count_reads(monkeypatch)
    batches = list(open_source(path).deferred_batches(["n"]))
    assert read == []
    assert [batch.rows for batch in batches] == [1000] * GROUPS
    assert sum(batch.bytes for batch in batches) == pytest.approx(path.stat().st_size, abs=GROUPS)
    assert batches[7].load()["n"].to_pylist() == [*range(7000, 8000)]
    assert read == [7]


def test_threads_load_groups_at_once(path: Path) -> None:
    """Also once all have been handed out."""
    batches = list(open_source(path).deferred_batches())
    with ThreadPoolExecutor(8) as threads:
        loaded = list(threads.map(lambda batch: batch.load(), batches))
    assert pa.Table.from_batches(loaded)["n"].to_pylist() == [*range(GROUPS * 1000)]


def test_large_groups_come_as_batches_that_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else waits for what is behind them, so they are read in order."""
    values = np.arange(1 << 18)
    pq.write_table(pa.table({"n": values}), path, row_group_size=1 << 18)
    read = count_reads(monkeypatch)
    batches = list(open_source(path).deferred_batches())
    assert read == [0]
    assert [batch.rows for batch in batches] == [1 << 17] * 2
    assert (
        pa.Table.from_batches([batch.load() for batch in batches])["n"].to_numpy().tolist() == values.tolist()
    )


def test_a_damaged_group_is_the_error_of_who_loads_it(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    place = pq.read_metadata(path).row_group(3).column(0).data_page_offset
    damaged[place : place + 200] = bytes(200)
    path.write_bytes(damaged)
    batches = list(open_source(path).deferred_batches(["n"]))
    assert batches[2].load().num_rows == 1000
    with pytest.raises(IngestError, match=r'x\.parquet: row group 3, column "n": cannot be read'):
        batches[3].load()
    assert batches[4].load().num_rows == 1000


def test_another_file_in_its_place_is_an_error(path: Path, tmp_path: Path) -> None:
    """Its row groups are somewhere else, as far as anybody knows."""
    files = OpenFiles(path, lambda _, metadata: pq.ParquetFile(path, metadata=metadata))
    with files.file():
        other = tmp_path / "y.parquet"
        other.write_bytes(path.read_bytes())
        other.rename(path)
        with pytest.raises(IngestError, match="another file took its place"), files.file():
            pass
    with files.file() as first:  # that is open still
        assert first.read_row_group(0).num_rows == 1000


def test_few_files_stay_open(path: Path, opened: list[bool]) -> None:
    """However many sets of columns come as dictionaries."""
    files = OpenFiles(path, lambda _, metadata: pq.ParquetFile(path, metadata=metadata))
    for number in range(20):
        with files.file([str(number)]):
            pass
    assert sum(map(len, files._idle.values())) < 5
    opened.clear()
    with files.file():
        pass
    assert opened == []  # the first stays
