"""Which terms of grouping sets are one key: DuckDB goes by how they are written."""

from __future__ import annotations

import duckdb
import pytest

import bamquery

ROWS = "(VALUES (DATE '2020-01-02', 1), (DATE '2020-01-02', 2), (NULL, 2)) v(d, i)"
TABLE = f"(SELECT d, i, i::UTINYINT AS u FROM {ROWS})"


@pytest.mark.parametrize(
    "terms",
    [
        "d, d::DATE",
        "d::DATE, d",
        "i, TRY_CAST(i AS INTEGER)",
        "i, i::BIGINT",
        "i, (i)",
        "i, i",
        "d, i::INTEGER",
        "u, abs(u)",
        "abs(u), u",
    ],
)
def test_a_column_and_its_cast_are_two_keys(terms: str) -> None:
    sql = f"SELECT {terms}, GROUPING({terms}), count(*) FROM {TABLE} GROUP BY ROLLUP ({terms})"
    with bamquery.connect(device="cpu") as ours, duckdb.connect() as theirs:
        rows, expected = ours.sql(sql).fetchall(), theirs.sql(sql).fetchall()
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
