"""docs/sql.md names the functions and types there are, and none that there are not."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from bamquery.data_types.names import type_name
from bamquery.sql_frontend.functions.aggregates import AGGREGATES, is_aggregate
from bamquery.sql_frontend.functions.window_functions import WINDOW_FUNCTIONS
from bamquery.sql_frontend.sql_types import from_syntax
from tests.conftest import REPOSITORY
from tests.plans import plan_of

TEXT = (REPOSITORY / "docs" / "sql.md").read_text()


def _section(title: str) -> str:
    _, _, rest = TEXT.partition(f"\n{title}\n")
    assert rest, title
    return re.split(r"\n##+ ", rest)[0]


def _names(section: str) -> set[str]:
    code = re.findall(r"`([^`]+)`", section)
    return {re.split(r"[( ]", name)[0] for name in code if name[0].islower()}


def test_aggregates() -> None:
    names = _names(_section("### Aggregates").partition("`DISTINCT`")[0])
    assert set(AGGREGATES) <= names
    assert all(is_aggregate(name) for name in names)


def test_window_functions() -> None:
    table = "\n".join(line for line in _section("### Windows").splitlines() if line.startswith("|"))
    assert _names(table) == set(WINDOW_FUNCTIONS)


@pytest.mark.parametrize(
    "name",
    [
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
        *("UBIGINT", "DECIMAL(10,2)", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIME", "TIME_NS"),
        *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"),
    ],
)
def test_types_keep_their_names(name: str) -> None:
    """What a type is called when it is shown is what it can be asked for by."""
    (field,) = plan_of(f"SELECT NULL::{name}").fields
    assert type_name(field.type) == name
    assert name.partition("(")[0] in TEXT


@pytest.mark.parametrize(
    "alias",
    [
        *("BOOL", "LOGICAL", "INT1", "INT2", "INT", "INT4", "INT8", "SHORT", "LONG", "UINT8", "UINT64"),
        *("INT128", "NUMERIC", "REAL", "FLOAT4", "FLOAT8", "TEXT", "STRING", "CHAR", "BYTEA", "BINARY"),
        *("VARBINARY", "DATETIME", "TIMESTAMPTZ"),
    ],
)
def test_other_names(alias: str) -> None:
    assert alias in TEXT
    plan_of(f"SELECT NULL::{alias}")


def test_unknown_types_have_no_arrow_type() -> None:
    assert from_syntax(exp.DataType.build("UUID")) is None
