"""No subcommand and no format writes control characters of names and values to a terminal."""

import os
import pty
import re
import subprocess
import sys

import pytest

HOSTILE = "\x1b[31m\r\x07\x9b\u202e\u2066"
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")
DATABASE = f"db{HOSTILE}.bq"
TABLE = f'"t{HOSTILE}"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    (folder / f"x{HOSTILE}.csv").write_text(f"a,b{HOSTILE}\n1,y{HOSTILE}\n", newline="")
    (folder / f"bad{HOSTILE}.json").write_text(f'{{"k{HOSTILE}": ')
    made = f"CREATE TABLE {TABLE} AS SELECT 1 AS \"c{HOSTILE}\", 'v{HOSTILE}' AS v"
    said = on_terminal(folder, DATABASE, "-c", made)
    assert r"\x1b[31m" in said
    (folder / DATABASE / f"unknown{HOSTILE}").touch()
    (folder / DATABASE / "tables" / f"unknown{HOSTILE}").touch()
    return folder


SEVERAL_COMMANDS = """
import sys
from bamquery.command_line.main import main
for arguments in eval(sys.argv[1]):
    print("BEGIN", flush=True)
    try:
        main(arguments)
    except SystemExit:
        pass
    sys.stdout.flush()
    sys.stderr.flush()
"""
"""One process for all: to start one takes most of the time."""


def on_terminal(folder, *arguments):
    """What a terminal gets of a command, line ends as they were written."""
    (said,) = all_on_terminal(folder, [list(arguments)])
    return said


def all_on_terminal(folder, commands):
    """The same of each of several commands, one after the other."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, "-c", SEVERAL_COMMANDS, repr(commands)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 1 << 16):
                said += piece
        except OSError:  # Linux: the other end is closed
            pass
        os.close(ours)
        process.wait(60)
    pieces = said.decode("utf-8", "replace").replace("\r\n", "\n").split("BEGIN\n")
    assert len(pieces) == 1 + len(commands)
    return pieces[1:]


STATEMENTS = [
    f"FROM {TABLE}",
    f"INSERT INTO {TABLE} SELECT * FROM {TABLE}",
    f"CREATE TABLE {TABLE} AS SELECT 1",
    f"EXPLAIN SELECT * FROM {TABLE} WHERE v = 'l{HOSTILE}'",
    f"EXPLAIN ANALYZE SELECT * FROM {TABLE} WHERE v LIKE 'l{HOSTILE}%'",
    f"DESCRIBE {TABLE}; SUMMARIZE {TABLE}; SHOW TABLES",
    f"COPY {TABLE} TO 'out{HOSTILE}.csv'",
    "FROM 'x*.csv'",
    "FROM 'bad*.json'",
    f'SELECT "nothing{HOSTILE}" FROM {TABLE}',
    f"SELECT CAST('n{HOSTILE}' AS INTEGER)",
    f"SET threads = '{HOSTILE}'",
    f'DROP TABLE "none{HOSTILE}"',
]
COMMANDS = [
    *([DATABASE, "-c", statement] for statement in STATEMENTS),
    ["check", DATABASE],
    ["check", f"none{HOSTILE}"],
    ["doctor", f"none{HOSTILE}"],
    ["taxi", "load", DATABASE, f"none{HOSTILE}.parquet"],
    ["taxi", f"none{HOSTILE}"],
    ["bench", f"none{HOSTILE}"],
    [f"--none{HOSTILE}"],
]
FORMATS = ["table", "box", "markdown", "csv", "json", "line", "tsv", "html", "insert", "latex"]


def require_harmless(said, of_what):
    found = STEERING.search(said)
    assert found is None, f"{of_what}: {said[max(found.start() - 80, 0) : found.start() + 20]!a}"
    assert said, of_what


def test_no_command_writes_what_steers_a_terminal(folder):
    for arguments, said in zip(COMMANDS, all_on_terminal(folder, COMMANDS), strict=True):
        require_harmless(said, ascii(" ".join(arguments)))


def test_no_format_writes_what_steers_a_terminal(folder):
    commands = [[DATABASE, "--format", name, "-c", f"FROM {TABLE}"] for name in FORMATS]
    for name, said in zip(FORMATS, all_on_terminal(folder, commands), strict=True):
        require_harmless(said, name)
        assert "x1b" in said or "u001b" in said, name


def test_names_of_unknown_files_are_shown_and_harmless(folder):
    assert r"unknown\x1b[31m\r\x07" in on_terminal(folder, "check", DATABASE)
