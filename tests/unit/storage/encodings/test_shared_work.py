"""What several threads read and decode together is what one does, and so are its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CorruptionError
from bamquery.statement_context.thread_budget import ThreadBudget, working_for
from bamquery.storage.encodings.fsst.vectors import FsstVectors
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

ROWS = 400 * 1024 + 77
THREADS = (1, 2, 7)
PACKED = ("number", "some", "bit", "amount", "ratio", "same")
EVERY = np.arange(401)


def _table() -> pa.Table:
    random = np.random.default_rng(8)
    absent = random.random(ROWS) < 0.3
    absent[: 20 * 1024] = False
    numbers = random.integers(0, 10**9, ROWS)
    texts = [f"{n:x} of {n % 977}" if n % 13 else "" for n in numbers.tolist()]
    return pa.table(
        {
            "number": pa.array(numbers),
            "some": pa.array(random.integers(-9, 9, ROWS), pa.int16(), mask=absent),
            "bit": pa.array(np.arange(ROWS) // 3000 % 2 == 0),
            "amount": pa.array(numbers % 99_999).cast(pa.decimal128(21, 2)).cast(pa.decimal128(15, 2)),
            "ratio": pa.array(np.round(random.random(ROWS), 2)),
            "same": pa.array(np.full(ROWS, 5)),
            "text": pa.array(texts, pa.large_string(), mask=absent),
        }
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fragment, MappedReader]]:
    with stored(tmp_path_factory.mktemp("shared") / "db", _table(), encoding="auto") as snapshot:
        (fragment,) = snapshot.fragments
        reader = MappedReader(fragment.path, fragment.data_bytes)
        yield fragment, reader
        reader.close()


def _by_each(work: Callable[[], Any]) -> list[Any]:
    found = []
    for threads in THREADS:
        budget = ThreadBudget(threads)
        with working_for(budget):
            found.append(work())
        assert budget.free == threads
    return found


def _some_rows(share: float, vectors: NDArray[np.int64] = EVERY) -> NDArray[np.int64]:
    inside = np.flatnonzero(np.isin(np.arange(ROWS) // 1024, vectors))
    return inside[np.random.default_rng(3).random(len(inside)) < share]


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("share", [0.001, 0.4, None])
def test_columns(opened: tuple[Fragment, MappedReader], name: str, share: float | None) -> None:
    fragment, reader = opened
    column = fragment.column(name)
    assert isinstance(column, PackedColumn)
    rows = None if share is None else _some_rows(share)
    vectors = EVERY if rows is None else np.unique(rows // 1024)
    request = ColumnRequest(column, vectors, rows, packed=False)
    alone, *shared = _by_each(lambda: read_columns(reader, [request], verify=True)[0])
    whole = _table().column(name).combine_chunks()
    assert alone.values.equals(whole if rows is None else whole.take(pa.array(rows)))
    for found in shared:
        assert found.values.equals(alone.values)
        assert found.counters == alone.counters


@pytest.mark.parametrize("name", [*PACKED, "text"])
@pytest.mark.parametrize("share", [0.01, 0.9, None])
def test_vectors_in_memory(opened: tuple[Fragment, MappedReader], name: str, share: float | None) -> None:
    fragment, reader = opened
    held = FragmentReader(fragment, reader, verify=True).read_packed(name, EVERY, ReadCounters())
    assert isinstance(held, PackedVectors | FsstVectors)
    rows = None if share is None else _some_rows(share)
    whole = _table().column(name).combine_chunks()
    for found in _by_each(lambda: held.decode() if rows is None else held.pick(rows)):
        found.validate(full=True)
        assert found.equals(whole if rows is None else whole.take(pa.array(rows)))


@pytest.mark.parametrize("vectors", [EVERY, EVERY[EVERY % 3 == 1]], ids=["all", "some"])
@pytest.mark.parametrize("listed", [False, True])
def test_selections(opened: tuple[Fragment, MappedReader], vectors: NDArray[np.int64], listed: bool) -> None:
    fragment, reader = opened
    columns = [fragment.column(name) for name in ("some", "number")]
    zero = 1 << 15
    condition = KeyCondition(((zero - 2, zero + 7),), False)
    certain = np.arange(len(vectors)) % 50 == 3
    members = _native.NumberSet(np.sort(_table().column("number").to_numpy()[::3]))
    rows = _some_rows(0.5, vectors) if listed else None

    def select() -> SelectedRows:
        steps = [CodeStep(0, condition, certain), SetStep(1, members)]
        found = select_rows(
            reader,
            columns,
            [True, True],
            steps,
            vectors,
            rows,
            verify=True,
            located=True,  # type: ignore[arg-type]
        )
        assert isinstance(found, SelectedRows)
        return found

    alone, *shared = _by_each(select)
    assert 0 < alone.count < len(vectors) * 1024
    for found in shared:
        assert found.rows is not None
        assert np.array_equal(found.rows, alone.rows)
        assert (found.count, found.steps) == (alone.count, alone.steps)
        for mine, other in zip(found.reads, alone.reads, strict=True):
            assert mine.counters == other.counters
            assert mine.packed is not None
            assert other.packed is not None
            assert np.array_equal(mine.vectors, other.vectors)
            assert np.array_equal(mine.packed.payload, other.packed.payload)


def test_rows_of_no_vector(opened: tuple[Fragment, MappedReader]) -> None:
    """Whichever thread would have looked for them."""
    fragment, reader = opened
    vectors = EVERY[EVERY % 2 == 0]
    column = fragment.column("number")
    zero = 1 << 63
    step = CodeStep(0, KeyCondition(((zero, zero + 5),), False))
    for row in (1024, 201 * 1024, 399 * 1024 + 5):
        rows = np.array(sorted({0, 200 * 1024, row, 400 * 1024}))

        def select(rows: NDArray[np.int64] = rows) -> Any:
            return select_rows(
                reader,
                [column],
                [False],
                [step],
                vectors,
                rows,
                verify=True,
                located=True,  # type: ignore[list-item]
            )

        for threads in THREADS:
            with (
                working_for(ThreadBudget(threads)),
                pytest.raises(CorruptionError, match="none of the vectors"),
            ):
                select()


def test_positions_that_do_not_ascend(opened: tuple[Fragment, MappedReader]) -> None:
    """Where one thread's end, and another one's begin."""
    fragment, reader = opened
    held = FragmentReader(fragment, reader, verify=True).read_packed("number", EVERY, ReadCounters())
    assert isinstance(held, PackedVectors)
    half = np.arange(200 * 1024)
    for threads in THREADS:
        with working_for(ThreadBudget(threads)), pytest.raises(CorruptionError, match="ascend"):
            held.pick(np.concatenate([half, half]))
