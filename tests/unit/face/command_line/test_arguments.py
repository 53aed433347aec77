"""Flags of `bamquery [DB]`: what they do together, and what is said where they make no sense."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import ipc, parquet

from bamquery.command_line.main import main
from bamquery.output.display_options import FORMATS
from tests.unit.face.conftest import Run


def test_texts_files_and_standard_input_keep_their_order(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first.sql", tmp_path / "second.sql"
    first.write_text("SELECT 1 AS f;\nSELECT 2 AS g")
    second.write_bytes(b"\xef\xbb\xbfSELECT 'a\r\nb' AS crlf")
    done = run(
        *("-c", "SELECT 0 AS c", "-f", first, "-c", "SELECT 3 AS h", "--file", second, "-f", "-"),
        *("--format", "csv"),
        text="SELECT 4 AS s",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.data == b'c\n0\nf\n1\ng\n2\nh\n3\ncrlf\n"a\r\nb"\ns\n4\n'
    assert run("-c", "SELECT 1 AS x", "--format", "csv", text="SELECT 2").stdout == "x\n1\n"


def test_a_script_stops_at_its_first_error(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text("SELECT 1 AS one;\nSELECT nope;\nSELECT 3 AS three")
    done = run("-f", script, "-c", "SELECT 4 AS four", "--format", "csv")
    assert (done.returncode, done.stdout) == (1, "one\n1\n")
    assert f"{script}, line 2: SELECT nope;\n" in done.stderr


def test_files_are_read_before_anything_is_run(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path / "db", "-c", "CREATE TABLE t (a INTEGER)", "-f", tmp_path / "no.sql")
    assert done.returncode == 2
    assert "no.sql cannot be read: No such file or directory" in done.stderr
    assert os.listdir(tmp_path) == []
    (tmp_path / "latin.sql").write_bytes(b"SELECT '\xe9'")
    done = run("-f", tmp_path / "latin.sql")
    assert done.returncode == 1
    assert "latin.sql is not text in UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fromat", "csv"], 'there is no option --fromat. Did you mean "--format"?'),
        (["--max-row=3"], 'there is no option --max-row. Did you mean "--max-rows"?'),
        (["--format", "tables"], 'there is no format "tables". Did you mean "table"?'),
        (["--format", "CSV"], 'Did you mean "csv"?'),
        (["docter"], 'there is no command and no database "docter". Did you mean "doctor"?'),
        (["dmp", "x.bq"], 'Did you mean "dump"?'),
        (["x.bq", "y.bq"], "'y.bq' is one argument too many"),
        (["--width", "-3"], "it takes a whole number from 0 on, not '-3'"),
        (["--max-rows", "9" * 30], "it takes a whole number"),
        (["--format", "csv", "--width", "3"], "--width says nothing about csv; it is for table, box"),
        (["--format", "json", "--no-header"], "--no-header says nothing about json"),
        (["--format", "jsonl", "--null-value", ""], "--null-value says nothing about jsonl"),
        (["--format", "insert", "--max-rows", "1"], "--max-rows says nothing about insert"),
        (["--table", "t"], "--table says nothing about table; it is for insert"),
        (["-f", "-", "-f", "-"], "standard input, which can be read once"),
        (["check"], "DB"),
        (["check", "--outptu", "x", "y"], "there is no option --outptu."),
        (["b", "\x1b[2J"], "\\x1b[2J"),
    ],
)
def test_wrong_arguments_say_what_may_have_been_meant(
    run: Run, arguments: list[str], message: str, tmp_path: Path
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.replace("\\\\", "\\")
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert os.listdir(tmp_path) == []


def test_a_word_like_a_command_may_be_a_database(run: Run, tmp_path: Path) -> None:
    assert run("docter", "-c", "CREATE TABLE t AS SELECT 1 AS a", cwd=tmp_path).returncode == 0
    assert run("docter", "--format", "csv", text="FROM t", cwd=tmp_path).stdout == "a\n1\n"


@pytest.mark.parametrize("command", ["", "dump", "check", "bench"])
def test_help_fits_80_columns(run: Run, command: str) -> None:
    text = run(*command.split(), "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    if not command:
        for word in (*FORMATS, "dump", "check", "taxi", "bench", "doctor", "exit status", "--null-value"):
            assert word in text


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_goes_to_a_file(run: Run, kind: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    done = run("--format", kind, "--output", target, "-c", "SELECT 42 AS a, 'x' AS b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if kind == "parquet":
        assert parquet.read_table(target).to_pylist() == [{"a": 42, "b": "x"}]
    elif kind == "arrow":
        with ipc.open_file(target) as file:
            assert file.read_all().to_pylist() == [{"a": 42, "b": "x"}]
    else:
        assert "42" in target.read_text()
        assert "\x1b" not in target.read_text()


@pytest.mark.parametrize("kind", ["table", "line", "jsonl", "parquet", "arrow"])
def test_a_full_disk_is_told_in_every_format(kind: str) -> None:
    query = "SELECT i, 'text ' || i AS t FROM range(9000) r(i)"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bamquery", "--format", kind, "-c", query],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "bamquery: cannot write the output: No space left on device\n",
    )


def test_a_file_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "out", Path("/dev/full"), Path("/proc/no/such")):
        done = run("--format", "csv", "--output", path, "-c", "SELECT 1 AS a")
        assert done.returncode == 1
        assert str(path) in done.stderr


def test_headers_and_null_values(run: Run) -> None:
    sql = "SELECT 1 AS a, NULL AS b"
    assert run("--format", "csv", "--no-header", "-c", sql).stdout == "1,\n"
    assert run("--format", "tsv", "--null-value", "-", "-c", sql).stdout == "a\tb\n1\t-\n"
    box = run("--format", "box", "--no-header", "--null-value", "∅", "-c", sql).stdout
    assert box == "┌───┬───┐\n│ 1 │ ∅ │\n└───┴───┘\n"
    assert '"trips" ("a", "b")' in run("--format", "insert", "--table", "trips", "-c", sql).stdout


def test_answers_follow_each_other_apart(run: Run) -> None:
    twice = ["-c", "SELECT 1 AS a; SELECT 2 AS b"]
    assert run("--format", "line", *twice).stdout == "a = 1\n\nb = 2\n"
    markdown = run("--format", "markdown", *twice).stdout
    assert markdown == "| a |\n| ---: |\n| 1 |\n\n| b |\n| ---: |\n| 2 |\n"


@pytest.mark.parametrize("kind", ["table", "box", "line"])
def test_rows_that_are_not_shown_are_counted(run: Run, kind: str) -> None:
    query = ["-c", "SELECT i FROM range(1000) r(i)", "--format", kind]
    cut = run(*query, "--max-rows", "3").stdout
    assert "1,000 rows" in cut
    assert "first 3" in cut
    assert "999" not in cut
    whole = run(*query, "--max-rows", "0").stdout
    assert "999" in whole
    assert "first" not in whole
    assert len(whole.splitlines()) >= 1000


def test_all_rows_of_a_long_answer_are_cut_to_the_first_ones_width(run: Run) -> None:
    query = "SELECT CASE WHEN i < 200000 THEN 'short' ELSE repeat('x', 50) END AS s FROM range(200001) r(i)"
    done = run("--max-rows", "0", "-c", query)
    lines = done.stdout.splitlines()
    assert len(lines) == 200_001 + 6
    assert lines[-3] == "│ xxxxxx… │"
    assert lines[-1].startswith("200,001 rows (")


def test_main_is_called_without_arguments_of_its_own() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
