"""The `bamquery` command as scripts use it: what it prints, where, and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, ipc, parquet

import bamquery
from tests.unit.face.conftest import ROWS, Run
from tests.unit.face.shell.terminal import Terminal


def command(arguments: Sequence[str | Path]) -> list[str]:
    return [sys.executable, "-m", "bamquery", *map(str, arguments)]


def test_a_table(run: Run, filled: Path) -> None:
    done = run(filled, "-c", "SELECT position, text, noise > 2 AS big FROM numbers LIMIT 2")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:7] == [
        "╭──────────┬─────────┬─────────╮",
        "│ position │ text    │ big     │",
        "│   BIGINT │ VARCHAR │ BOOLEAN │",
        "├──────────┼─────────┼─────────┤",
        "│        0 │ NULL    │ false   │",
        "│        1 │ x1      │ false   │",
        "╰──────────┴─────────┴─────────╯",
    ]
    assert lines[7].startswith("2 rows (")


def test_long_answers_are_cut_and_counted(run: Run, filled: Path) -> None:
    done = run(filled, "--max-rows", "3", "-c", "SELECT position FROM numbers")
    assert f"{ROWS:,} rows, the first 3 shown (" in done.stdout
    assert len(done.stdout.splitlines()) == 9


def test_standard_input_and_several_statements(run: Run, tmp_path: Path) -> None:
    script = "CREATE TABLE t AS SELECT 1 AS a, 'x' AS s;\nINSERT INTO t SELECT 2, NULL;\nSELECT * FROM t;"
    done = run(tmp_path / "db", "--format", "csv", text=script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a,s\n1,x\n2,\n", "")
    done = run(tmp_path / "db", "-c", "SELECT 1 AS one", "-c", "SELECT 2 AS two", "--format", "csv")
    assert done.stdout == "one\n1\ntwo\n2\n"
    done = run(tmp_path / "db", "-c", "INSERT INTO t SELECT 3, 'y'")
    assert done.stdout.startswith('inserted into table "t": 1 row (')
    assert run(tmp_path / "db", text="").returncode == 0


def test_without_a_database(run: Run) -> None:
    done = run("-c", "SELECT 40 + 2 AS answer", "--format", "json")
    assert json.loads(done.stdout) == [{"answer": 42}]


def test_formats(run: Run, filled: Path, tmp_path: Path) -> None:
    sql = "SELECT position, noise, word, text FROM numbers WHERE position < 6000 ORDER BY position"
    with bamquery.connect(filled) as con:
        expected = con.sql(sql).to_arrow().to_pylist()
    found = json.loads(run(filled, "--format", "json", "-c", sql).stdout)
    assert found == expected
    run(filled, "--format", "parquet", "--output", tmp_path / "o.parquet", "-c", sql)
    assert parquet.read_table(tmp_path / "o.parquet").to_pylist() == expected
    run(filled, "--format", "arrow", "--output", tmp_path / "o.arrow", "-c", sql)
    with ipc.open_file(tmp_path / "o.arrow") as file:
        assert file.read_all().to_pylist() == expected
    piped = run(filled, "--format", "arrow", "-c", sql)
    with ipc.open_stream(piped.data) as stream:
        assert stream.read_all().to_pylist() == expected
    run(filled, "--format", "csv", "--output", tmp_path / "o.csv", "-c", sql)
    options = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    assert csv.read_csv(tmp_path / "o.csv", convert_options=options).to_pylist() == expected
    lines = run(filled, "--format", "markdown", "-c", f"{sql} LIMIT 2").stdout.splitlines()
    assert lines[:2] == ["| position | noise | word | text |", "| ---: | ---: | :--- | :--- |"]
    assert lines[2].endswith("| NULL |")
    assert sorted(os.listdir(tmp_path)) == ["o.arrow", "o.csv", "o.parquet"]


def test_an_output_is_there_once_it_is_complete(run: Run, filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("what was there")
    failing = "SELECT CAST(text AS INTEGER) AS n FROM numbers"
    done = run(filled, "--format", "csv", "--output", target, "-c", failing)
    assert done.returncode == 1
    assert os.listdir(tmp_path) == ["out.csv"]
    assert target.read_text() == "what was there"
    done = run(filled, "--format", "csv", "--output", tmp_path / "no" / "out.csv", "-c", "SELECT 1")
    assert done.returncode == 1
    assert "out.csv" in done.stderr
    assert run("--format", "csv", "--output", "/dev/null", "-c", "SELECT 1").returncode == 0
    two = run("--format", "parquet", "--output", tmp_path / "two", "-c", "SELECT 1; SELECT 2")
    assert (two.returncode, two.stderr) == (
        1,
        "bamquery: parquet holds one answer, and there is a second one: ask for one at a time\n",
    )


@pytest.mark.parametrize("kind", ["csv", "parquet", "table"])
def test_an_output_stays_where_there_is_no_answer(run: Run, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    target.write_text("what was there")
    sql = "" if kind == "table" else "CREATE TABLE q AS SELECT 1 AS x"
    done = run("--format", kind, "--output", target, "-c", sql)
    assert (done.returncode, os.listdir(tmp_path)) == (1, ["out"])
    assert "there was no answer to write" in done.stderr
    assert target.read_text() == "what was there"


def test_an_interval_is_refused_for_parquet(run: Run, tmp_path: Path) -> None:
    for sql in (f"COPY (SELECT INTERVAL 1 DAY AS i) TO '{tmp_path}/i.parquet'", "SELECT INTERVAL 1 DAY AS i"):
        done = run("--format", "parquet", "--output", tmp_path / "o.parquet", "-c", sql)
        assert 'column "i" is an INTERVAL' in done.stderr
        assert os.listdir(tmp_path) == []


def test_the_mark_of_utf8_is_no_part_of_the_text(run: Run) -> None:
    assert run("--format", "csv", text="\ufeffSELECT 1 AS x").stdout == "x\n1\n"


def test_an_empty_path_is_no_database(run: Run) -> None:
    for arguments in (["", "-c", "SELECT 1"], ["check", ""]):
        done = run(*arguments)
        assert (done.returncode, "the path is empty" in done.stderr) == (1, True)


def test_a_wrong_path_leaves_no_database(run: Run, tmp_path: Path) -> None:
    assert run("taxi", "load", tmp_path / "l.bq", tmp_path / "nope.parquet").returncode == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("closed", "status"), [(">&-", 1), ("<&-", 2)])
def test_closed_streams(closed: str, status: int) -> None:
    sql = "-c 'SELECT 1'" if status == 1 else ""
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m bamquery {sql} {closed}', sys.executable], capture_output=True, text=True
    )
    assert done.returncode == status
    assert "is closed" in done.stderr
    assert "Traceback" not in done.stderr


LOST = """
import os, signal, sys, time
from bamquery.command_line import main as command_line

