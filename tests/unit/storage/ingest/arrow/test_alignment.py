"""Memory of others that begins anywhere, which Arrow allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bamquery
from bamquery.storage.ingest.arrow.alignment import aligned, aligned_batch

TEXTS = ["abc", None, "", "xabcx", "caba", "ab%c"] * 50
COLUMNS: tuple[pa.Array[Any], ...] = (
    pa.array(TEXTS, pa.large_string()),
    pa.array([None if n % 7 == 0 else n for n in range(300)], pa.int64()),
    pa.array(range(300), pa.int16()),
    pa.array(range(300), pa.int64()).cast(pa.decimal128(19, 0)),
    pa.array([n % 3 == 0 for n in range(300)]),
    pa.array(range(300), pa.int32()).cast(pa.date32()),
)


def moved(array: pa.Array[Any]) -> pa.Array[Any]:
    """The same values, each buffer at an odd address."""
    if isinstance(array, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(moved(array.indices), moved(array.dictionary))
    buffers = [
        None if buffer is None else pa.py_buffer(b"x" + buffer.to_pybytes()).slice(1)
        for buffer in array.buffers()
    ]
    return pa.Array.from_buffers(array.type, len(array), buffers, offset=array.offset)


def addresses(array: pa.Array[Any]) -> list[int]:
    return [buffer.address for buffer in array.buffers() if buffer is not None]


@pytest.mark.parametrize("array", COLUMNS, ids=lambda array: str(array.type))
@pytest.mark.parametrize("start", [0, 3])
def test_columns_are_copied_to_where_they_can_be_read(array: pa.Array[Any], start: int) -> None:
    given = moved(array).slice(start)
    assert any(address % 8 for address in addresses(given))
    found = aligned(given)
    assert not any(address % 8 for address in addresses(found))
    assert found.equals(array.slice(start))


def test_what_can_be_read_is_not_copied() -> None:
    batch = pa.RecordBatch.from_arrays(list(COLUMNS), [str(i) for i in range(len(COLUMNS))])
    assert aligned_batch(batch) is batch
    assert all(aligned(array) is array for array in COLUMNS)
    names = pa.array(TEXTS).dictionary_encode()
    assert aligned(names) is names


def test_dictionaries() -> None:
    names: Any = COLUMNS[0].dictionary_encode()
    found: Any = aligned(moved(names))
    assert not any(address % 8 for part in (found.indices, found.dictionary) for address in addresses(part))
    assert found.equals(names)


def test_tables_with_such_columns_are_asked_and_stored(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(len(COLUMNS))]
    table = pa.table([moved(array) for array in COLUMNS], names)
    wanted = pa.table(list(COLUMNS), names).to_pylist()
    with bamquery.connect(tmp_path / "some.bq", device="cpu") as con:
        con.register("given", table)
        assert con.sql("SELECT count(*) FROM given WHERE c0 LIKE '%abc%'").fetchone() == (100,)
        assert con.sql("SELECT count(*) FROM given WHERE c0 LIKE 'a%c'").fetchone() == (100,)
        con.sql("CREATE TABLE made AS SELECT * FROM given")
        con.load("loaded", table)
        for name in ("made", "loaded"):
            assert con.sql(f"SELECT * FROM {name}").to_arrow().to_pylist() == wanted
