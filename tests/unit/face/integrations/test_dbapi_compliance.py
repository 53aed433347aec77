"""The public compliance suite of PEP 249 (dbapi20, by Stuart Bishop)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bamquery.dbapi

dbapi20: Any = pytest.importorskip("dbapi20", reason="pip install dbapi-compliance")

OPTIONAL = {"test_callproc", "test_nextset", "test_setoutputsize"}
"""Of stored procedures, further result sets and output sizes, which PEP 249 lets a driver not have."""
OTHERWISE = {"test_non_idempotent_close"}
"""It wants a second close() to fail, of which it says itself that reasonable persons differ."""
NAMES = sorted(name for name in dir(dbapi20.DatabaseAPI20Test) if name.startswith("test_"))


def case(name: str, path: Path) -> Callable[[], None]:
    """One test of the suite, over a database of its own."""
    settings = {"driver": bamquery.dbapi, "connect_args": (path / "db",)}
    compliance = type("Compliance", (dbapi20.DatabaseAPI20Test,), settings)(name)

    def run() -> None:
        compliance.setUp()
        try:
            getattr(compliance, name)()
        finally:
            compliance.tearDown()

    return run


@pytest.mark.parametrize("name", sorted(set(NAMES) - OPTIONAL - OTHERWISE))
@pytest.mark.parametrize("paramstyle", ["qmark", "named"])
def test_compliance(name: str, paramstyle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["bamquery.dbapi"], "paramstyle", paramstyle)
    case(name, tmp_path)()


def test_what_is_left_out_is_there() -> None:
    assert set(NAMES) >= OPTIONAL | OTHERWISE
    cursor = bamquery.dbapi.Cursor
    assert not hasattr(cursor, "callproc")
    assert not hasattr(cursor, "nextset")


def test_closing_twice_is_harmless() -> None:
    con = bamquery.dbapi.connect()
    con.close()
    con.close()
    with pytest.raises(bamquery.dbapi.InterfaceError, match="the connection is closed"):
        con.commit()
