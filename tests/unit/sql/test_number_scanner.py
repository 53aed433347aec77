"""Numbers end where DuckDB's end."""

from __future__ import annotations

import duckdb
import pytest

from bamquery.errors import SqlError
from bamquery.sql.parser import parse

NUMBERS = ("7", "1_000", "1.5", "5.", ".5", "1.e3", ".5e3", "1e3", "1E3", "1e+3", "1e-3", "1_0e1_0")
WRONG = ("1e", "1e+", "1e-", "1.5e", "1e5.5", "1.5.5", "1..5", "1e3.", "1e3e3", ".5.", ".5.5", ".5e3.5")


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("rest", ["", "+2", "-2", "+2e1-1e-1", "*2", " x", "x"])
def test_the_rest_is_not_part_of_it(number: str, rest: str) -> None:
    sql = f"SELECT {number}{rest}"
    (tree,) = parse(sql)
    assert duckdb.sql(tree.sql("duckdb")).fetchall() == duckdb.sql(sql).fetchall()


@pytest.mark.parametrize("text", WRONG)
def test_what_is_none(text: str) -> None:
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"SELECT {text}").fetchall()
    with pytest.raises(SqlError, match="is not a number") as error:
        parse(f"SELECT 1,\n  {text}")
    assert (error.value.reasons[0].line, error.value.reasons[0].column) == (2, 3 + text.startswith("."))
