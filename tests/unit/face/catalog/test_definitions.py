"""SHOW CREATE gives SQL that makes an equal table or view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bamquery
from tests.selection.effort import effort

TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("UBIGINT", "FLOAT", "DOUBLE", "DECIMAL(9,4)", "VARCHAR", "BLOB", "DATE", "TIME", "TIME_NS"),
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"),
)
WORDS = (
    *("a", "A", "order", "Select", "two words", 'with "quotes"', "with.point", "été", "1st", "_", "main"),
    *("date", "interval", "left", "not null", "a;b", "--", "it's", "values", "rowid", "index", "type"),
)
DEFAULTS = {
    "INTEGER": ("7", "-3", "2 + 3", "NULL"),
    "VARCHAR": ("'x'", "'it''s'", "'two\nlines'", "'a;b -- c'", "upper('q')", "''"),
    "DATE": ("DATE '2024-01-31'", "'2024-01-31'"),
    "DOUBLE": ("1.5", "-0.0", "1e10", "'nan'::DOUBLE"),
    "BOOLEAN": ("true", "NOT true"),
    "DECIMAL(9,4)": ("1.25", "round(2.345, 2)"),
    "TIMESTAMP": ("TIMESTAMP '2024-01-31 10:00:00'",),
    "BLOB": (r"'\xAA\x00'::BLOB",),
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@st.composite
def columns(draw: st.DrawFn) -> list[str]:
    names = draw(
        st.lists(
            st.one_of(
                st.sampled_from(WORDS), st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
            ),
            min_size=1,
            max_size=6,
            unique_by=lambda name: name.casefold(),
        )
    )
    written = []
    for name in names:
        kind = draw(st.sampled_from(TYPES))
        default = draw(st.sampled_from(DEFAULTS.get(kind, ("NULL",))))
        has_default, not_null = draw(st.booleans()), draw(st.booleans())
        text = f"{quoted(name)} {kind}{f' DEFAULT {default}' if has_default else ''}{' NOT NULL' * not_null}"
        written.append(text)
    return written


@pytest.fixture(scope="module")
def database() -> Iterator[bamquery.Connection]:
    with bamquery.connect() as con:
        yield con


def described(con: bamquery.Connection, name: str) -> list[tuple[Any, ...]]:
    return con.sql(f"DESCRIBE {quoted(name)}").fetchall()


@pytest.mark.long
@settings(
    max_examples=effort(20, 1000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(columns(), st.sampled_from([word for word in WORDS if word != "with.point"]))
def test_a_table_reads_back(database: bamquery.Connection, defined: list[str], name: str) -> None:
    table = quoted(name)
    database.sql(f"CREATE TABLE {table} ({', '.join(defined)})")
    try:
        before = described(database, name)
        ((shown, sql),) = database.sql(f"SHOW CREATE TABLE {table}").fetchall()
        assert shown == name
        database.sql(f"DROP TABLE {table}")
        database.sql(sql)
        assert described(database, name) == before
        assert database.sql(f"SHOW CREATE TABLE main.{table}").fetchall() == [(name, sql)]
    finally:
        database.sql(f"DROP TABLE IF EXISTS {table}")


VIEWS = [
    ("v", "CREATE VIEW v AS SELECT 1 AS a"),
    ('"V 2"', 'CREATE VIEW "V 2" (q, "r s") AS SELECT 1, 2'),
    ("w", "CREATE VIEW w AS\n  WITH x AS (VALUES (1, 'it''s; -- not'))\n  FROM x -- the end\n"),
    ("o", 'CREATE VIEW o ("order") AS (SELECT 1) UNION ALL (SELECT 2) ORDER BY 1'),
]


@pytest.mark.parametrize(("name", "text"), VIEWS)
def test_a_view_reads_back(con: bamquery.Connection, name: str, text: str) -> None:
    con.sql(text)
    before = con.sql(f"FROM {name}").fetchall()
    ((shown, sql),) = con.sql(f"SHOW CREATE VIEW {name}").fetchall()
    assert shown == name.strip('"')
    con.sql(f"DROP VIEW {name}")
    con.sql(sql)
    assert con.sql(f"FROM {name}").fetchall() == before
    assert con.sql(f"SHOW CREATE VIEW {name}").fetchall() == [(shown, sql)]


def test_all_definitions_in_their_order(con: bamquery.Connection) -> None:
    """What sqlite_master has of a database makes another one."""
    con.sql("CREATE TABLE t (a INTEGER NOT NULL DEFAULT 3); CREATE VIEW v AS FROM t")
    texts = [sql for (sql,) in con.sql("SELECT sql FROM sqlite_master ORDER BY type").fetchall()]
    with bamquery.connect() as other:
        for text in texts:
            other.sql(text)
        assert other.sql("SELECT type, name, sql FROM sqlite_master").to_arrow() == (
            con.sql("SELECT type, name, sql FROM sqlite_master").to_arrow()
        )


def test_names_are_as_they_were_written(con: bamquery.Connection) -> None:
    con.sql('CREATE TABLE "Trips" ("Id" INTEGER); CREATE VIEW "Long" AS FROM "Trips"')
    for name, kind in (("Trips", "TABLE"), ("Long", "VIEW")):
        ((shown, sql),) = con.sql(f"SHOW CREATE {kind} {name.lower()}").fetchall()
        assert shown == name
        assert f'"{name}"' in sql


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SHOW CREATE TABLE tripz", 'there is no table "tripz". Did you mean "trips"?'),
        ("SHOW CREATE TABLE information_schema.tables", "was not made by SQL"),
        ("SHOW CREATE SEQUENCE x", "expecting TABLE or VIEW"),
        ("SHOW CREATE TABLE other.trips", 'there is no schema "other"'),
    ],
)
def test_errors(con: bamquery.Connection, text: str, words: str) -> None:
    con.sql("CREATE TABLE trips (a INTEGER)")
    with pytest.raises(bamquery.SqlError) as caught:
        con.sql(text)
    assert words in str(caught.value)
