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


def on_terminal(folder, *arguments):
    """What a terminal gets of a command, line ends as they were written."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, "-m", "bamquery", *arguments],
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
    return said.decode("utf-8", "replace").replace("\r\n", "\n")


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
SEVERAL = "; ".join(statement for statement in STATEMENTS[:8] if "CREATE" not in statement)
"""Starting a process takes most of the time."""
COMMANDS = [
    [DATABASE, "-c", SEVERAL],
    *([DATABASE, "-c", statement] for statement in [STATEMENTS[2], *STATEMENTS[8:]]),
    ["check", DATABASE],
    ["check", f"none{HOSTILE}"],
    ["doctor", f"none{HOSTILE}"],
    ["taxi", "load", DATABASE, f"none{HOSTILE}.parquet"],
    ["taxi", f"none{HOSTILE}"],
    ["bench", f"none{HOSTILE}"],
    [f"--none{HOSTILE}"],
]
FORMATS = ["table", "box", "markdown", "csv", "json", "line", "tsv", "html", "insert", "latex"]


def require_harmless(said):
    found = STEERING.search(said)
    assert found is None, ascii(said[max(found.start() - 80, 0) : found.start() + 20])
    assert said


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: ascii(" ".join(arguments))[1:60])
def test_no_command_writes_what_steers_a_terminal(folder, arguments):
    require_harmless(on_terminal(folder, *arguments))


@pytest.mark.parametrize(
    "format_",
    [name if name == "markdown" else pytest.param(name, marks=pytest.mark.slow) for name in FORMATS],
)
def test_no_format_writes_what_steers_a_terminal(folder, format_):
    said = on_terminal(folder, DATABASE, "--format", format_, "-c", f"FROM {TABLE}")
    require_harmless(said)
    assert "x1b" in said or "u001b" in said


def test_names_of_unknown_files_are_shown_and_harmless(folder):
    assert r"unknown\x1b[31m\r\x07" in on_terminal(folder, "check", DATABASE)
