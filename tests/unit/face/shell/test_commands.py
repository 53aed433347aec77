"""Dot-commands: what they do, and what they say of words that make no sense."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import parquet

from bamquery.errors import BamQueryError
from bamquery.shell.commands.command import UsageError, split_words
from bamquery.shell.commands.registry import COMMANDS, GROUPS, find
from bamquery.shell.shell import Shell

Run = Callable[[str], tuple[str, str]]


def test_every_command_of_the_issue_is_there() -> None:
    wanted = (
        "tables schema describe mode output once read import timer headers nullvalue width maxrows profile "
        "explain plan device cache check open dump edit doctor help quit"
    )
    assert {f".{name}" for name in wanted.split()} <= set(COMMANDS)
    assert {"\\d", "\\dt", "\\?", "\\q", "\\timing", "\\x"} <= set(COMMANDS)


def test_names_are_there_once() -> None:
    names = [name for group in GROUPS.values() for c in group for name in (f".{c.name}", *c.psql)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (".tabels", 'there is no command ".tabels". Did you mean ".tables"?'),
        ("\\zz", 'there is no command "\\zz".'),
        (".mode cvs", 'there is no format "cvs". Did you mean "csv"?'),
        (".mode csv json", "it takes a format"),
        (".headers maybe", "it takes on or off, not 'maybe'"),
        (".maxrows many", "it takes whole numbers, not 'many'"),
        (".maxrows -1", "it takes whole numbers, not '-1'"),
        (".width 10 x", "it takes whole numbers, not 'x'"),
        (".nullvalue 'a", "a quote is not closed"),
        (".read", "it takes a file\nusage: .read FILE"),
        (".import one.csv", "it takes a file or pattern, a table"),
        (".read no/such.sql", "no/such.sql cannot be read: No such file or directory"),
        (".import no/such.csv t", "no/such.csv"),
        (".describe trps", 'there is no table "trps". Did you mean "trips"?'),
        (".schema trps", 'there is no table or view "trps". Did you mean "trips"?'),
        (".help nonsense", 'there is no command or function "nonsense".'),
        (".theme drak", 'there is no theme "drak". Did you mean "dark"?'),
        (".pager no-such-pager", "there is no command 'no-such-pager'"),
        (".device tpu", "device cannot be 'tpu'"),
        (".explain", "no statement was run yet"),
        (".profile", "no query was run yet"),
        (".edit", "there is no terminal to edit on"),
        (".edit mode nano", 'there is no kind of keys "nano"'),
        (".quit now", "it takes nothing"),
        (".read \x1b[31mred", "\\x1b[31mred cannot be read"),
    ],
)
def test_what_makes_no_sense_is_said(run: Run, line: str, said: str) -> None:
    out, error = run(line)
    assert said in error
    assert out == ""
    assert "\x1b" not in error


def test_words() -> None:
    assert split_words("a 'b c' \"d e\" f\\g # h") == ("a", "b c", "d e", "f\\g", "#", "h")
    with pytest.raises(UsageError):
        split_words("'a")
    with pytest.raises(UsageError):
        find(".nothing")


def test_tables(run: Run) -> None:
    assert run(".tables")[0].split() == ["long_trips", "(view)", "odd", "name", "trips", "zones"]
    assert run("\\dt tr*")[0] == "trips\n"
    assert run(".tables x*")[0] == "no table or view is called like x*\n"


def test_describe(run: Run) -> None:
    out, _ = run(".describe trips")
    assert re.search(r"trip_distance +│ DECIMAL", out) or re.search(r"trip_distance +│ DOUBLE", out)
    assert "select" in run('\\d "odd name"')[0]
    assert "zones" in run("\\d")[0]
    assert "BIGINT" in run(".describe SELECT count(*) AS n FROM trips")[0]


def test_schema(run: Run) -> None:
    out, _ = run(".schema zones")
    assert out.startswith('CREATE TABLE "zones" (')
    assert '"zone name" VARCHAR' in out
    assert "INSERT" not in out
    assert 'CREATE VIEW "long_trips"' in run(".schema")[0]


def test_modes(run: Run) -> None:
    assert "csv" in run(".mode")[0]
    run(".mode csv")
    assert run("SELECT zone_id, NULL AS nothing FROM zones;")[0] == "zone_id,nothing\n1,\n"
    run(".headers off\n.nullvalue '-'")
    assert run("SELECT zone_id, NULL AS nothing FROM zones;")[0] == "1,-\n"
    run(".headers\n.nullvalue\n.mode insert copied")
    assert 'INSERT INTO "copied"' in run("SELECT zone_id FROM zones;")[0]
    run("\\x")
    assert "zone_id = 1" in run("SELECT zone_id FROM zones;")[0]
    run("\\x")
    assert "│" in run("SELECT zone_id FROM zones;")[0]


def test_rows_and_widths(run: Run) -> None:
    run(".maxrows 2")
    assert "5,000 rows, the first 2 shown" in run("SELECT trip_id FROM trips;")[0]
    run(".maxrows\n.width 3")
    out, _ = run("SELECT 'abcdefgh' AS letters;")
    assert "abcdefgh" not in out
    assert "ab…" in out


def test_timer(run: Run) -> None:
    out, _ = run("SELECT sum(trip_distance) FROM trips;")
    assert re.search(r"1 row \(.*s, .*B read, amplification \d", out)
    run(".timer off")
    assert run("SELECT 1;")[0].splitlines()[-1] == "1 row"
    run("\\timing on")
    assert run("SELECT 1;")[0].splitlines()[-1].startswith("1 row (")


def test_once_and_output(run: Run, tmp_path: Path) -> None:
    run(f".mode parquet\n.once {tmp_path}/one.parquet\nSELECT zone_id FROM zones;\n.mode csv\nSELECT 1 AS x;")
    assert parquet.read_table(tmp_path / "one.parquet").column("zone_id").to_pylist() == [1]
    out, error = run(f".output '{tmp_path}/two.csv'\nSELECT 1 AS x;\nSELECT nope;")
    assert (out.count("\n"), 'there is no column "nope"' in error) == (1, True)
    assert not (tmp_path / "two.csv").exists()
    run("SELECT 2 AS y;\n.output")
    assert (tmp_path / "two.csv").read_text() == "x\n1\ny\n2\n"
    assert run("SELECT 3 AS z;")[0] == "z\n3\n"
    _, error = run(f".once {tmp_path}/no/such/folder.csv\nSELECT 1;")
    assert "No such file or directory" in error
    _, error = run(f".output {tmp_path}/empty.csv\n.output")
    assert "there was no answer to write" in error


def test_read(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "it's a script.sql"
    script.write_text("-- a comment\n.mode csv\nSELECT 1\n  AS x;\n\nSELECT 'a;\nb' AS y; SELECT 3 AS z")
    assert run(f'.read "{script}"')[0].split("\n", 1)[1] == 'x\n1\ny\n"a;\nb"\nz\n3\n'
    script.write_text("SELECT 1 AS x;\n.mode csv\n\nSELECT\n nope;\n.echo not reached\n")
    out, error = run(f'.read "{script}"\n.echo not reached either')
    assert "not reached" not in out
    assert "line 5" in error
    assert "what follows line 4 was not run" in error
    (tmp_path / "loop.sql").write_text(f".read {tmp_path}/loop.sql\n")
    assert "reads itself" in run(f".read {tmp_path}/loop.sql")[1]
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe")
    assert "is not text in UTF-8" in run(f".read {tmp_path}/binary.sql")[1]


def test_explain_plan_and_profile(run: Run) -> None:
    run("SELECT count(*) FROM trips WHERE trip_distance > 2000;")
    assert "expected:" in run(".explain")[0]
    assert "Scan zones" in run(".plan SELECT * FROM zones")[0]
    assert "Scan trips" in run(".plan")[0], "commands are not the latest statement"
    assert "scanned" in run(".profile")[0]
    assert "scanned" in run(".profile SELECT * FROM zones")[0]


def test_machine(run: Run, shell: Shell) -> None:
    run(".device cpu")
    assert shell.connection.settings.device == "cpu"
    assert run(".device")[0].startswith("cpu")
    assert "memory_limit" in run(".settings")[0]
    assert "No query was run yet" in run(".cache")[0]
    run("SELECT sum(trip_id) FROM trips;")
    assert re.search(r"The latest query read .* of trips through the page cache", run(".cache")[0])
    assert run(".check")[0].rstrip().endswith("no damage")


def test_help(run: Run) -> None:
    out, _ = run(".help")
    assert all(f".{command.name}" in out for group in GROUPS.values() for command in group)
    assert all(len(line) <= 100 for line in out.splitlines())
    assert ".import FILE TABLE" in run(".help import")[0]
    assert run("\\? .import")[0] == run(".help import")[0]
    assert "round(x NUMERIC [, digits INTEGER])" in run(".help round")[0]


def test_quit(run: Run, shell: Shell) -> None:
    assert run(".quit\n.echo not reached") == ("", "")
    assert shell.leaving


def test_import_says_what_it_guessed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;name;day\n1;x;2024-01-01\n2;;2024-01-02\n")
    (tmp_path / "b.tsv").write_text("1\t2.5\n")
    run(f".open {tmp_path}/db")
    out, _ = run(f".import {tmp_path}/a.csv people")
    first, *columns, last = out.splitlines()
    assert first.endswith("a.csv: CSV, delimiter semicolon, with a header, 2 rows, 41 B")
    assert [line.split() for line in columns] == [["id", "BIGINT"], ["name", "VARCHAR"], ["day", "DATE"]]
    assert last.startswith('made table "people": 2 rows (')
    assert "delimiter tab, without a header" in run(f".import {tmp_path}/b.tsv measures")[0]
    assert 'added to table "people": 2 rows' in run(f".import {tmp_path}/a.csv people")[0]
    assert 'replaced table "people": 2 rows' in run(f".import {tmp_path}/a.csv people --replace")[0]
    run(f"COPY people TO '{tmp_path}/c.parquet';")
    assert "c.parquet: Parquet, 2 rows" in run(f".import {tmp_path}/c.parquet people")[0]
    _, error = run(f".import {tmp_path}/b.tsv people")
    assert "column" in error
    assert "4" in run("SELECT count(*) FROM people;")[0], "nothing of the wrong file was loaded"


def test_dump_can_be_read(run: Run, tmp_path: Path) -> None:
    run(f".dump {tmp_path}/all.sql")
    assert run(f".open {tmp_path}/copy\n.read {tmp_path}/all.sql")[1] == ""
    assert run(".tables")[0].split() == ["long_trips", "(view)", "odd", "name", "trips", "zones"]


def test_open(run: Run, shell: Shell, tmp_path: Path) -> None:
    before = shell.opening.database
    (tmp_path / "a file").write_text("")
    assert "a file, not a database" in run(f".open '{tmp_path}/a file'")[1]
    assert shell.opening.database == before
    assert "zones" in run(".tables")[0]
    assert "opened" in run(".open")[0]
    assert run(".tables")[0].startswith("there is no table or view")


def test_history_commands(run: Run, shell: Shell) -> None:
    assert shell.history is not None
    shell.history.append_string("SELECT 1;\nSELECT 2;")
    run(".history private")
    shell.history.append_string("SELECT 'secret';")
    run(".history shared")
    shell.history.append_string("SELECT 3;")
    text = shell.history._path.read_text()
    assert "secret" not in text
    assert "SELECT 3;" in text
    run(".history clear")
    assert not shell.history._path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    assert "Permission denied" in run(f".open {folder}/db")[1]
    assert "Permission denied" in run(f".once {folder}/x.csv\nSELECT 1;")[1]


def test_errors_of_the_shell_are_the_engines(shell: Shell) -> None:
    assert issubclass(UsageError, BamQueryError)
    assert shell.run(["SELECT 1;\n"])
    assert not shell.run([".nonsense\n"])
