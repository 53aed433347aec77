"""Values outside of their types, DuckDB's infinite dates among them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import IngestError, StorageError
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.statistics.type_bounds import first_outside

_DAY_LIMIT, _LIMIT = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize("name", ["infinity", "-infinity"])
@pytest.mark.parametrize(
    "kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
)
def test_files_of_duckdb(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        query = f"SELECT * FROM (VALUES (1, NULL), (2, '2024-01-01'::{kind}), (3, '{name}'::{kind})) t(a, d)"
        connection.sql(f"COPY ({query}) TO '{path}'")
    source = open_source(path)
    assert [batch.num_rows for batch in source.batches(["a"])] == [3]
    with pytest.raises(IngestError, match=rf'row 3 of row group 0, column "d": .* has no {name} here'):
        list(source.batches())


@pytest.mark.parametrize(
    ("kind", "storage", "low", "high"),
    [
        (pa.date32(), pa.int32(), -(2**31) + 2, 2**31 - 2),
        (pa.timestamp("us"), pa.int64(), -(2**63) + 2, 2**63 - 2),
        (pa.timestamp("ns"), pa.int64(), -(2**63) + 2, 2**63 - 2),
        (pa.timestamp("us", "UTC"), pa.int64(), -(2**63) + 2, 2**63 - 2),
        (pa.timestamp("ms"), pa.int64(), -((2**63 - 2) // 1000), (2**63 - 2) // 1000),
        (pa.timestamp("s"), pa.int64(), -((2**63 - 2) // 10**6), (2**63 - 2) // 10**6),
        (pa.time64("us"), pa.int64(), 0, 86_400 * 10**6),
        (pa.time64("ns"), pa.int64(), 0, 86_400 * 10**9),
    ],
)
def test_numbers_beyond_the_ends(kind: pa.DataType, storage: pa.DataType, low: int, high: int) -> None:
    def place(*values: int | None) -> int | None:
        found = first_outside(pa.array(values, storage).view(kind))
        return None if found is None else found[0]

    assert place(low, None, high) is None
    assert place(None, high + 1, low) == 1
    assert place(high, low, low - 1, high + 1) == 2
    assert place(None) is None
    assert place() is None


def test_infinities_are_named() -> None:
    infinite = pa.array([_LIMIT, -_LIMIT]).view(pa.timestamp("us"))
    assert "has no infinity here" in str(first_outside(infinite))
    assert "has no -infinity here" in str(first_outside(infinite.slice(1)))


def _decimals(unscaled: list[int], kind: pa.Decimal128Type) -> pa.Array:
    words = b"".join(number.to_bytes(16, "little", signed=True) for number in unscaled)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(words)])


@pytest.mark.parametrize("kind", [pa.decimal128(4, 2), pa.decimal128(38, 0), pa.decimal128(18, 18)])
def test_digits_beyond_those_of_a_decimal(kind: pa.Decimal128Type) -> None:
    most = 10**kind.precision - 1
    assert first_outside(_decimals([most, -most, 0], kind)) is None
    assert first_outside(_decimals([most, 0, -most - 1, most + 1], kind))[0] == 2  # type: ignore[index]


def test_a_dictionary_has_the_bounds_of_its_values() -> None:
    days = pa.array([0, _DAY_LIMIT], pa.int32()).view(pa.date32())
    assert first_outside(pa.DictionaryArray.from_arrays(pa.array([0, 0]), days)) is None
    assert first_outside(pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), days))[0] == 2  # type: ignore[index]


def test_other_types_are_not_looked_at() -> None:
    assert first_outside(pa.array([_LIMIT])) is None


_OUTSIDE = {
    "decimal": _decimals([5, 2**127 - 1], pa.decimal128(38, 0)),
    "short": _decimals([5, 10**30], pa.decimal128(4, 2)),
    "time": pa.array([5, 2**62], pa.int64()).view(pa.time64("us")),
    "time32": pa.array([5, -5], pa.int32()).view(pa.time32("s")),
    "date64": pa.array([0, 2**62], pa.int64()).view(pa.date64()),
    "seconds": pa.array([5, 2**62], pa.int64()).view(pa.timestamp("s")),
}


@pytest.mark.parametrize("what", _OUTSIDE)
def test_a_table_takes_no_value_that_it_could_not_read(what: str, tmp_path: Path) -> None:
    table = pa.table({"i": _OUTSIDE[what]})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with bamquery.connect(tmp_path / "db", threads=1) as connection:
        connection.load("kept", table.slice(0, 1))
        connection.register("given", table)
        for attempt in (
            lambda: connection.load("kept", table, if_exists="append"),
            lambda: connection.sql("INSERT INTO kept SELECT * FROM given"),
            lambda: connection.sql("SELECT * FROM given").to_arrow(),
            lambda: connection.sql(f"INSERT INTO kept SELECT * FROM '{tmp_path / 'x.arrow'}'"),
        ):
            with pytest.raises(IngestError, match='column "i"'):
                attempt()
        assert connection.sql("SELECT count(i) FROM kept").fetchall() == [(1,)]


def test_the_writer_of_a_column_refuses_them_too() -> None:
    rows = _decimals([5, 10**38], pa.decimal128(38, 0))
    batch = pa.record_batch([rows], ["i"])
    with bamquery.connect() as connection:
        database = connection._session.database
        with database.create_table("t", batch.schema) as writer:
            writer.write(batch)
            with pytest.raises(
                StorageError, match=r"cannot be stored: DECIMAL\(38,0\) does not have so many"
            ):
                writer.commit()
        assert not database.has_table("t")