class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(60)  # which the signal's handler ends, by an error that goes nowhere

def main(arguments):
    try:
        Destroyed()
        time.sleep(60)
        return 0
    except KeyboardInterrupt:
        return command_line.INTERRUPTED

command_line.main = main
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)  # whatever is ignored where the tests run
signal.signal(signal.SIGINT, signal.default_int_handler)
command_line.run()
"""


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_is_not_lost_in_a_destructor(name: str, status: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST.format(name=name)], stderr=subprocess.PIPE, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (status, b"")


INTERRUPTED_IMPORT = """
import importlib.abc, os, signal, sys, time
from bamquery.command_line import main as command_line

class Compiled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "bamquery.connection.connection":
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)
            except KeyboardInterrupt:
                {then}

sys.meta_path.insert(0, Compiled())
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, maybe, where the tests run
sys.argv = ["bamquery", "-c", "SELECT count(*) FROM range(100000000000)"]
command_line.run()
"""


@pytest.mark.parametrize(
    "then",
    [
        "raise",
        "raise ImportError('cannot import name')",
        "raise ImportError('cannot import name') from None",
        "raise SystemError('initialization raised unreported exception')",
        "pass",  # it is lost, and noticed where the statement asks whether to go on
    ],
)
def test_an_interrupt_in_the_middle_of_an_import(then: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT.format(then=then)],
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"bamquery: interrupted\n")


def test_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        command([]), stdin=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as process:
        assert process.stdin is not None
        rows = ", ".join(f"({i})" for i in range(100))
        process.stdin.write(
            f"CREATE TABLE t AS SELECT i FROM (VALUES {rows}) v(i); SELECT count(*) FROM "
            "t a, t b, t c, t d, t e, t f WHERE a.i + b.i > c.i + d.i + e.i * f.i".encode()
        )
        process.stdin.close()
        while not list(tmp_path.glob("*/tables/*/fragments/*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nope FROM numbers", "nope"),
        ("SELEC 1", "syntax"),
        ("SELECT CAST('x' AS INTEGER)", "x"),
        ("DROP TABLE missing", "missing"),
        ("SET threads = 0", "threads"),
        ("SELECT '\udcff'", "the text is not UTF-8: it has the byte 0xff"),
        ("EXPLAIN ANALYZE CREATE VIEW v AS SELECT 1", "EXPLAIN is for"),
    ],
)
def test_errors_are_messages_not_tracebacks(run: Run, filled: Path, sql: str, message: str) -> None:
    done = run(filled, "-c", sql)
    assert done.returncode in (1, 2)
    assert done.returncode == (2 if sql.startswith("SET") else 1)
    assert done.stdout == ""
    assert done.stderr.startswith("bamquery: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "xml", "-c", "SELECT 1"],
        ["--nonsense"],
        ["a", "b"],
        ["--set", "threads", "-c", "SELECT 1"],
        ["--set", "treads=3", "-c", "SELECT 1"],
        ["--device", "cuda:0", "-c", "SELECT 1"],
        ["--max-rows", "-1", "-c", "SELECT 1"],
        ["--max-rows", "²", "-c", "SELECT 1"],
        ["bench", "nothing"],
        ["check"],
    ],
)
def test_wrong_arguments(run: Run, arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_settings_and_device(run: Run, filled: Path) -> None:
    sql = "EXPLAIN SELECT noise FROM numbers WHERE rare = 1"
    done = run(filled, "--device", "cpu", "--set", "strategy=vectors", "--set", "zone_maps=off", "-c", sql)
    assert "strategy asked for: vectors" in done.stdout
    assert "zone maps off" in done.stdout
    assert "note" not in done.stdout


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout == f"bamquery {bamquery.__version__}\n"
    text = run("--help").stdout
    for word in ("taxi", "check", "bench", "--output", "exit status"):
        assert word in text


def test_subcommands_win_over_names(run: Run, tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "check") as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
    done = run("check", "check", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 table, 1 version, 1 fragment" in done.stdout
    done = run("./check", "-c", "SELECT a FROM t", "--format", "csv", cwd=tmp_path)
    assert done.stdout == "a\n1\n"


def test_check_names_damage_and_litter(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "db"
    with bamquery.connect(path) as con:
        con.load("t", pa.table({"a": np.arange(10_000)}))
    (fragment,) = (f for f in path.rglob("*.arrow") if not f.name.endswith(".vectors.arrow"))
    litter = path / "tables" / "t" / "fragments" / "0000000000000aa-0000.arrow"
    litter.write_bytes(b"x")
    assert str(litter) in run("check", path).stdout
    with fragment.open("r+b") as file:
        file.seek(20_000)
        file.write(b"damage")
    done = run("check", path)
    assert done.returncode == 1
    assert str(fragment) in done.stdout
    assert "1 damaged part" in done.stdout
    done = run(path, "-c", "SELECT sum(a) FROM t")
    assert (done.returncode, done.stdout) == (1, "")
    assert str(fragment) in done.stderr
    done = run("check", tmp_path / "missing")
    assert done.returncode == 1
    assert not (tmp_path / "missing").exists()


def test_whoever_reads_may_leave(filled: Path) -> None:
    with subprocess.Popen(
        command([filled, "--format", "csv", "-c", "SELECT * FROM numbers"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_a_full_disk_behind_standard_output(filled: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command([filled, "--format", "csv", "-c", "SELECT * FROM numbers"]),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "bamquery: cannot write the output: No space left on device\n"


def test_an_output_for_a_shell_is_told_what_to_do() -> None:
    leader, follower = os.openpty()
    try:
        done = subprocess.run(
            command(["db", "--output", "x"]), stdin=follower, capture_output=True, text=True
        )
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 2
    assert "in the shell, .output FILE" in done.stderr


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that takes a while to sort."""
    path = tmp_path_factory.mktemp("large") / "db"
    random = np.random.default_rng(0)
    with bamquery.connect(path) as con:
        for _ in range(2):
            rows = pa.table({"a": random.integers(0, 1 << 60, 3_000_000), "b": random.random(3_000_000)})
            con.load("t", rows, if_exists="append")
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a % 1000003 AS k, count(*), sum(b) FROM t GROUP BY k ORDER BY k",
        "CREATE TABLE u AS SELECT a, b, sqrt(b) AS c FROM t",
        "SELECT a, b FROM t",
    ],
)
def test_ctrl_c_in_the_middle(large: Path, sql: str, tmp_path: Path) -> None:
    """A moment after it has begun; there is work for minutes behind it."""
    script = ";".join(
        ["SELECT 'begun' AS first", sql] + ["SELECT a % 1000003 AS k, sum(b) FROM t GROUP BY k"] * 400
    )
    target = tmp_path / "out"
    with (
        target.open("wb") as out,
        subprocess.Popen(
            command([large, "--format", "csv", "-c", script]), stdout=out, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        while b"begun" not in target.read_bytes():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.15)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        took = time.monotonic() - sent
    assert (process.returncode, error) == (130, "bamquery: interrupted\n")
    assert took < 10  # not a measurement: far less than what was left of the work
    with bamquery.connect(large) as con:
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(6_000_000,)]
        assert con.check().errors == []
        con.sql("DROP TABLE IF EXISTS u; VACUUM")
        assert con.check().litter == []


def test_a_terminal_is_told_that_a_database_was_made(tmp_path: Path) -> None:
    for said in (True, False):
        with Terminal(["-m", "bamquery", tmp_path / "new.bq", "-c", "SELECT 1"], columns=200) as terminal:
            assert terminal.end() == 0
            assert ("made a new database: " in terminal.text) is said
