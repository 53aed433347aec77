"""Long lists of whole numbers after IN: one node, and the answers of one node for each number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

import bamquery
from bamquery.sql_frontend.binder.expressions import literal_lists
from tests.selection.effort import spread

KINDS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "UBIGINT",
    "HUGEINT",
    "DOUBLE",
    "DECIMAL(9, 2)",
)
LISTS = {
    "even": range(0, 600, 2),
    "negative": range(-400, 50),
    "large": [*range(2**63 - 300, 2**63), 7],
    "one of its type": [*range(2**31, 2**31 + 300), 5],
    "none of its type": range(2**62, 2**62 + 300),
    "beyond": [*range(2**63, 2**63 + 300), 3],
    "far beyond": [*range(10**30, 10**30 + 300), 3],
}


@pytest.fixture(scope="module")
def con() -> Iterator[bamquery.Connection]:
    with bamquery.connect(device="cpu") as con:
        columns = ", ".join(f"TRY_CAST(i AS {kind}) AS c{place}" for place, kind in enumerate(KINDS))
        con.sql(
            f"CREATE TABLE t AS SELECT {columns}, i::VARCHAR AS text FROM range(-300, 700) r(i) "
            f"UNION ALL SELECT {', '.join(['NULL'] * len(KINDS))}, NULL"
        )
        yield con


@pytest.mark.long
@pytest.mark.parametrize(("place", "numbers"), spread(product(range(len(KINDS)), LISTS), 9))
def test_answers_are_those_of_single_numbers(
    place: int, numbers: str, con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = ", ".join(map(str, LISTS[numbers]))
    column = f"c{place}"
    sql = (
        f"SELECT {column} IN ({written}), {column} NOT IN ({written}), count(*) FROM t "
        f"WHERE ({column} IN ({written})) IS DISTINCT FROM ({column} % 3 = 0) GROUP BY ALL ORDER BY ALL"
    )
    kept = f"SELECT count(*) FROM t WHERE {column} IN ({written})"
    found = con.sql(sql).fetchall(), con.sql(kept).fetchall()
    monkeypatch.setattr(literal_lists, "LONG", 10**6)
    # Other text: what was bound before is kept by its text.
    assert (con.sql(f"{sql} ").fetchall(), con.sql(f"{kept} ").fetchall()) == found


@pytest.mark.parametrize("other", ["NULL", "'7'", "1.5", "1e2", "c1", "7::BIGINT", "(SELECT 7)"])
def test_lists_with_anything_else(
    other: str, con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = ", ".join(map(str, range(300)))
    sql = f"SELECT c2 IN ({written}, {other}), count(*) FROM t GROUP BY ALL ORDER BY ALL"
    found = con.sql(sql).fetchall()
    monkeypatch.setattr(literal_lists, "LONG", 10**6)
    assert con.sql(f"{sql} ").fetchall() == found


def test_it_is_one_node(con: bamquery.Connection) -> None:
    written = ", ".join(map(str, range(-150, 150)))
    found = con.sql(f"SELECT count(*) FROM t WHERE c2 IN ({written})")
    shown = "\n".join(
        row[0] for row in con.sql(f"EXPLAIN SELECT 1 FROM t WHERE c2 IN ({written})").fetchall()
    )
    assert "c2 IN (300 values)" in shown
    assert found.fetchall() == [(300,)]


def test_constants_and_texts(con: bamquery.Connection) -> None:
    written = ", ".join(map(str, range(300)))
    assert con.sql(f"SELECT 7 IN ({written}), 700 IN ({written}), NULL IN ({written})").fetchall() == [
        (True, False, None)
    ]
    with pytest.raises(bamquery.SqlError, match="VARCHAR and INTEGER do not mix"):
        con.sql(f"SELECT count(*) FROM t WHERE text IN ({written})")
