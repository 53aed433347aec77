"""Characters with what belongs to them; DuckDB reverses texts by them."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.cpu.strings.graphemes import graphemes, reversed_text
from bamquery.plan.expressions import Call, ColumnRef
from tests.oracle import evaluate

TEXTS = [
    "",
    "abc",
    "e\u0301a\u0300\u0323x",
    "\r\nx\n\r",
    "👍🏽a",
    "👨\u200d👩\u200d👧b",
    "🇩🇪🇫🇷x",
    "한국어",
    "\u1112\u1161\u11abx",
    "नमस्ते",
    "a\u200db",
    "\u0301",
]


@pytest.mark.parametrize("text", TEXTS)
def test_as_duckdb(oracle: duckdb.DuckDBPyConnection, text: str) -> None:
    ((theirs,),) = oracle.execute("SELECT reverse(?)", [text]).fetchall()
    call = Call("reverse", (ColumnRef(0, "a", pa.large_string()),), pa.large_string())
    assert evaluate(call, pa.record_batch([pa.array([text], pa.large_string())], ["a"])) == [theirs]
    assert text.isascii() or reversed_text(text) == theirs
    assert "".join(graphemes(text)) == text
