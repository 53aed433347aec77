"""Opening fragments: whatever is wrong with the files is an error that names them."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import CorruptionError
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.fragments.writer import BatchRows, FragmentEntry, write_fragment
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.vector_statistics import VectorStatistics
from bamquery.storage.statistics.vectors_file import describe_vectors_file
from tests.fuzz.fragment_mutations import sealed
from tests.unit.storage.random_columns import ALL_TYPES, assert_same, column


@pytest.fixture
def batch() -> pa.RecordBatch:
    random = np.random.default_rng(5)
    arrays = [column(type_, 3000, random) for type_ in ALL_TYPES]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


@pytest.fixture
def entry(batch: pa.RecordBatch, tmp_path: Path) -> FragmentEntry:
    return write_fragment(POSIX, tmp_path, "f", batch.schema, BatchRows([batch]))


def test_an_opened_fragment(batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path) -> None:
    fragment = Fragment.open(tmp_path, entry, batch.schema)
    assert (fragment.id, fragment.rows, fragment.vector_count) == ("f", 3000, 3)
    assert fragment.path == tmp_path / "f.arrow"
    assert fragment.data_bytes == fragment.path.stat().st_size
    assert fragment.schema is batch.schema
    assert len(fragment.layout.columns) == len(batch.schema)


@pytest.mark.parametrize("name", ["f.arrow", "f.vectors.arrow"])
@pytest.mark.parametrize("damage", ["missing", "shorter", "longer", "empty"])
def test_missing_and_resized_files(
    batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path, name: str, damage: str
) -> None:
    path = tmp_path / name
    contents = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"shorter": contents[:-1], "longer": contents + b"\0", "empty": b""}[damage])
    with pytest.raises(
        CorruptionError, match=r"missing" if damage == "missing" else "bytes instead of"
    ) as raised:
        Fragment.open(tmp_path, entry, batch.schema)
    assert raised.value.path == path


def test_every_flipped_bit_of_the_vectors_file_is_found(
    batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path
) -> None:
    path = tmp_path / "f.vectors.arrow"
    contents = bytearray(path.read_bytes())
    for position in range(0, len(contents), 331):
        contents[position] ^= 1 << position % 8
        path.write_bytes(contents)
        with pytest.raises(CorruptionError, match=r"f\.vectors\.arrow: .*checksum"):
            VectorStatistics(path, entry, batch.schema).require_all()
        contents[position] ^= 1 << position % 8


def test_a_fragment_of_other_columns(batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path) -> None:
    renamed = batch.rename_columns([f"d{i}" for i in range(batch.num_columns)])
    for schema in (renamed.schema, batch.schema.remove(0), batch.schema.append(pa.field("x", pa.int8()))):
        with pytest.raises(CorruptionError, match=r"columns of another schema"):
            Fragment.open(tmp_path, entry, schema)
    with pytest.raises(CorruptionError, match=r"another fragment"):
        Fragment.open(tmp_path, replace(entry, rows=2999), batch.schema)


Change = Callable[[dict], None]


def change_layout(path: Path, change: Change) -> None:
    """Rewrite the layout in the vectors file, as a bug or an attacker would: everything else stays valid."""
    with pa.ipc.open_file(pa.BufferReader(path.read_bytes())) as reader:
        table = reader.read_all()
    metadata = table.schema.metadata
    layout = json.loads(metadata[b"bamquery.layout"])
    change(layout)
    metadata[b"bamquery.layout"] = json.dumps(layout).encode()
    table = table.replace_schema_metadata(metadata)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def string_column(layout: dict) -> dict:
    return next(column for column in layout["columns"] if "offsets" in column)


IMPOSSIBLE: dict[str, Change] = {
    "rows": lambda layout: layout.update(rows=10**9),
    "values beyond the file": lambda layout: layout["columns"][1].update(values=[1 << 40, 3000]),
    "values too short": lambda layout: layout["columns"][1]["values"].__setitem__(1, 100),
    "values unaligned": lambda layout: layout["columns"][1]["values"].__setitem__(0, 4097),
    "negative": lambda layout: layout["columns"][1]["values"].__setitem__(0, -4096),
    "float": lambda layout: layout["columns"][1]["values"].__setitem__(0, 4096.0),
    "no offsets": lambda layout: string_column(layout).pop("offsets"),
    "offsets too short": lambda layout: string_column(layout)["offsets"].__setitem__(1, 8),
    "validity too short": lambda layout: layout["columns"][1].update(validity=[4096, 1]),
    "no dictionary": lambda layout: layout["columns"][-1].pop("dictionary"),
    "a dictionary too large": lambda layout: layout["columns"][-1]["dictionary"].update(size=1 << 40),
    "a column less": lambda layout: layout["columns"].pop(),
    "no columns": lambda layout: layout.pop("columns"),
    "columns that are none": lambda layout: layout.update(columns=[1, 2, 3]),
    "metadata beyond the file": lambda layout: layout["metadata"].append([1 << 50, 10, 0]),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_impossible_layouts_behind_right_checksums_are_refused(
    batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path, what: str
) -> None:
    path = tmp_path / "f.vectors.arrow"
    change_layout(path, IMPOSSIBLE[what])
    matching = replace(entry, **describe_vectors_file(pa.py_buffer(path.read_bytes())).entry_members)
    with pytest.raises(CorruptionError, match=r"f\.vectors\.arrow"):
        tuple(Fragment.open(tmp_path, matching, batch.schema).layout.columns)


def test_an_unchanged_layout_is_accepted(batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path) -> None:
    """What the test above relies on: rewriting by itself does no harm."""
    path = tmp_path / "f.vectors.arrow"
    change_layout(path, lambda layout: None)
    matching = replace(entry, **describe_vectors_file(pa.py_buffer(path.read_bytes())).entry_members)
    assert Fragment.open(tmp_path, matching, batch.schema).check() == []


def test_garbage_behind_right_checksums_is_refused(
    batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VectorStatistics, "_compare", lambda self, index: None)
    random = np.random.default_rng(0)
    path = tmp_path / "f.vectors.arrow"
    contents = path.read_bytes()
    refused = 0
    for turn in range(300):
        garbage = bytearray(contents)
        for position in random.integers(0, len(garbage), 1 + turn % 5):
            garbage[position] = random.integers(0, 256)
        path.write_bytes(garbage)
        try:
            VectorStatistics(path, sealed(entry, bytes(garbage)), batch.schema).require_all()
        except CorruptionError:
            refused += 1  # many changes only make other statistics, which nothing but the checksum can tell
    assert refused > 0


def test_entries_survive_json(entry: FragmentEntry) -> None:
    assert FragmentEntry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../x"},
        {"id": ""},
        {"id": 5},
        {"rows": -1},
        {"rows": 1.0},
        {"rows": True},
        {"vectors_crc": 1 << 32},
        {"data_bytes": None},
        {"more": 1},
    ],
)
def test_entries_that_are_none(entry: FragmentEntry, change: dict) -> None:
    with pytest.raises(CorruptionError):
        FragmentEntry.from_json(entry.to_json() | change)
    with pytest.raises(CorruptionError):
        FragmentEntry.from_json([])


def test_threads_share_a_fragment(batch: pa.RecordBatch, entry: FragmentEntry, tmp_path: Path) -> None:
    fragment = Fragment.open(tmp_path, entry, batch.schema)
    reader = FragmentReader(fragment, MappedReader(fragment.path, fragment.data_bytes))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for name in batch.schema.names:
                assert_same(reader.stream(name, np.arange(3), ReadCounters()), batch.column(name))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
