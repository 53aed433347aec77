"""The shell as a user has it: keys sent to a terminal, screens read from it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.unit.face.shell.terminal import (
    CTRL_C,
    CTRL_D,
    CTRL_R,
    ENTER,
    ESCAPE,
    TAB,
    UP,
    Terminal,
)

Start = Callable[..., Terminal]

_COLOURS = re.compile(rb"[;\[](?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
_WIDE = ", ".join(f"trip_id + {n} AS column_number_{n}" for n in range(24))
_ENDLESS = "SELECT count(*) FROM range(100000000000) r(i) WHERE i % 7 = 3;"


@pytest.fixture
def start(tmp_path: Path, database: Path, request: pytest.FixtureRequest) -> Start:
    """Starts a shell with a home of its own."""
    home = tmp_path / "home"
    home.mkdir()

    def start(
        *arguments: str | Path, environment: Mapping[str, str] | None = None, **options: object
    ) -> Terminal:
        own = {"HOME": str(home), "TMPDIR": str(tmp_path), **(environment or {})}
        terminal = Terminal(
            ["-m", "bamquery", *(arguments or [database])],
            environment=own,
            cwd=tmp_path,
            **options,  # type: ignore[arg-type]
        )
        terminal.__enter__()
        request.addfinalizer(lambda: terminal.__exit__(None, None, None))
        return terminal

    return start


@pytest.mark.parametrize("columns", [80, 200])
def test_what_a_newcomer_tries(start: Start, columns: int) -> None:
    shell = start(columns=columns, lines=30)
    shell.wait(r"^BamQuery .*\.help lists commands")
    shell.prompt()
    shell.wait(r"cpu, \d+ thread")  # at the bottom, once the engine is there
    # Complete a table's name.
    shell.send("SELECT count(*) AS n FROM tri" + TAB)
    shell.wait(r"FROM trips\b")
    shell.send(";" + ENTER)
    shell.wait(r"│ +5000 │")
    shell.wait(r"^1 row \(.*\)$")
    shell.prompt()
    # Misspell a column.
    screen = shell.run("SELECT trip_distanse FROM trips;", "trip_distanse")
    assert 'Did you mean "trip_distance"?' in screen
    lines = screen.splitlines()
    caret = next(n for n, line in enumerate(lines) if line.strip().startswith("^"))
    assert lines[caret - 1].index("trip_distanse") == lines[caret].index("^")
    # What follows a failure is not run, and that is said.
    assert "2 statements after it were not run" in shell.run(
        "SELECT nope; SELECT 1; SELECT 2;", "were not run"
    )
    # Page a wide table.
    shell.send(f"SELECT {_WIDE} FROM trips;" + ENTER)
    screen = shell.wait("q: leave")
    assert re.search(rf"columns 1–{columns} of \d+", screen)
    assert "column_number_0" in screen
    assert "column_number_23" not in screen
    shell.send("$G")
    screen = shell.wait("lines 4,9")
    assert "column_number_23" in screen, "names and types stay in sight"
    assert "BIGINT" in screen
    shell.send("/4321" + ENTER)
    shell.wait("4321")
    shell.send("q")
    shell.wait_gone("q: leave")
    shell.wait(r"^5,000 rows \(.*read, amplification [\d.]+\)$")
    shell.prompt()
    assert "first 40" not in shell.text
    # Stop a long query.
    shell.send(_ENDLESS + ENTER)
    shell.wait(r"Running .*rows, cpu")
    shell.send(CTRL_C)
    shell.wait(r"^cancelled after")
    shell.prompt()
    # Answers are as wide as the window is by now.
    shell.resize(60, 30)
    shell.run(".pager off", "pager off")
    screen = shell.run("SELECT 'unique' AS x, * FROM trips, zones LIMIT 1;", "│ unique")
    assert max(len(line) for line in screen.splitlines() if "│" in line) <= 60
    # Ctrl-C clears what is typed, Ctrl-D leaves.
    shell.send("SELECT 'half")
    shell.wait("'half")
    shell.send(CTRL_C)
    shell.prompt()
    shell.send(CTRL_D)
    assert shell.end() == 0
    assert shell.raw.rfind(b"\x1b[?2004l") > shell.raw.rfind(b"\x1b[?2004h"), "the terminal is as it was"


def test_statements_of_several_lines_and_commands_of_psql(start: Start) -> None:
    shell = start()
    shell.prompt()
    shell.send("SELECT 'a;" + ENTER + "b'" + ENTER)
    shell.wait(r"^ +\.\.> $|^ +\.\.>$")
    shell.send("AS x;" + ENTER)
    shell.wait(r"a;\\nb")
    shell.prompt()
    assert "zones" in shell.run("\\dt", "trips")
    assert "zone_id" in shell.run("\\d zones", "zone_id")
    assert 'there is no command ".tabels". Did you mean ".tables"?' in shell.run(".tabels", "Did you mean")
    shell.send("SELECT dat")
    shell.wait(r"date_add\(x DATE, interval INTERVAL\)")
    shell.send(CTRL_C)
    shell.prompt()
    shell.send("help" + ENTER)
    screen = shell.wait("q: leave")
    assert ".tables [PATTERN]" in screen
    shell.send("q")
    shell.prompt()
    shell.send("exit" + ENTER)
    assert shell.end() == 0


def test_the_prompt_comes_before_the_engine(start: Start, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "pyarrow.py").write_text(
        "import pathlib, time\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        "raise ImportError('no such thing')\n"
    )
    shell = start(environment={"PYTHONPATH": str(broken)}, columns=200)
    shell.prompt()
    shell.wait("opening")
    shell.send("SELECT 'typed meanwhile'")
    shell.wait("typed meanwhile")
    (tmp_path / "go").write_text("")
    shell.wait("the engine does not start: ImportError: no such thing")
    assert shell.end() == 1


def test_a_statement_waits_for_the_engine(start: Start) -> None:
    shell = start()
    shell.send("SELECT 6 * 7 AS answer;" + ENTER)  # before there is anything to read it
    shell.wait(r"│ +42 │")
    shell.prompt()
    shell.send(CTRL_D)
    assert shell.end() == 0


def test_what_is_no_database(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    shell = start(tmp_path / "a file", columns=200)
    shell.wait("a file, not a database")
    assert shell.end() == 1


def test_data_cannot_steer_the_terminal(start: Start, tmp_path: Path) -> None:
    title = "]0;stolen"
    (tmp_path / f"x\x1b{title}\x07.csv").write_text("a\n1\n")
    shell = start(tmp_path / "db")
    shell.prompt()
    shell.run(
        f"CREATE TABLE t AS SELECT chr(27) || '{title}' || chr(7) || chr(155) AS \"x\ty\";", "created table"
    )
    for mode in ("table", "box", "line", "csv", "json", "markdown", "html"):
        shell.run(f".mode {mode}", f"mode {mode}")
        shell.run("SELECT * FROM t;", "stolen")
    shell.run(".mode table", "mode table")
    shell.run('SELECT CAST("x\ty" AS INTEGER) FROM t;'.replace("\t", " "), "no column")
    shell.run(".pager on", "pager on")
    shell.send("SELECT * FROM t;" + ENTER)
    shell.wait("q: leave")
    shell.send("q")
    shell.prompt()
    shell.send("SELECT * FROM './" + TAB)
    shell.wait("db/")
    shell.send(CTRL_C)
    shell.prompt()  # between two prompts the terminal takes Ctrl-D for itself
    shell.send(CTRL_D)
    shell.end()
    assert f"\x1b{title}".encode() not in shell.raw
    assert b"\x9b" not in shell.raw.replace("›".encode(), b"")


def test_pastes_wide_characters_and_a_database_that_goes(start: Start, tmp_path: Path) -> None:
    shell = start(tmp_path / "db", columns=80, lines=24)
    shell.prompt()
    shell.run("CREATE TABLE 出租车 AS SELECT 'かな' AS 名前, 'ﬁ é 😀' AS other;", "created table")
    screen = shell.run("FROM 出租车;", r"│ かな +│[\s\S]*^1 row ")
    edges = {line.rstrip()[-1] for line in screen.splitlines() if line.startswith(("╭", "│", "├", "╰"))}
    assert edges <= {"╮", "│", "┤", "╯"}
    shell.send("SELECT 名")
    shell.wait(r"> SELECT 名")
    shell.send(CTRL_C)
    # Only now: between two prompts the terminal keeps what is typed itself, and no more than 4 KiB of it.
    shell.wait(r"> SELECT 名\s+bamquery>\s*$")
    rows = ",\n".join(f"({n}, 'row {n}')" for n in range(10_000))
    shell.paste(
        f"CREATE TABLE pasted AS SELECT * FROM (VALUES\n{rows}\n) v(n, t);\nSELECT count(*) FROM pasted;"
    )
    shell.wait(r"FROM pasted;")
    shell.send(ENTER)
    shell.wait(r"│ +10000 │")
    shell.prompt()
    shutil.rmtree(tmp_path / "db")
    shell.run("SELECT count(*) FROM pasted;", "pasted|db")
    shell.run("SELECT 'still here' AS x;", "│ still here │")
    shell.send(CTRL_D)
    assert shell.end() == 0


@pytest.mark.parametrize(
    "environment",
    [{"NO_COLOR": "1"}, {"TERM": "dumb"}],
    ids=["no colours", "dumb terminal"],
)
def test_terminals_without_colours(start: Start, environment: dict[str, str]) -> None:
    shell = start(environment=environment)
    shell.wait(r"^bamquery>")
    shell.send("SELECT NULL AS x," + ENTER)
    shell.wait(r"^ +\.\.>")
    shell.send("2 AS y;" + ENTER)
    shell.wait("1 row")
    shell.prompt()
    shell.run("SELECT nope;", "no column")
    shell.send(_ENDLESS + ENTER)
    if "TERM" not in environment:
        shell.wait("Running")
        shell.send(CTRL_C)
    else:
        shell.wait("% 7 = 3;")
        for _ in range(10):
            shell.read(0.1)
        shell.send(CTRL_C)
    shell.wait("cancelled")
    shell.prompt()
    shell.send(CTRL_D)
    assert shell.end() == 0
    assert _COLOURS.search(shell.raw) is None
    if "TERM" in environment:
        assert b"\x1b" not in shell.raw


def test_standard_output_that_is_no_terminal(start: Start, tmp_path: Path) -> None:
    with (tmp_path / "answers").open("w") as file:
        shell = start(output=file.fileno())
        shell.send("SELECT 1 AS x,\n2 AS y;\nSELECT nope;\n.mode csv\nSELECT 3 AS z;\n")
        shell.wait("there is no column")
        shell.send(CTRL_D)
        assert shell.end() == 1
    written = (tmp_path / "answers").read_text()
    assert written.splitlines()[-2:] == ["z", "3"]
    assert "bamquery>" not in written
    assert "bamquery>" not in shell.text
    assert "\x1b" not in written


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_signals_to_end(start: Start, tmp_path: Path, number: int) -> None:
    shell = start(":memory:")
    shell.run("CREATE TABLE t AS SELECT 1 AS x;", "created table")
    temporary = [path for path in tmp_path.iterdir() if path.name != "home"]
    assert temporary
    if number == signal.SIGHUP:
        shell.send(_ENDLESS + ENTER)
        shell.wait("Running")
    shell.signal(number)
    assert shell.end() == 128 + number
    assert not [path for path in temporary if path.exists()], "the temporary database is gone"
    assert shell.raw.rfind(b"\x1b[?2004l") > shell.raw.rfind(b"\x1b[?2004h"), "the terminal is as it was"


def test_the_history_of_two_shells(start: Start, tmp_path: Path) -> None:
    first = start()
    first.run("SELECT\n'needle' AS x;".replace("\n", ENTER), "│ needle")
    first.run(".history private", "history private")
    first.run("SELECT 'secret';", "│ secret")
    second = start()
    second.prompt()
    second.send(UP + UP)
    second.wait(r"'needle' AS x;")
    second.send(CTRL_C)
    second.prompt()
    second.send(CTRL_R + "need")
    second.wait("'needle'")
    second.send(ENTER + ENTER)
    second.wait(r"│ needle")
    second.prompt()
    file = tmp_path / "home/.local/state/bamquery/history"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in file.read_text()


def test_a_home_that_is_no_home_and_a_broken_configuration(start: Start, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    configuration = tmp_path / "config/bamquery/shellrc"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("# mine\n.mode line\n.mode nonsense\nSELECT 1;\n.maxrows 3\n")
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    shell = start(environment=environment, columns=200)
    shell.prompt()
    assert 'line 3: .mode: there is no format "nonsense"' in shell.text
    assert "line 4: only commands that need no database may stand here" in shell.text
    shell.run("SELECT 1 AS x;", "^ *x = 1")
    assert shell.all_lines.count("history is not kept") == 1
    shell.run(".edit mode vi", "")
    shell.wait("vi insert")
    shell.send("SELECT 1 AS y;" + ESCAPE)
    shell.wait("vi navigation")
    shell.send("0wr7" + ENTER)
    shell.wait("^ *y = 7")
    shell.prompt()
    shell.send(CTRL_D)
    assert shell.end() == 0


def test_an_editor(start: Start, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[1], 'a').write('+ 41 AS x;')\n")
    editor.chmod(0o700)
    shell = start(environment={"EDITOR": str(editor)})
    shell.run("SELECT 1;", "1 row")
    shell.send(".edit SELECT 1" + ENTER)
    shell.wait(r"\+ 41 AS x;")
    shell.send(ENTER)
    shell.wait(r"│ +42 │")
    shell.prompt()
    shell.send(".edit" + ENTER)
    shell.wait(r"> \.edit\s+bamquery> SELECT 1")
    shell.send(CTRL_C)
    os.unlink(editor)
    shell.prompt()
    assert "cannot be run" in shell.run(".edit", "set EDITOR")
