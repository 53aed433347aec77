"""ORDER BY and the first rows in an order, on every device against DuckDB."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute
import pytest

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base import frame_sizing as framing
from bamquery.engine.operators.limit import Limit
from bamquery.engine.operators.sort import external_sort as sorted_rows
from bamquery.engine.operators.sort import sorted_runs as sort_runs
from bamquery.engine.operators.sort.sort import Sort
from bamquery.engine.operators.sort.top_n import TopN
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, MemoryLimitError
from bamquery.plan.expressions import Call
from bamquery.plan.nodes import SortKey
from tests.conformance.harness import Forever, Rows, assert_same, random_table, reference, run
from tests.conformance.spilling import run_spilling
from tests.oracle import ask
from tests.selection.effort import spread
from tests.strategies import ALL_TYPES, CHUNK_SIZES, PLAIN_TYPES

ROWS = 4300


def order_by(keys: list[SortKey]) -> str:
    """The keys in SQL; rows that are equal in them stay in their order."""
    directions = {False: "ASC", True: "DESC"}
    nulls = {False: "LAST", True: "FIRST"}
    terms = [f"{k.expression.name} {directions[k.descending]} NULLS {nulls[k.nulls_first]}" for k in keys]
    return ", ".join([*terms, "row"])


@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
@pytest.mark.parametrize("order", list(product([False, True], repeat=2)), ids=str)
def test_keys_of_every_type(
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    kind: pa.DataType,
    order: tuple[bool, bool],
) -> None:
    table = random_table([kind], ROWS)
    keys = [SortKey(reference(table, "a"), *order)]
    expected = ask(oracle, f"SELECT * FROM t ORDER BY {order_by(keys)}", t=table)
    assert_same(run(Sort(Rows(table), keys), device), expected)
    top = run(TopN(Rows(table), keys, 100, 17), device)
    assert_same(top, expected.slice(17, 100))


@pytest.mark.parametrize("seed", range(12))
def test_several_keys(oracle: duckdb.DuckDBPyConnection, device: Device[Any], seed: int) -> None:
    generator = random.Random(seed)
    table = random_table(generator.choices(PLAIN_TYPES, k=3), ROWS, seed)
    keys = [
        SortKey(reference(table, name), generator.random() < 0.5, generator.random() < 0.5)
        for name in generator.sample("abc", k=3)
    ]
    expected = ask(oracle, f"SELECT * FROM t ORDER BY {order_by(keys)}", t=table)
    assert_same(run(Sort(Rows(table), keys), device), expected)
    assert_same(run(TopN(Rows(table), keys, 1030, 5), device), expected.slice(5, 1030))


@pytest.mark.parametrize("sizes", [[size, 1025] for size in CHUNK_SIZES], ids=str)
@pytest.mark.parametrize(("count", "offset"), [(0, 0), (1, 0), (3, 2), (5000, 0), (10, 4295), (10, 5000)])
def test_first_rows(device: Device[Any], sizes: list[int], count: int, offset: int) -> None:
    table = random_table([pa.int8()], ROWS)
    keys = [SortKey(reference(table, "a"), True, True)]
    expected = run(Sort(Rows(table), keys), device).slice(offset, count)
    assert_same(run(TopN(Rows(table, sizes), keys, count, offset), device), expected)


def test_keys_are_expressions(oracle: duckdb.DuckDBPyConnection, device: Device[Any]) -> None:
    table = random_table([pa.float64()], ROWS)
    negated = SortKey(Call("negate", (reference(table, "a"),), pa.float64()))
    expected = ask(oracle, "SELECT * FROM t ORDER BY -a ASC NULLS LAST, row", t=table)
    assert_same(run(Sort(Rows(table), [negated]), device), expected)


def test_no_keys_keep_the_order(device: Device[Any]) -> None:
    table = random_table([pa.int64()], 100)
    assert_same(run(TopN(Rows(table), [], 10, 5), device), table.slice(5, 10))


@pytest.mark.parametrize("distinct", [1, 3, 10**9], ids=["one key", "few keys", "many keys"])
@pytest.mark.parametrize("sizes", [[1000], [0, 1, 30_000], [10**6]], ids=str)
def test_buckets(
    device: Device[Any], monkeypatch: pytest.MonkeyPatch, sizes: list[int], distinct: int
) -> None:
    """More rows than are sorted at once."""
    monkeypatch.setattr(sorted_rows, "_BUCKET_ROWS", 2000)
    random_keys = random.Random(1)
    keys = pa.array([random_keys.choice([None, random_keys.randrange(distinct)]) for _ in range(70_000)])
    table = pa.table({"a": keys, "row": pa.array(range(70_000), pa.int64())})
    order = [SortKey(reference(table, "a"), descending=True)]
    expected = table.take(
        pa.compute.sort_indices(table, sort_keys=[("a", "descending"), ("row", "ascending")])
    )
    assert run(Sort(Rows(table, sizes), order), device).equals(expected)


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(device: Device[Any], rows: int) -> None:
    table = random_table([pa.large_string()], rows)
    keys = [SortKey(reference(table, "a"))]
    assert_same(run(Sort(Rows(table), keys), device), table)
    assert_same(run(TopN(Rows(table), keys, 5, 0), device), table)


def test_many_rows_need_no_memory_for_their_first(device: Device[Any]) -> None:
    """50 MB of rows pass through; the first ten of them are all that is held."""
    table = random_table([pa.int64(), pa.large_string()], 100_000)
    operator = TopN(Rows(pa.concat_tables([table] * 20), [5000]), [SortKey(reference(table, "row"))], 10, 0)
    assert run(operator, device, memory_limit="1MB").column("row").to_pylist() == [0] * 10
    assert operator.profile.details["peak_memory"] < 1_000_000


def test_a_sort_holds_no_more_than_it_may(device: Device[Any]) -> None:
    table = random_table([pa.int64()], 100_000)
    child = Forever(table.combine_chunks().to_batches()[0])
    with (
        ExecutionContext(device, Settings().with_value("memory_limit", "50MB")) as context,
        pytest.raises(MemoryLimitError, match=r"ORDER BY needs .* and memory_limit is 47\.7 MiB"),
    ):
        list(Sort(child, [SortKey(reference(table, "a"))]).frames(context))
    assert child.closed
    assert context.memory.used == 0


@pytest.fixture
def small_chunks(device: Device[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs have several chunks."""
    monkeypatch.setattr(framing, "GATHERED_ROWS", 300 // device.task_size)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "order"), spread(product(ALL_TYPES, [(False, False), (True, True)]), 5), ids=str
)
def test_keys_of_every_type_in_files(
    oracle: duckdb.DuckDBPyConnection,
    device: Device[Any],
    tmp_path: Path,
    kind: pa.DataType,
    order: tuple[bool, bool],
) -> None:
    table = random_table([kind], ROWS)
    keys = [SortKey(reference(table, "a"), *order)]
    expected = ask(oracle, f"SELECT * FROM t ORDER BY {order_by(keys)}", t=table)
    operator = Sort(Rows(table), keys)
    assert_same(run_spilling(operator, device, tmp_path, "96 KiB"), expected)
    assert operator.profile.details["runs"] > 1
    assert operator.profile.details["spilled"] > 0
    top = TopN(Rows(table), keys, 4000, 17)
    assert_same(run_spilling(top, device, tmp_path, "96 KiB"), expected.slice(17, 4000))
    assert top.profile.details["runs"] > 1


