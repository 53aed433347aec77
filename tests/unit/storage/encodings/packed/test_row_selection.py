"""Several columns at once: rows that pass steps and values are numpy's, and wrong arguments are refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.packed.column import PackedColumn
from bamquery.storage.encodings.packed.column_sets import ColumnRequest, read_columns
from bamquery.storage.encodings.packed.row_selection import CodeStep, SelectedRows, SetStep, select_rows
from bamquery.storage.encodings.packed.vectors import PackedVectors
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.order_keys import KeyCondition
from tests.stored import stored

ROWS = 70 * 1024 + 300
NAMES = ("a", "b", "c")


def values() -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        "a": pa.array(random.integers(0, 100, ROWS), pa.int64()),
        "b": pa.array(random.integers(-50, 50, ROWS), pa.int32(), mask=random.random(ROWS) < 0.2),
        "c": pa.array(random.integers(0, 10**6, ROWS), pa.int64()),
        "bit": pa.array(np.arange(ROWS) < 40_100),
    }


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fragment, MappedReader]]:
    path: Path = tmp_path_factory.mktemp("several") / "several.bq"
    with stored(path, pa.table(values()), encoding="auto") as snapshot:
        (fragment,) = snapshot.fragments
        reader = MappedReader(fragment.path, fragment.data_bytes)
        yield fragment, reader
        reader.close()


def columns_of(fragment: Fragment) -> list[PackedColumn]:
    found = [fragment.column(name) for name in NAMES]
    assert all(isinstance(column, PackedColumn) for column in found)
    return found  # type: ignore[return-value]


def between(low: int, high: int, bits: int, *, nulls: bool = False) -> KeyCondition:
    zero = 1 << (bits - 1)
    return KeyCondition(((zero + low, zero + high),), nulls)


def plain() -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[Any]]:
    table = values()
    b = table["b"]
    return (
        table["a"].to_numpy(),
        b.fill_null(0).to_numpy(),
        b.is_valid().to_numpy(zero_copy_only=False),
        table["c"].to_numpy(),
    )


MEMBERS = np.arange(0, 10**6, 3)
EVERY = np.arange(71)
SOME = np.array([0, 1, 5, 30, 31, 32, 33, 63, 64, 65, 70])


@pytest.mark.parametrize("vectors", [EVERY, SOME, EVERY[-1:]], ids=["all", "some", "last"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_are_numpys(
    opened: tuple[Fragment, MappedReader], vectors: NDArray[np.int64], listed: bool, nulls: bool
) -> None:
    fragment, reader = opened
    a, b, valid, c = plain()
    inside = np.flatnonzero(np.isin(np.arange(ROWS) // 1024, vectors))
    asked = inside[np.random.default_rng(1).random(len(inside)) < 0.4] if listed else inside
    steps = [
        CodeStep(0, between(10, 60, 64)),
        SetStep(2, _native.NumberSet(MEMBERS)),
        CodeStep(1, between(-10, 30, 32, nulls=nulls)),
    ]
    found = select_rows(
        reader,
        columns_of(fragment),
        [True, False, True],
        steps,
        vectors,
        asked if listed else None,
        verify=True,
        located=True,
    )
    assert isinstance(found, SelectedRows)
    first = asked[(a[asked] >= 10) & (a[asked] <= 60)]
    second = first[np.isin(c[first], MEMBERS)]
    third = second[np.where(valid[second], (b[second] >= -10) & (b[second] <= 30), nulls)]
    assert found.rows is not None
    assert found.rows.tolist() == third.tolist()
    assert found.count == len(third)
    rows = [len(asked), len(first), len(second), len(third)]
    assert [(before, after) for before, after, _ in found.steps] == list(itertools.pairwise(rows))
    # What is kept are vectors with rows that the step looked at, and all that was read is counted.
    kept = found.reads[2].packed
    assert kept is not None
    assert kept.vectors.tolist() == np.unique(first // 1024).tolist()
    assert np.array_equal(kept.pick(third).to_numpy(), c[third])
    for column, read in zip(columns_of(fragment), found.reads, strict=True):
        assert read.counters.blocks == column.vectors_footprint(read.vectors, reader.block_size).blocks


def test_all_rows_need_no_list(opened: tuple[Fragment, MappedReader]) -> None:
    fragment, reader = opened
    columns = columns_of(fragment)[:1]
    steps = [CodeStep(0, between(0, 99, 64))]
    found = select_rows(reader, columns, [False], steps, EVERY, None, verify=True, located=True)
    assert isinstance(found, SelectedRows)
    assert found.rows is None
    assert found.count == ROWS


def test_certain_vectors_are_not_read(opened: tuple[Fragment, MappedReader]) -> None:
    fragment, reader = opened
    certain = np.zeros(71, bool)
    certain[3:40] = True
    steps = [CodeStep(0, between(0, 9, 64), certain)]
    found = select_rows(
        reader, columns_of(fragment)[:1], [False], steps, EVERY, None, verify=True, located=False
    )
    assert isinstance(found, SelectedRows)
    a = plain()[0]
    assert found.count == np.count_nonzero((a <= 9) | certain[np.arange(ROWS) // 1024])
    assert found.reads[0].vectors.tolist() == np.flatnonzero(~certain).tolist()


def test_strings_of_rows_looked_at_are_summed_up(opened: tuple[Fragment, MappedReader]) -> None:
    fragment, reader = opened
    lengths = np.arange(100) * 7
    a = plain()[0]
    rows = np.arange(5, ROWS, 3)
    steps = [CodeStep(0, between(0, 9, 64), None, lengths)]
    found = select_rows(
        reader, columns_of(fragment)[:1], [False], steps, EVERY, rows, verify=True, located=True
    )
    assert isinstance(found, SelectedRows)
    assert found.steps[0][2] == lengths[a[rows]].sum()


def test_values_of_several_columns(opened: tuple[Fragment, MappedReader]) -> None:
    fragment, reader = opened
    table = values()
    rows = np.sort(np.random.default_rng(9).choice(ROWS, 5000, replace=False))
    held = np.unique(rows // 1024)
    bit = fragment.column("bit")
    assert isinstance(bit, PackedColumn)
    columns = [*columns_of(fragment), bit]
    for chosen, wanted in ((None, np.arange(ROWS)), (rows, rows)):
        vectors = EVERY if chosen is None else held
        requests = [ColumnRequest(column, vectors, chosen, packed=False) for column in columns]
        for name, found in zip((*NAMES, "bit"), read_columns(reader, requests, verify=True), strict=True):
            assert found.values.equals(table[name].take(pa.array(wanted))), name  # type: ignore[union-attr]
            assert found.counters.bytes > 0
    (found,) = read_columns(reader, [ColumnRequest(columns[2], held, None, packed=True)], verify=True)
    assert isinstance(found.values, PackedVectors)
    assert np.array_equal(found.values.pick(rows).to_numpy(), plain()[3][rows])


def test_codes_beyond_a_dictionary_are_damage(tmp_path: Path) -> None:
    words = pa.array([f"w{i % 40}" for i in range(5000)], pa.large_string())
    with stored(tmp_path / "words.bq", pa.table({"word": words}), encoding="auto") as snapshot:
        (fragment,) = snapshot.fragments
        blocks = MappedReader(fragment.path, fragment.data_bytes)
        reader, counters = FragmentReader(fragment, blocks), ReadCounters()
        column = fragment.column("word")
        assert isinstance(column, PackedColumn)
        lengths = reader.string_lengths("word", counters)
        request = ColumnRequest(column, np.arange(5), None, packed=False)
        (found,) = reader.read_together(["word"], [request])
        assert found.values.equals(words)  # type: ignore[union-attr]
        assert found.string_bytes == sum(len(word) for word in words.to_pylist())
        with pytest.raises(Exception, match="refers to values beyond its dictionary"):
            read_columns(
                blocks, [ColumnRequest(column, np.arange(5), None, False, lengths[:-1])], verify=True
            )
        blocks.close()


@pytest.mark.parametrize(
    ("vectors", "rows", "says"),
    [
        (np.array([3, 2]), None, "no such vector"),
        (np.array([71]), None, "no such vector"),
        (np.array([-1]), None, "no such vector"),
        (np.array([2]), np.array([2050, 2050]), "do not ascend"),
        (np.array([2]), np.array([2051, 2050]), "do not ascend"),
        (np.array([2]), np.array([5000]), "in none of the vectors"),
        (np.array([2, 3]), np.array([100]), "in none of the vectors"),
    ],
)
def test_wrong_rows_are_refused(
    opened: tuple[Fragment, MappedReader], vectors: NDArray[np.int64], rows: Any, says: str
) -> None:
    fragment, reader = opened
    native = [column.native for column in columns_of(fragment)[:1]]
    terms, bounds = np.array([(1, 0)]), np.array([0, 2**63], np.uint64)
    steps = [(None, [0], terms, bounds, False, None, None)]

    def select(file: _native.BlockFile) -> Any:
        return _native.select_rows(file, native, [False], steps, vectors, rows, True, True)

    with pytest.raises(ValueError, match=says):
        reader.read_together(select, [])


def test_wrong_steps_are_refused(opened: tuple[Fragment, MappedReader]) -> None:
    fragment, reader = opened
    native = [column.native for column in columns_of(fragment)]
    terms, bounds = np.array([(1, 0)]), np.array([0, 2**63], np.uint64)
    fine = (None, [0], terms, bounds, False, None, None)
    adds = _native.Program(np.array([[0, 0, 0, 0, 0, 0, 0]]), ["int64"], np.empty((0, 3), np.int64), [0])
    for steps, says in [
        ([(None, [3], terms, bounds, False, None, None)], "no such column"),
        ([(None, [0, 1], terms, bounds, False, None, None)], "one column"),
        ([(None, [0], np.array([(2, 0)]), bounds, False, None, None)], "bounds are too few"),
        ([(None, [0], terms, bounds, False, np.zeros(3, np.uint8), None)], "vectors are not as many"),
        ([fine, (adds, [0])], "there is no condition"),
        ([(_native.NumberSet(MEMBERS), [0, 1])], "a set is of one column"),
    ]:

        def select(file: _native.BlockFile, steps: Any = steps) -> Any:
            return _native.select_rows(file, native, [False] * 3, steps, EVERY, None, True, True)

        with pytest.raises(ValueError, match=says):
            reader.read_together(select, [])
