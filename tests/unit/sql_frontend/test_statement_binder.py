"""Several statements: parsed and checked together, bound one after the other."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bamquery.errors import CatalogError, SqlError, UnsupportedError
from bamquery.plan.bound_statements import CreateTableAs, Query
from bamquery.sql_frontend.statement_binder import bind
from tests.plans import MemoryCatalog, SchemaOnly, catalog


def test_each_is_bound_when_asked_for() -> None:
    """A statement may use what the one before it makes."""
    tables: list[SchemaOnly] = []

    class Growing(MemoryCatalog):
        def table(self, name: str) -> SchemaOnly:
            self._tables = tuple(tables)
            return super().table(name)

    statements = bind("CREATE TABLE a AS SELECT 1 AS x; SELECT x FROM a;", Growing())
    created = next(statements)
    assert isinstance(created, CreateTableAs)
    tables.append(SchemaOnly("a", pa.schema([("x", pa.int32())])))
    assert isinstance(next(statements), Query)
    assert next(statements, None) is None


def test_nothing_is_given_out_if_one_cannot_be_parsed() -> None:
    with pytest.raises(SqlError, match="syntax error"):
        bind("SELECT 1; SELECT (2", catalog())


def test_refusals_of_all_statements_come_together() -> None:
    with pytest.raises(UnsupportedError) as caught:
        bind("DELETE FROM trips;\nSELECT 1;\nSELECT 1, [1]", catalog())
    assert [(r.line, r.column) for r in caught.value.reasons] == [(1, 1), (3, 11)]


def test_empty() -> None:
    assert list(bind("", catalog())) == []
    assert list(bind(" ;; -- nothing\n", catalog())) == []


def test_places_count_characters() -> None:
    with pytest.raises(SqlError) as caught:
        list(bind("SELECT 'é漢',\r\n\tnope\r\nFROM trips", catalog()))
    (reason,) = caught.value.reasons
    assert (reason.line, reason.column) == (2, 2)


def test_a_file_that_cannot_be_read_is_named_at_its_place() -> None:
    class Broken(MemoryCatalog):
        def files(self, patterns: object, file_format: str | None, options: object = None) -> SchemaOnly:
            raise CatalogError("no file matches nope.parquet")

    with pytest.raises(SqlError, match="no file matches") as caught:
        list(bind("SELECT *\nFROM 'nope.parquet'", Broken()))
    assert (caught.value.reasons[0].line, caught.value.reasons[0].column) == (2, 6)


@pytest.mark.parametrize(
    ("sql", "patterns"),
    [
        ("FROM 'a.parquet'", ["a.parquet"]),
        ("FROM 'data/*.csv' AS d", ["data/*.csv"]),
        ("FROM read_parquet('x')", ["x as parquet"]),
        ("FROM read_csv(['x', 'y'])", ["x, y as csv"]),
    ],
)
def test_files(sql: str, patterns: list[str]) -> None:
    (statement,) = bind(sql, catalog())
    assert isinstance(statement, Query)
    source = statement.plan
    while hasattr(source, "child"):
        source = source.child
    assert [source.source.name] == patterns  # type: ignore[union-attr]


def test_a_quoted_name_is_a_table() -> None:
    with pytest.raises(SqlError, match=r'there is no table "a\.b"'):
        list(bind('FROM "a.b"', catalog()))
