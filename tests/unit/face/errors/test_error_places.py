"""Errors point at the word in what the user wrote, as wide as the terminal, whatever is in the text."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bamquery
from bamquery.errors import BamQueryError, ExecutionError, Reason, SqlError
from bamquery.text.statement_text import Piece, Place, StatementText, join_statement
from bamquery.text.terminal import cell_width, escape_line


def text_at_caret(error: BamQueryError | str, width: int = 120) -> str:
    """What begins above the first caret."""
    text = error if isinstance(error, str) else error.render(width)
    lines = text.split("\n")
    number = next(i for i, line in enumerate(lines) if line.strip() == "^")
    column = cell_width(lines[number]) - 1
    above = lines[number - 1]
    for position in range(len(above) + 1):
        if cell_width(above[:position]) == column:
            return above[position:]
    raise AssertionError(f"the caret is beside the text:\n{text}")


@pytest.mark.parametrize(
    ("sql", "word", "line"),
    [
        ("select 1; selec 2", "selec 2", 1),
        ("select 1;\nselect 2;\n  selec 3", "selec 3", 3),
        ("select 1; select nope; select 2", "nope; select 2", 1),
        ("select '漢字漢字', nope", "nope", 1),
        ("select 'e\u0301e\u0301', nope", "nope", 1),
        ("select\t'a\tb',\tnope", "nope", 1),
        ("select '\x1b[31m\u202e', nope", "nope", 1),
        ("select '\U0001f600', nope", "nope", 1),
        ("create table t(a int); alter table t drop column b", "b", 1),
        ("select 1 +", "", 1),
        ("select (1", "", 1),
        ("select 1; select $1 + nope", "nope", 1),
    ],
)
def test_places_in_scripts(con: bamquery.Connection, sql: str, word: str, line: int) -> None:
    with pytest.raises(SqlError) as caught:
        con.sql(sql, [1] if "$1" in sql else None)
    assert text_at_caret(caught.value) == word
    assert caught.value.reasons[0].line == line
    assert f"line {line}: " in str(caught.value)


@pytest.mark.parametrize(
    ("call", "word", "line"),
    [
        (lambda r: r.filter("nope > 1"), "nope > 1", 1),
        (lambda r: r.filter("a > 1\n  and nope > 1"), "nope > 1", 2),
        (lambda r: r.filter("a >"), "", 1),
        (lambda r: r.filter("a > 1 -- so\n and -- and so"), "", 2),
        (lambda r: r.filter("a > 1 order by a"), "order by a", 1),
        (lambda r: r.project("a", "b", "a + nope"), "nope", 1),
        (lambda r: r.project("a", "nope\n", "b"), "nope", 1),
        (lambda r: r.aggregate("sum(nope)", by="a"), "nope)", 1),
        (lambda r: r.aggregate("sum(a)", by=["b", "nope"]), "nope", 1),
        (lambda r: r.order("a", "nope desc"), "nope desc", 1),
        (lambda r: r.filter("cast(s as integer) = 1").fetchall(), "cast(s as integer) = 1", 1),
        (lambda r: r.project("a + 1", "cast(s as integer)").fetchall(), "cast(s as integer)", 1),
    ],
)
def test_places_in_pieces(
    con: bamquery.Connection, call: Callable[[bamquery.Relation], object], word: str, line: int
) -> None:
    relation = con.sql("SELECT 1 AS a, 2 AS b, 'x' AS s")
    with pytest.raises((SqlError, ExecutionError)) as caught:
        call(relation)
    text = str(caught.value)
    assert text_at_caret(text) == word
    assert f"line {line}: " in text
    assert "relation" not in text.splitlines()[1]


def test_an_error_while_a_statement_runs_has_a_place(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 'x' AS s")
    with pytest.raises(ExecutionError) as caught:
        con.sql("SELECT 1;\nSELECT 2, cast(s AS INTEGER) FROM t").fetchall()
    assert text_at_caret(caught.value) == "cast(s AS INTEGER) FROM t"
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (2, 11)


def test_a_views_text_is_called_by_its_name(con: bamquery.Connection) -> None:
    con.sql("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b")
    con.sql("CREATE VIEW v AS\n  SELECT a, b FROM t; CREATE VIEW w AS SELECT cast(b AS INTEGER) AS n FROM t")
    with pytest.raises(ExecutionError, match='view "w", line 1: SELECT cast'):
        con.sql("SELECT n FROM w").fetchall()
    con.sql("ALTER TABLE t DROP COLUMN b")
    with pytest.raises(SqlError) as caught:
        con.sql("SELECT a,\n  nope\nFROM v")
    assert 'view "v" cannot be used: there is no column "b"' in str(caught.value)
    assert 'view "v", line 1: ' in str(caught.value)
    assert text_at_caret(caught.value) == "b FROM t"


def test_a_named_script(con: bamquery.Connection) -> None:
    with pytest.raises(SqlError, match="load\\.sql, line 2: selec"):
        con.sql(StatementText("select 1;\nselec 2", label="load.sql"))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_long_lines_are_windows(width: int) -> None:
    sql = "select " + "1, " * 100 + "nope, " + "2, " * 100 + "3"
    shown = SqlError(Reason("no", 1, sql.index("nope") + 1), sql).render(width)
    line, caret = shown.splitlines()[1:]
    assert cell_width(line) <= width
    assert cell_width(caret) <= width
    assert line.startswith("line 1: …")
    assert line.endswith("…")
    assert text_at_caret(shown).startswith("nope"[: width - 20] or "")


texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
)


@given(before=texts, after=texts, width=st.integers(30, 200))
def test_the_caret_is_below_the_word_and_within_the_width(before: str, after: str, width: int) -> None:
    sql = f"{before}W{after}"
    shown = Place(sql, 1, len(before) + 1).render(width)
    line, caret = shown.split("\n")
    assert escape_line(shown.replace("\n", "")) == shown.replace("\n", "")
    assert cell_width(line) <= width
    assert text_at_caret(shown).startswith("W")
    assert caret.strip() == "^"


def test_colour_marks_the_word_only() -> None:
    shown = SqlError(Reason("no\x1b[2J", 1, 8), "select nope, \x1b[2J").render(80, colour=True)
    assert shown.splitlines()[:2] == ["no\\x1b[2J", "line 1: select \x1b[1;31mnope\x1b[0m, \\x1b[2J"]


def test_many_reasons_are_counted() -> None:
    error = SqlError([Reason(f"reason {i}") for i in range(25)])
    assert len(error.reasons) == 25
    assert str(error).splitlines()[-2:] == ["reason 9", "and 15 more like these"]


def test_pieces_and_lines_of_our_own() -> None:
    text = join_statement("SELECT", Piece("a\n\n"), ",", Piece("b\r"), "FROM t")
    assert text == "SELECT\na\n\n\n,\nb\r\nFROM t"
    assert [text.is_written_by_user(line) for line in range(1, 8)] == [
        False,
        True,
        True,
        True,
        False,
        True,
        False,
    ]
    assert Place(text, 6, 1).render() == "line 1: b\n        ^"
    assert Place(text, 7, 1).render() == "line 1: b\n         ^"
    assert Place(text, 1, 1).render() == ""
    copy = pickle.loads(pickle.dumps(text))
    assert (copy, copy.origins) == (text, text.origins)
