"""What the parser says of sqlglot itself; what it says of texts is in tests/golden."""

from __future__ import annotations

import pytest

from bamquery.errors import BamQueryError
from bamquery.sql_frontend.parser.parser import parse


def test_a_compiled_sqlglot_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlglot.parser.__file__", "sqlglot/parser.cpython-313-x86_64-linux-gnu.so")
    with pytest.raises(BamQueryError, match="pip uninstall sqlglotc"):
        parse("SELECT 1")
