"""Names of columns that a source has several times."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bamquery.storage.ingest.sources.column_names import names_in_file, names_in_object

_NAMES = [
    ["a", "b"],
    ["a", "a", "a"],
    ["a", "A", "a"],
    ["a", "a", "A"],
    ["A", "a", "A_1"],
    ["a", "a_1", "a"],
    ["a_1", "a", "a", "a"],
    ["a_1", "A", "a"],
    ["a", "a", "a_1", "a_1"],
]


@pytest.mark.parametrize("names", _NAMES, ids=" ".join)
def test_names_are_those_of_duckdb(names: list[str], tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]) for _ in names], names=names)
    path = tmp_path / "names.parquet"
    pq.write_table(table, path)
    with duckdb.connect() as connection:
        assert names_in_object(names) == connection.from_arrow(table).columns
        assert names_in_file(names) == connection.read_parquet(str(path)).columns


def test_a_name_made_is_one_that_later_columns_meet() -> None:
    assert names_in_object(["a", "a_1", "a"]) == ["a", "a_1", "a_2"]
    assert names_in_file(["a", "a_1", "a"]) == ["a", "a_1", "a_1_1"]
