"""How the settings are changed that keep statements from files, from settings and from running on."""

from pathlib import Path

import duckdb
import pytest

import bamquery
from bamquery.errors import (
    CancelledError,
    SettingError,
    SqlError,
)
from tests.unit.face.external_access.restricted import connect_restricted


def test_cursors_do_not_open_what_their_connection_closed(place: Path) -> None:
    with connect_restricted(place, lock_configuration=True) as con:
        for cursor in (con.cursor(), con.cursor().cursor()):
            for name, value in (
                ("enable_external_access", True),
                ("ENABLE_EXTERNAL_ACCESS", None),
                ("allowed_directories", "/"),
                ("lock_configuration", False),
                ("memory_limit", "1TB"),
            ):
                with pytest.raises(SettingError):
                    cursor.set(name, value)
            with pytest.raises(SettingError):
                cursor.sql("SET GLOBAL threads = 2")
            with pytest.raises(SqlError, match="enable_external_access"):
                cursor.sql(f"FROM '{place}/out/s.csv'")


SWITCHES = [
    ["SET enable_external_access = false", "SET enable_external_access = true"],
    ["SET enable_external_access = false", "RESET enable_external_access"],
    ["SET enable_external_access = false", "SET enable_external_access = false"],
    ["SET enable_external_access = false", "SET enable_external_access = NULL"],
    ["SET enable_external_access = false", "SET allowed_directories = ['/tmp']"],
    ["SET enable_external_access = false", "RESET allowed_directories"],
    ["SET enable_external_access = false", "SET allowed_paths = []"],
    [
        "SET allowed_directories = ['/tmp', '/']",
        "SET allowed_directories = ['/tmp']",
        "RESET allowed_directories",
    ],
    ["SET lock_configuration = true", "SET threads = 1"],
    ["SET lock_configuration = true", "SET lock_configuration = false"],
    ["SET lock_configuration = true", "SET lock_configuration = true"],
    ["SET lock_configuration = true", "RESET lock_configuration"],
    ["SET lock_configuration = true", "RESET threads"],
    ["SET lock_configuration = true", "SET SESSION threads = 1"],
    ["SET lock_configuration = true", "PRAGMA threads = 1"],
    ["SET lock_configuration = false", "SET threads = 1"],
]


@pytest.mark.parametrize("statements", SWITCHES, ids="; ".join)
def test_settings_are_switched_as_duckdb_lets_them(statements: list[str]) -> None:
    with bamquery.connect() as con, duckdb.connect() as oracle:
        for statement in statements:
            try:
                oracle.sql(statement)
            except duckdb.Error:
                with pytest.raises(SettingError, match="cannot be"):
                    con.sql(statement)
            else:
                con.sql(statement)


def test_the_lock_holds_for_python_too() -> None:
    with (
        bamquery.connect(lock_configuration=True) as con,
        pytest.raises(SettingError, match="lock_configuration"),
    ):
        con.set("threads", 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allowed_directories", "/there/is/none"),
        ("allowed_directories", [""]),
        ("allowed_directories", [7]),
        ("allowed_directories", "file:///tmp"),
        ("allowed_paths", "a\0b"),
        ("statement_timeout", "soon"),
        ("statement_timeout", -1),
        ("statement_timeout", True),
        ("statement_timeout", float("nan")),
    ],
)
def test_values_that_make_no_sense(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=name):
        bamquery.connect(**{name: value})


def test_statements_end_when_their_time_is_up(tmp_path: Path) -> None:
    endless = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"
    with bamquery.connect(device="cpu") as con:
        con.set("statement_timeout", 0.3)
        with pytest.raises(CancelledError, match=r"statement_timeout, 0\.3 seconds"):
            con.sql(endless).fetchall()
        with pytest.raises(CancelledError, match="statement_timeout"):
            con.sql(f"CREATE TABLE t AS {endless}")
        assert con.tables == []
        con.sql("SET statement_timeout = 0")
        assert con.settings.statement_timeout is None
        assert con.sql("SELECT 1").fetchall() == [(1,)]
