"""What several threads read and decode together is what one does, and so are its figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from bamquery.storage.readers.block_reader import RangeMismatchError, ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.order_keys import KeyCondition
from tests.stored import stored
from tests.unit.shared_threads import THREADS, by_each

ROWS = 400 * 1024 + 77
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
            "code": pa.array(np.append(numbers[1:] % 998, 999), pa.uint16(), mask=numbers % 9 == 0),
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
    alone, *shared = by_each(lambda: read_columns(reader, [request], verify=True)[0])
    whole = _table().column(name).combine_chunks()
    assert alone.values.equals(whole if rows is None else whole.take(pa.array(rows)))
    for found in shared:
        assert found.values.equals(alone.values)
        assert found.counters == alone.counters


def test_columns_together(opened: tuple[Fragment, MappedReader]) -> None:
    """Of which some are wanted as they are stored, some as codes, and of some a few rows."""
    fragment, reader = opened
    some, few = EVERY[EVERY % 7 < 5], _some_rows(0.01)
    lengths = np.arange(10**3)
    wanted: list[tuple[str, NDArray[np.int64], NDArray[np.int64] | None, bool]] = [
        ("number", some, None, True),
        ("some", np.unique(few // 1024), few, False),
        ("bit", np.unique(few // 1024), few, False),
        ("number", EVERY[3:5], None, False),
        ("amount", EVERY[:1], EVERY[:0], False),
        ("amount", EVERY, None, True),
        ("code", some, None, False),
        ("code", EVERY, _some_rows(0.3), False),
    ]
    requests = []
    for name, vectors, rows, packed in wanted:
        column = fragment.column(name)
        assert isinstance(column, PackedColumn)
        requests.append(
            ColumnRequest(column, vectors, rows, packed, lengths if name == "code" and not packed else None)
        )
    alone, *shared = by_each(lambda: read_columns(reader, requests, verify=True))
    for (name, vectors, rows, _), found in zip(wanted, alone, strict=True):
        values = found.values.decode() if isinstance(found.values, PackedVectors) else found.values
        ids = rows if rows is not None else np.flatnonzero(np.isin(np.arange(ROWS) // 1024, vectors))
        assert values.equals(_table().column(name).combine_chunks().take(pa.array(ids)))
        if name == "code":
            assert found.string_bytes == pc.sum(values).as_py()
    for columns in shared:
        for found, other in zip(columns, alone, strict=True):
            assert (found.counters, found.string_bytes) == (other.counters, other.string_bytes)
            if isinstance(other.values, PackedVectors):
                assert isinstance(found.values, PackedVectors)
                assert np.array_equal(np.asarray(found.values.payload), np.asarray(other.values.payload))
            else:
                assert found.values.equals(other.values)


def test_codes_beyond_a_dictionary(opened: tuple[Fragment, MappedReader]) -> None:
    """In the part of one thread only."""
    fragment, reader = opened
    column = fragment.column("code")
    assert isinstance(column, PackedColumn)
    request = ColumnRequest(column, EVERY, None, packed=False, lengths=np.arange(10**3 - 1))
    for threads in THREADS:
        with working_for(ThreadBudget(threads)), pytest.raises(CorruptionError, match="beyond"):
            read_columns(reader, [request], verify=True)


def test_ranges(opened: tuple[Fragment, MappedReader]) -> None:
    """The first that differs is said to, whichever thread has found one."""
    fragment, reader = opened
    begins = np.arange(0, fragment.data_bytes - 20_000, 4_000)
    lengths = np.random.default_rng(2).integers(0, 6_000, len(begins))
    data = np.fromfile(fragment.path, np.uint8)
    ranges = [data[b : b + n] for b, n in zip(begins.tolist(), lengths.tolist(), strict=True)]
    assert lengths.sum() > 2 << 20
    checksums = np.array([_native.crc32c(one) for one in ranges], np.uint32)
    for found in by_each(lambda: reader.read_ranges(begins, lengths, ReadCounters(), checksums)):
        assert np.array_equal(np.frombuffer(found, np.uint8), np.concatenate(ranges))
    first = len(ranges) * 2 // 3
    checksums[[first, first + 1, len(ranges) - 1]] += 1
    for threads in THREADS:
        with working_for(ThreadBudget(threads)), pytest.raises(RangeMismatchError) as raised:
            reader.read_ranges(begins, lengths, ReadCounters(), checksums)
        assert raised.value.index == first


@pytest.mark.parametrize("width", [8, 5])
def test_words(opened: tuple[Fragment, MappedReader], width: int) -> None:
    """Of rows that lie apart, each of which is a line of a cache to be waited for."""
    fragment, reader = opened
    rows = np.sort(np.random.default_rng(7).choice(fragment.data_bytes - 500, 20_000, replace=False))
    data = np.fromfile(fragment.path, np.uint8)
    words = np.stack([data[400 + byte + rows] for byte in range(width)], axis=1)

    def gather() -> tuple[pa.Buffer, ReadCounters]:
        counters = ReadCounters()
        return reader.gather(400, 1, width, rows, counters), counters

    alone, *shared = by_each(gather)
    assert np.array_equal(np.frombuffer(alone[0], np.uint8), words.ravel())
    for found, counters in shared:
        assert found.equals(alone[0])
        assert counters == alone[1]


@pytest.mark.parametrize("name", [*PACKED, "text"])
@pytest.mark.parametrize("vectors", [EVERY, EVERY[EVERY % 5 != 1]], ids=["all", "some"])
@pytest.mark.parametrize("share", [0.01, 0.9, None])
def test_vectors_in_memory(
    opened: tuple[Fragment, MappedReader], name: str, vectors: NDArray[np.int64], share: float | None
) -> None:
    fragment, reader = opened
    held = FragmentReader(fragment, reader, verify=True).read_packed(name, vectors, ReadCounters())
    assert isinstance(held, PackedVectors | FsstVectors)
    rows = _some_rows(1.0 if share is None else share, vectors)
    whole = _table().column(name).combine_chunks()
    for found in by_each(lambda: held.decode() if share is None else held.pick(rows)):
        found.validate(full=True)
        assert found.equals(whole.take(pa.array(rows)))


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

    alone, *shared = by_each(select)
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


@pytest.mark.parametrize("missing", [0, 57, 200, 400])
def test_picked_rows_of_no_vector(opened: tuple[Fragment, MappedReader], missing: int) -> None:
    """Before, between and behind those that are there."""
    fragment, reader = opened
    vectors = EVERY[missing != EVERY]
    held = FragmentReader(fragment, reader, verify=True).read_packed("number", vectors, ReadCounters())
    rows = np.union1d(_some_rows(0.5, vectors), [missing * 1024 + 5])
    for threads in THREADS:
        with working_for(ThreadBudget(threads)), pytest.raises(CorruptionError, match="position"):
            held.pick(rows)


@pytest.mark.parametrize("name", ["number", "text"])
def test_positions_that_do_not_ascend(opened: tuple[Fragment, MappedReader], name: str) -> None:
    """Where one thread's end, and another one's begin."""
    fragment, reader = opened
    held = FragmentReader(fragment, reader, verify=True).read_packed(name, EVERY, ReadCounters())
    assert isinstance(held, PackedVectors | FsstVectors)
    half = np.arange(200 * 1024)
    for threads in THREADS:
        with working_for(ThreadBudget(threads)), pytest.raises(CorruptionError, match="ascend"):
            held.pick(np.concatenate([half, half]))
