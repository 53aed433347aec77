"""What the command writes to a terminal, as a terminal shows it: keys sent and screens read through a pty."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from unittest import mock

import pyte
import pytest

import bamquery
from bamquery.command_line.main import main
from bamquery.output.display_options import FORMATS
from bamquery.text.terminal import escape_line

HOSTILE = "\x1b[2J\x1b[31mred\x07\x9b5A\u202egnp.exe\u2066\x1b]0;title\x07"
_SECONDS = 60
ROWS = 50


@dataclass
class Screen:
    """What was written, and what the terminal shows then."""

    data: bytes
    status: int
    columns: int

    @cached_property
    def terminal(self) -> pyte.Screen:
        screen = pyte.Screen(self.columns, ROWS)
        pyte.ByteStream(screen).feed(self.data)
        return screen

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.terminal.display if line.strip()]


def on_terminal(arguments: Sequence[str | Path], columns: int, **environment: str) -> Screen:
    """Run the command in this process with its output and errors on a terminal of so many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    data = bytearray()

    def read() -> None:
        with suppress(OSError):  # the other side is closed
            while piece := os.read(leader, 65536):
                data.extend(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    with (
        open(follower, "w", encoding="utf-8") as out,
        mock.patch.dict(os.environ, {**env, "TERM": "xterm-256color", **environment}, clear=True),
        mock.patch.multiple(sys, stdout=out, stderr=out),
    ):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = int(stop.code or 0)
    reader.join(_SECONDS)
    assert not reader.is_alive()
    os.close(leader)
    return Screen(bytes(data), status, columns)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminals") / "db"
    with bamquery.connect(path) as con:
        columns = ", ".join(f"{i}000 AS column_{i:02}" for i in range(40))
        con.sql(f"CREATE TABLE wide AS SELECT {columns}")
        con.sql("CREATE TABLE hostile AS SELECT $1 AS s, 1 AS n", [HOSTILE])
        con.sql("CREATE TABLE texts AS SELECT repeat('long ', 60) AS a, 12345 AS n, repeat('漢字', 60) AS b")
    return path


@pytest.mark.parametrize("columns", [80, 200])
def test_a_wide_table_fits_and_says_what_it_leaves_out(database: Path, columns: int) -> None:
    screen = on_terminal([database, "-c", "SELECT * FROM wide"], columns, NO_COLOR="1")
    top = screen.lines[0]
    assert top.startswith("╭")
    assert top.endswith("╮")
    assert columns - 14 <= len(top) <= columns
    assert "column_00" in screen.lines[1]
    assert "column_39" in screen.lines[1]
    shown = screen.lines[1].count("column_")
    assert screen.lines[-2].startswith(f"{40 - shown} of 40 columns left out: column_")
    assert screen.lines[-1].startswith("1 row (")
    assert len(screen.lines) == 8  # nothing was wrapped


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("kind", ["table", "box"])
def test_long_texts_are_cut_to_the_terminal(database: Path, columns: int, kind: str) -> None:
    screen = on_terminal([database, "--format", kind, "-c", "SELECT * FROM texts"], columns)
    row = next(line for line in screen.lines if "12345" in line)
    assert row.count("…") == 2
    assert row.startswith("│ long long")
    # pyte shows a wide letter in one cell and an empty one after it, which display leaves out.
    edge = [position for position in range(columns) if screen.terminal.buffer[0][position].data in "╮┐"]
    assert edge
    assert columns - 2 <= edge[0] + 1 <= columns
    for number, line in enumerate(screen.lines):
        if line.startswith("│"):
            assert screen.terminal.buffer[number][edge[0]].data == "│"


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind not in ("parquet", "arrow")])
def test_nothing_in_data_steers_the_terminal(database: Path, kind: str) -> None:
    sql = f'SELECT s AS "{HOSTILE}" FROM hostile'
    screen = on_terminal([database, "--format", kind, "-c", sql], 200, NO_COLOR="1")
    assert screen.status == 0
    text = screen.data.decode().replace("\r\n", "\n").replace("\n", "")
    assert escape_line(text) == text.replace("\t", "\\t")
    assert "red" in text


@pytest.mark.parametrize("kind", ["csv", "tsv", "insert", "markdown", "table"])
def test_a_file_gets_the_data_of_formats_for_programs_as_they_are(
    database: Path, kind: str, tmp_path: Path
) -> None:
    main([str(database), "--format", kind, "--output", f"{tmp_path}/out", "-c", "SELECT s FROM hostile"])
    assert (HOSTILE.encode() in (tmp_path / "out").read_bytes()) == (kind in ("csv", "tsv", "insert"))


def test_nothing_in_names_and_messages_steers_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[31m\u202ename"
    path = tmp_path / f"{evil}.bq"
    made = on_terminal([path, "-c", f'CREATE TABLE "{evil}" AS SELECT 1 AS a'], 200, NO_COLOR="1")
    assert made.status == 0
    assert escape_line(made.data.decode().replace("\r\n", "")) == made.data.decode().replace("\r\n", "")
    shown = "".join(made.lines)
    assert "\\x1b[31m\\u202ename.bq" in shown  # the database was made, which is said
    assert 'created table "\\x1b[31m\\u202ename"' in shown
    for sql in (f'SELECT "{evil}2" FROM "{evil}"', f"SELECT '{evil}'::INTEGER", f'FROM "{evil}x"', evil):
        screen = on_terminal([path, "-c", sql], 200, NO_COLOR="1")
        assert screen.status == 1
        text = screen.data.decode().replace("\r\n", "")
        assert escape_line(text) == text
        assert "\\x1b[31m\\u202ename" in text
    screen = on_terminal(["-f", tmp_path / f"{evil}.sql"], 200, NO_COLOR="1")
    assert screen.status == 2
    assert escape_line(screen.data.decode().replace("\r\n", "")) == screen.data.decode().replace("\r\n", "")


@pytest.mark.parametrize("columns", [80, 200])
def test_an_error_is_cut_to_the_terminal_with_the_caret_below_the_word(columns: int) -> None:
    sql = "SELECT 1; SELECT " + "'漢字', " * 40 + "nope, " + "2, " * 100 + "3"
    screen = on_terminal(["--format", "csv", "-c", sql], columns)
    line = next(i for i, line in enumerate(screen.terminal.display) if line.startswith("line 1: …"))
    caret = screen.terminal.display[line + 1].rstrip()
    assert caret.strip() == "^"
    row = screen.terminal.buffer[line]
    start = len(caret) - 1
    assert "".join(row[start + i].data for i in range(4)) == "nope"
    assert [row[start + i].fg for i in range(4)] == ["red"] * 4
    assert row[start - 1].fg == row[start + 4].fg == "default"
    assert screen.terminal.display[line + 2].strip() == ""


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(environment: dict[str, str]) -> None:
    for sql in ("SELECT NULL AS a", "SELECT nope"):
        assert b"\x1b" not in on_terminal(["-c", sql], 80, **environment).data
    assert b"\x1b[2m" in on_terminal(["-c", "SELECT NULL AS a"], 80, NO_COLOR="").data


def test_binary_formats_are_not_for_terminals() -> None:
    for kind in ("parquet", "arrow"):
        screen = on_terminal(["--format", kind, "-c", "SELECT 1 AS a"], 80)
        assert screen.status == 1
        assert screen.lines == [
            f"bamquery: {kind} is not for terminals: name a file with --output, or redirect"
        ]
