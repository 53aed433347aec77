"""Answers that stay on the GPU, and how queries share it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.engine.device import Device
from bamquery.errors import BamQueryError, MemoryLimitError
from tests.strategies import PLAIN_TYPES, array, specials
from tests.values import plain

pytestmark = pytest.mark.filterwarnings("default")  # what cuDF and its friends warn of as they are imported

ROWS = 5000


def _table() -> pa.Table:
    columns: dict[str, Any] = {"row": pa.array(range(ROWS), pa.int64())}
    for kind in PLAIN_TYPES:
        if pa.types.is_large_binary(kind):
            continue
        values = [None, *specials(kind)]
        columns[f"c{len(columns)}"] = array([values[i % len(values)] for i in range(ROWS)], kind)
    names = ["Cash", "Card", None]
    columns["paid"] = pa.array([names[i % 3] for i in range(ROWS)]).dictionary_encode()
    return pa.table(columns)


@pytest.fixture
def database(device: Device[Any]) -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cuda:0") as connection:
        connection.load("t", _table())
        yield connection


def test_a_cudf_frame_has_the_answers_values(database: bamquery.Connection) -> None:
    cudf = pytest.importorskip("cudf")
    relation = database.sql("SELECT * FROM t WHERE row % 7 <> 3")
    frame = relation.to_cudf()
    assert isinstance(frame, cudf.DataFrame)
    expected = relation.to_arrow()
    assert list(frame.columns) == expected.column_names
    assert str(frame["paid"].dtype) == "category"
    assert frame["paid"].astype("str").to_arrow().to_pylist() == expected["paid"].to_pylist()
    for name in expected.column_names:
        kind = expected.schema.field(name).type
        if name == "paid" or pa.types.is_floating(kind):
            continue
        column = frame[name].to_arrow()
        assert column.null_count == expected[name].null_count, name
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
            assert column.to_pylist() == expected[name].to_pylist(), name
    profile = relation.profile
    assert profile.device == "cuda:0"


def test_a_frame_outlives_its_connection(device: Device[Any]) -> None:
    pytest.importorskip("cudf")
    with bamquery.connect(device="cuda:0") as connection:
        connection.load("t", pa.table({"x": pa.array(range(ROWS), pa.int64())}))
        frame = connection.sql("SELECT x, x * 2 AS y FROM t").to_cudf()
        others = [connection.sql("SELECT sum(x) FROM t").fetchall() for _ in range(20)]
    assert {int(rows[0][0]) for rows in others} == {ROWS * (ROWS - 1) // 2}
    assert int(frame["y"].sum()) == ROWS * (ROWS - 1)


def test_no_rows_and_no_columns(database: bamquery.Connection) -> None:
    pytest.importorskip("cudf")
    assert len(database.sql('SELECT "row" FROM t WHERE "row" < 0').to_cudf()) == 0


def test_arrays_for_cupy_and_torch(database: bamquery.Connection) -> None:
    cupy = pytest.importorskip("cupy")
    relation = database.sql("SELECT row, row / 2 AS half, row > 10 AS late FROM t ORDER BY row")
    arrays = relation.to_cupy()
    assert set(arrays) == {"row", "half", "late"}
    assert arrays["half"].dtype == cupy.float64
    assert float(arrays["half"].sum()) == ROWS * (ROWS - 1) / 4
    assert int(arrays["late"].sum()) == ROWS - 11
    torch = pytest.importorskip("torch")
    tensors = relation.to_torch()
    assert int(tensors["row"].sum()) == ROWS * (ROWS - 1) // 2
    assert tensors["row"].device == torch.device("cuda:0")


def test_arrays_have_no_nulls_and_no_text(database: bamquery.Connection) -> None:
    pytest.importorskip("cupy")
    with pytest.raises(BamQueryError, match='"c1" has nulls'):
        database.sql("SELECT c1 FROM t").to_cupy()
    with pytest.raises(BamQueryError, match='"word" of type VARCHAR is no array'):
        database.sql("SELECT 'a' AS word FROM t").to_cupy()


def test_a_gpu_memory_limit_is_kept_and_named(database: bamquery.Connection) -> None:
    database.load("big", pa.table({"x": pa.array(range(1_000_000), pa.int64())}))
    database.set("gpu_memory_limit", "1MiB")
    with pytest.raises(MemoryLimitError, match=r"on the GPU, and gpu_memory_limit is 1\.0 MiB"):
        database.sql("SELECT x + 1 FROM big ORDER BY x DESC").to_arrow()
    database.set("gpu_memory_limit", None)
    assert database.sql("SELECT count(*) FROM big").fetchone() == (1_000_000,)


def test_queries_of_several_threads(database: bamquery.Connection) -> None:
    def ask(place: int) -> Any:
        sql = f"SELECT count(*), sum(row), min(c5) FROM t WHERE row % {place + 2} = 1 GROUP BY c1 ORDER BY 2"
        return [tuple(row) for row in database.sql(sql).fetchall()]

    expected = [ask(i) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert list(pool.map(ask, range(8))) == expected


def test_many_queries_leak_no_memory(device: Any) -> None:
    runtime = pytest.importorskip("cuda.bindings.runtime")
    with bamquery.connect(device="cuda:0") as connection:
        connection.load("t", pa.table({"x": pa.array(range(100_000), pa.int64())}))

        def ask(times: int) -> None:
            for _ in range(times):
                connection.sql("SELECT x % 7, sum(x) FROM t WHERE x > 10 GROUP BY 1").to_arrow()

        ask(20)
        device.session.synchronize()
        _, free, _ = runtime.cudaMemGetInfo()
        ask(200)
        device.session.synchronize()
        _, left, _ = runtime.cudaMemGetInfo()
    assert free - left < 64 << 20


def test_the_same_rows_as_on_the_cpu(database: bamquery.Connection) -> None:
    sql = "SELECT * FROM t WHERE row BETWEEN 100 AND 400 ORDER BY row"
    ours = database.sql(sql).to_arrow()
    database.set("device", "cpu")
    theirs = database.sql(sql).to_arrow()
    for name in ours.column_names:
        assert str(plain(ours[name])) == str(plain(theirs[name])), name
