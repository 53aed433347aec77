"""Characters with what belongs to them; DuckDB reverses texts by them."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import unicodedata
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from bamquery.engine.cpu.strings.graphemes import graphemes, reversed_string
from bamquery.plan.expressions import Call, ColumnRef
from bamquery.statement_context.cancellation import use_cancellation_check
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
    "a\u200d👍",
    "กำ",
    "ក្ក",
    "x\u094dक",
    "\u0600a",
    "\u00ad\u0301",
    "\u0301",
]
# What may stand in a character beside another; to later versions of Unicode U+11A3A is another kind.
CHARACTERS = [
    chr(code)
    for code in (*range(1, 0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000))
    if unicodedata.category(chr(code)) not in ("Cn", "Co") and code != 0x11A3A
]
POOL = "\u0301\u093e\u00ad\u0600\u094d\u09cd\u200d\u1100\u1161\u11a8\uac00\uac01\r\nकतখa 中é👍👨🏽★🇩🇪🇫"


@pytest.mark.parametrize("text", TEXTS)
def test_as_duckdb(oracle: duckdb.DuckDBPyConnection, text: str) -> None:
    ((theirs,),) = oracle.execute("SELECT reverse(?)", [text]).fetchall()
    call = Call("reverse", (ColumnRef(0, "a", pa.large_string()),), pa.large_string())
    assert evaluate(call, pa.record_batch([pa.array([text], pa.large_string())], ["a"])) == [theirs]
    assert "".join(graphemes(text)) == text


def require_same(connection: duckdb.DuckDBPyConnection, texts: list[str]) -> None:
    ours = pa.table({"a": texts, "b": [reversed_string(text) for text in texts]})
    with registered(connection, ours) as name:
        assert (
            connection.execute(f"SELECT a, b, reverse(a) FROM {name} WHERE b != reverse(a)").fetchall() == []
        )


@contextlib.contextmanager
def registered(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[str]:
    connection.register("graphemes", table)
    try:
        yield "graphemes"
    finally:
        connection.unregister("graphemes")


@pytest.mark.skipif(unicodedata.unidata_version >= "16", reason="has characters that DuckDB does not know")
@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("é", "b"),
        ("", "\u0301é"),
        ("👍\u200d", ""),
        ("", "\u200d👍"),
        ("क\u094d", ""),
        ("", "\u094dक"),
        ("क", "क"),
        ("\u1100", ""),
        ("\u1161", ""),
        ("\uac00", ""),
        ("🇩", ""),
        ("\u0600", ""),
    ],
)
def test_every_character_as_duckdb(oracle: duckdb.DuckDBPyConnection, before: str, behind: str) -> None:
    require_same(oracle, [before + character + behind for character in CHARACTERS])


def test_any_text_as_duckdb(oracle: duckdb.DuckDBPyConnection) -> None:
    choose = random.Random(20)
    require_same(oracle, ["".join(choose.choices(POOL, k=choose.randint(1, 12))) for _ in range(20_000)])


def test_a_long_text_takes_linear_time_and_can_be_stopped() -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1

    with use_cancellation_check(check):
        assert len(graphemes("é" * 100_000)) == 100_000
    assert asked >= 20
    for text in ("\u0600" * 10**6 + "\n", "क" + "\u094d" * 10**6, "👍" + "\u0301" * 10**6, "\u1100" * 10**6):
        assert len(graphemes(text)) <= 2


def test_regex_is_imported_by_the_first_query_that_asks_for_it() -> None:
    code = """
import sys, bamquery
connection = bamquery.connect()
connection.sql("SELECT reverse('abc')").fetchall()
assert "regex" not in sys.modules
connection.sql("SELECT reverse('é')").fetchall()
assert "regex" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
