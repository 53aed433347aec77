"""Tokens of SQL that may not be finished, and where statements end."""

from __future__ import annotations

import pytest

from bamquery.shell.input_text import is_complete, statement_at, statements, units
from bamquery.shell.scanner import NORMAL, Kind, State, meaningful, scan


def kinds(text: str) -> list[tuple[Kind, str]]:
    return [(token.kind, token.text) for token in meaningful(scan(text)[0])]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "select 1",
        "SELECT 'it''s', \"a\"\"b\", $1, $name, ?, 1.5e-3, .5, 0xff, 1_000 -- c\n;",
        "/* a /* b */ c */ x::int->>'y' || E'\\'' <> != >= ** // :=",
        "$$ ; $$ $tag$ $$ ; $tag$",
        "sélect größe, 表, 😀",
        "'never closed ; \n -- x",
        '"never closed',
        "/* /* */ never",
        "$a$ never $$",
        "e'ends with \\",
        "\x00\x1b[31m\x7f",
    ],
)
def test_tokens_together_are_the_text(text: str) -> None:
    tokens, _ = scan(text)
    assert "".join(token.text for token in tokens) == text
    assert [token.start for token in tokens] == [0, *(token.end for token in tokens[:-1])][: len(tokens)]


def test_kinds_of_tokens() -> None:
    assert kinds("SELECT \"a b\".x, 'it''s' FROM t WHERE y >= 1.5e3 AND z = $1 -- c") == [
        (Kind.WORD, "SELECT"),
        (Kind.NAME, '"a b"'),
        (Kind.OPERATOR, "."),
        (Kind.WORD, "x"),
        (Kind.OPERATOR, ","),
        (Kind.STRING, "'it''s'"),
        (Kind.WORD, "FROM"),
        (Kind.WORD, "t"),
        (Kind.WORD, "WHERE"),
        (Kind.WORD, "y"),
        (Kind.OPERATOR, ">="),
        (Kind.NUMBER, "1.5e3"),
        (Kind.WORD, "AND"),
        (Kind.WORD, "z"),
        (Kind.OPERATOR, "="),
        (Kind.PARAMETER, "$1"),
    ]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("select 1", NORMAL),
        ("select 'a", State(Kind.STRING, "'")),
        ("select e'a\\'", State(Kind.STRING, "'", escapes=True)),
        ('select "a""', State(Kind.NAME, '"')),
        ("/* a /* b */", State(Kind.COMMENT, "*/", 1)),
        ("$x$ a $$", State(Kind.STRING, "$x$")),
        ("-- 'a", NORMAL),
    ],
)
def test_state_behind_a_text(text: str, state: State) -> None:
    assert scan(text)[1] == state


def test_lines_one_by_one_are_the_whole() -> None:
    text = "select 'a\nb'';\n', /* x\n/* y */ ;\n*/ $q$ ;\n$q$ from \"t\n;\";\n"
    state = NORMAL
    pieces: list[str] = []
    for line in text.splitlines(keepends=True):
        tokens, state = scan(line, state)
        pieces += [token.text for token in tokens]
    assert state == NORMAL
    assert "".join(pieces) == text
    assert statements(text) == [text.strip().removesuffix(";")]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("  \n", True),
        ("-- a comment only", True),
        ("select 1", False),
        ("select 1;", True),
        ("select 1; ", True),
        ("select 1; -- said ;", True),
        ("select 1; /* said */", True),
        ("select 1 -- ;", False),
        ("select ';", False),
        ("select ';';", True),
        ("select 1; select 2", False),
        ("select $$ ; $$", False),
        ("/* ; ", False),
        (".tables", True),
        ("\\d t", True),
        ("quit", True),
        ("HELP;", True),
        ("quit now", False),
    ],
)
def test_where_typing_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


def test_statements_and_commands_are_told_apart() -> None:
    text = "\n.mode csv\nselect 1;\nselect\n.5;\n.tables\n-- nothing\n\n\\d t\nselect 2"
    assert [(unit.text, unit.line, unit.is_command) for unit in units(text.splitlines(keepends=True))] == [
        (".mode csv", 1, True),
        ("select 1;\nselect\n.5;\n", 2, False),
        (".tables", 5, True),
        ("\\d t", 8, True),
        ("select 2", 9, False),
    ]


def test_a_word_that_means_a_command() -> None:
    assert [unit.text for unit in units(["quit;\n"])] == [".quit"]
    assert [unit.is_command for unit in units(["quit + 1;\n"])] == [False]


def test_statements_of_a_text() -> None:
    assert statements("select 1; ; select ';' -- x;\n; /* ; */") == ["select 1", "select ';' -- x;"]


def test_the_statement_that_is_typed() -> None:
    text = "select 1; select abc from t; select 3"
    assert statement_at(text, 20) == (" select abc from t", 9)
    assert statement_at(text, 9) == (" select abc from t", 9)
    assert statement_at(text, 3) == ("select 1", 0)
    assert statement_at(text, len(text)) == (" select 3", 28)
