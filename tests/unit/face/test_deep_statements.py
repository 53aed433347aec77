"""Statements that are too deep to be planned or run: an error of ours, not one of Python's."""

from __future__ import annotations

from pathlib import Path

import pytest

import bamquery
from bamquery.errors import SqlError


@pytest.mark.parametrize("before", ["", "EXPLAIN "])
def test_too_many_joins(tmp_path: Path, before: str) -> None:
    tables = "t t0 " + " ".join(f"JOIN t t{place} USING (i)" for place in range(1, 400))
    with bamquery.connect(tmp_path / "db") as con:
        con.sql("CREATE TABLE t (i BIGINT)")
        with pytest.raises(SqlError, match="too many joins"):
            con.sql(f"{before}SELECT count(*) FROM {tables} WHERE t0.i = 5").fetchall()
