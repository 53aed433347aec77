"""What mapped reads bring from a drive: pages with something wanted, asked for before one is waited for."""

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bamquery.queries.formats.io_counters import IoCounters
from bamquery.queries.measuring.cold import cached_bytes, drop_pages
from bamquery.storage.files.mapped_files import MAPPED_FILES
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader

PAGE = 4096
SIZE = 24 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cold") / "file"
    file.write_bytes(np.random.default_rng(0).bytes(SIZE))
    return file


@pytest.fixture
def cold(path: Path) -> Iterator[MappedReader]:
    """A reader of a file no page of which is in memory."""
    drop_pages([path])
    if cached_bytes([path]):
        pytest.skip("pages of files stay in memory here")
    reader = MappedReader(path, SIZE)
    yield reader
    reader.close()
    MAPPED_FILES.forget(path)


def test_scattered_runs_bring_their_pages_only(path: Path, cold: MappedReader) -> None:
    """Also those that are longer than what Linux reads ahead by default."""
    offsets = np.array([5 << 20, (12 << 20) + 100, 20 << 20], np.int64)
    lengths = np.array([300_000, 900_000, 10], np.int64)
    found = cold.read_ranges(offsets, lengths, ReadCounters())
    assert cached_bytes([path]) == PAGE * int(((offsets % PAGE + lengths - 1) // PAGE + 1).sum())
    whole = path.read_bytes()
    assert found.to_pybytes() == b"".join(
        whole[at : at + n] for at, n in zip(offsets.tolist(), lengths.tolist(), strict=True)
    )


def test_a_selection_without_pages_between_is_no_stream(path: Path, cold: MappedReader) -> None:
    offsets = np.arange(8 << 20, 10 << 20, 2000)
    cold.read_ranges(offsets, np.full(len(offsets), 1000), ReadCounters())
    assert cached_bytes([path]) == 2 << 20


def test_dense_rows_wait_for_few_pages(path: Path, cold: MappedReader) -> None:
    """Of a run of 1,000 pages, each would be waited for alone where nothing was asked for before."""
    rows = np.arange(0, 1000 * PAGE, 64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    cold.gather(1 << 20, 1, 8, rows, ReadCounters())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before < 100
    assert cached_bytes([path]) == 1000 * PAGE


def test_streams_are_read_ahead(cold: MappedReader) -> None:
    """Ranges end to end are likely to go on; what was asked of the drive may be still to come."""
    before = IoCounters.read()
    cold.read_ranges(np.arange(0, 1 << 20, PAGE), np.full(256, PAGE), ReadCounters())
    assert (IoCounters.read() - before).from_disk > 1 << 20