@pytest.mark.parametrize("limit", ["60 kB", "300 kB"])
@pytest.mark.parametrize("distinct", [1, 3, 10**9], ids=["one key", "few keys", "many keys"])
def test_runs_are_merged_in_stable_order(
    device: Device[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distinct: int, limit: str
) -> None:
    """Also in several passes, by portions of few rows."""
    monkeypatch.setattr(framing, "GATHERED_ROWS", 1000 // device.task_size)
    monkeypatch.setattr(sort_runs, "PORTION_ROWS", 700)
    random_keys = random.Random(1)
    keys = pa.array([random_keys.choice([None, random_keys.randrange(distinct)]) for _ in range(20_000)])
    table = pa.table({"a": keys, "row": pa.array(range(20_000), pa.int64())})
    order = [SortKey(reference(table, "a"), descending=True)]
    expected = table.take(
        pa.compute.sort_indices(table, sort_keys=[("a", "descending"), ("row", "ascending")])
    )
    assert run_spilling(Sort(Rows(table, [1000]), order), device, tmp_path, limit).equals(expected)


def test_runs_that_are_in_order_already(device: Device[Any], tmp_path: Path) -> None:
    """No two runs meet: each is read to its end before the next one."""
    table = pa.table({"a": pa.array(range(200_000), pa.int64())})
    order = [SortKey(reference(table, "a"))]
    operator = Sort(Rows(table, [70_000]), order)
    assert run_spilling(operator, device, tmp_path, "1 MB").equals(table)


def test_a_merge_that_nobody_reads_to_its_end(device: Device[Any], tmp_path: Path) -> None:
    table = random_table([pa.int64()], 100_000)
    settings = Settings().with_values({"threads": 2, "memory_limit": "500 kB"})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:
        operator = Limit(Sort(Rows(table), [SortKey(reference(table, "a"))]), 5, 0)
        frames = [device.row_count(frame) for frame in operator.frames(context)]
    assert sum(frames) == 5
    assert context.memory.used == 0
    assert list(tmp_path.iterdir()) == []


def _all_but_cancelled(frames: Iterator[Any], context: ExecutionContext[Any]) -> None:
    for _ in frames:
        context.cancelled.set()


@pytest.mark.parametrize("rows", [0, 3])
def test_a_sort_is_cancelled_between_blocks(device: Device[Any], tmp_path: Path, rows: int) -> None:
    """While runs are written, and while they are merged."""
    table = random_table([pa.int64()], 100_000)
    batch = table.combine_chunks().to_batches()[0]
    settings = Settings().with_values({"threads": 2, "memory_limit": "2 MB"})
    with ExecutionContext(device, settings, spill_folder=tmp_path) as context:

        def cancel(given: int) -> None:
            if given == 20:
                context.cancelled.set()

        endless = Forever(batch, cancel)
        child = Rows(pa.concat_tables([table] * rows)) if rows else endless
        frames = Sort(child, [SortKey(reference(table, "a"))]).frames(context)
        with pytest.raises(CancelledError):
            _all_but_cancelled(frames, context)
        assert context.memory.used == 0


@pytest.mark.usefixtures("small_chunks")
def test_equal_zeros_and_nans_keep_their_places_over_runs(device: Device[Any], tmp_path: Path) -> None:
    """-0.0 equals 0.0, and all NaN are one: rows of them stand in the order in which they came."""
    values = [0.0, -0.0, math.nan, -math.nan, 1.5, None, -math.inf]
    table = pa.table({"a": pa.array(values * 900, pa.float64()), "row": pa.array(range(6300), pa.int64())})
    ranks = {1: 3, 0: 2, -1: 0}
    for descending, nulls_first in ((False, False), (True, False), (False, True)):
        operator = Sort(Rows(table, [100]), [SortKey(reference(table, "a"), descending, nulls_first)])
        rows = run_spilling(operator, device, tmp_path, "60 kB").column("row").to_pylist()
        assert operator.profile.details["passes"] > 1

        def rank(row: int) -> tuple[bool, int]:
            value = values[row % 7]
            if value is None:
                return not nulls_first, 0  # noqa: B023
            place = 9 if math.isnan(value) else ranks[(value > 0) - (value == -math.inf)]
            return nulls_first, -place if descending else place  # noqa: B023

        assert rows == sorted(range(6300), key=rank)


@pytest.mark.usefixtures("small_chunks")
def test_texts_longer_than_a_block(
    oracle: duckdb.DuckDBPyConnection, device: Device[Any], tmp_path: Path
) -> None:
    """A row weighs more than what runs are read by, and more than many rows beside it."""
    texts = [f"{i * 37 % 11:02}" + "x" * (4000 if i % 40 == 7 else i % 5) for i in range(1500)]
    table = pa.table({"a": pa.array(texts, pa.large_string()), "row": pa.array(range(1500), pa.int64())})
    keys = [SortKey(reference(table, "a"), True), SortKey(reference(table, "row"))]
    expected = ask(oracle, f"SELECT * FROM t ORDER BY {order_by(keys)}", t=table)
    operator = Sort(Rows(table, [70]), keys)
    assert_same(run_spilling(operator, device, tmp_path, "300 kB"), expected)
    assert operator.profile.details["runs"] > 1


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("count", "offset"), [(1, 2999), (700, 650), (3000, 0), (10, 4000), (None, 1700)])
def test_limits_over_the_borders_of_runs(
    device: Device[Any], tmp_path: Path, count: int | None, offset: int
) -> None:
    numbers = [i * 1009 % 3000 for i in range(3000)]
    table = pa.table({"a": pa.array(numbers, pa.int64()), "row": pa.array(range(3000), pa.int64())})
    operator = Limit(Sort(Rows(table, [100]), [SortKey(reference(table, "a"))]), count, offset)
    rows = run_spilling(operator, device, tmp_path, "40 kB").column("a").to_pylist()
    assert rows == list(range(3000))[offset : None if count is None else offset + count]
    assert operator.children[0].profile.details["runs"] > 1
