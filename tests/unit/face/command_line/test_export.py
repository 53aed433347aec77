"""`bamquery export`: a table as one file, there once all of it is, and nothing where anything fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

import bamquery
from bamquery.output import binary_files
from tests.stored import numbers, store
from tests.unit.face.conftest import Run

ROWS = 12_000


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table `numbers` in three fragments with packed columns, and a second version of one row more."""
    path = tmp_path_factory.mktemp("export") / "db"
    with bamquery.connect(path) as con:
        store(con._session.database, "numbers", numbers(ROWS), (1, 5000), encoding="auto")
        con.sql("CREATE VIEW few AS SELECT position FROM numbers WHERE rare = 1")
    return path


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return parquet.ParquetFile(path).read()
    with ipc.open_file(path) as file:
        return file.read_all()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_all_rows_decoded(run: Run, encoded: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"n.{suffix}"
    done = run("export", encoded, "numbers", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("12,000 rows, ")
    assert read(target).to_pydict() == numbers(ROWS).to_pydict()
    assert read(target).schema.field("word").type == pa.large_string()
    assert os.listdir(tmp_path) == [target.name]


def test_columns_rows_and_views(run: Run, encoded: Path, tmp_path: Path) -> None:
    wanted = ("--columns", "rare", "position", "--where", "rare = 1 OR position < 3")
    assert run("export", encoded, "Numbers", tmp_path / "n.parquet", *wanted).returncode == 0
    found = read(tmp_path / "n.parquet")
    assert found.column_names == ["rare", "position"]
    everything = numbers(ROWS).to_pydict()
    rows = [row for row in range(ROWS) if everything["rare"][row] == 1 or row < 3]
    assert found["position"].to_pylist() == rows
    assert run("export", encoded, "few", tmp_path / "few.arrow").returncode == 0
    assert read(tmp_path / "few.arrow")["position"].to_pylist() == [r for r in rows if everything["rare"][r]]


def test_an_earlier_version(run: Run, encoded: Path, tmp_path: Path) -> None:
    done = run("export", encoded, "numbers", tmp_path / "n.arrow", "--version", "2")
    assert done.stdout.startswith("5,000 rows, ")
    done = run("export", encoded, "numbers", tmp_path / "m.arrow", "--version", "9")
    assert (done.returncode, "stored: 1, 2, 3" in done.stderr) == (1, True)


def test_a_file_that_is_there_stays_unless_forced(run: Run, encoded: Path, tmp_path: Path) -> None:
    target = tmp_path / "n.parquet"
    target.write_text("mine")
    done = run("export", encoded, "numbers", target)
    assert (done.returncode, target.read_text()) == (1, "mine")
    assert "is there already: name another file, or pass --force" in done.stderr
    assert run("export", encoded, "numbers", target, "--force").returncode == 0
    assert read(target).num_rows == ROWS
    assert os.listdir(tmp_path) == ["n.parquet"]


def test_a_file_that_comes_meanwhile_stays(
    run: Run, encoded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, write = tmp_path / "n.arrow", binary_files._write_batches

    def slow(*arguments: object) -> int:
        target.write_text("theirs")
        return write(*arguments)

    monkeypatch.setattr(binary_files, "_write_batches", slow)
    done = run("export", encoded, "numbers", target)
    assert (done.returncode, target.read_text(), os.listdir(tmp_path)) == (1, "theirs", ["n.arrow"])
    assert "is there already" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("numbers", "n.txt"), "end the name with .parquet or .arrow"),
        (("numberz", "n.arrow"), 'Did you mean "numbers"?'),
        (("numbers", "n.arrow", "--columns", "nois"), 'Did you mean "noise"?'),
        (("numbers", "n.arrow", "--where", "nois > 1"), 'Did you mean "noise"?'),
        (("numbers", "no/n.arrow"), "no/n.arrow"),
    ],
)
def test_what_cannot_be_says_the_way_out(
    run: Run, encoded: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run("export", encoded, *arguments, cwd=tmp_path)
    assert (done.returncode, os.listdir(tmp_path)) == (1, [])
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_no_database_is_made(run: Run, tmp_path: Path) -> None:
    assert run("export", tmp_path / "db", "t", tmp_path / "t.arrow").returncode == 1
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(encoded: Path, tmp_path: Path) -> None:
    """RLIMIT_FSIZE: writes beyond it fail as they do where there is no room."""
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from bamquery.command_line.main import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = [sys.executable, "-c", script, "export", encoded, "numbers", tmp_path / "n.parquet"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100)
    assert (done.returncode, os.listdir(tmp_path)) == (1, [])
    assert "n.parquet: the output cannot be written: File too large" in done.stderr


def test_an_interrupt_leaves_nothing(encoded: Path, tmp_path: Path) -> None:
    """The condition never ends by itself."""
    endless = "(SELECT count(*) FROM range(100000000000) r(i) WHERE i % 3 = position % 3) > 0"
    command = [sys.executable, "-m", "bamquery", "export", encoded, "numbers", tmp_path / "n.arrow"]
    with subprocess.Popen([*command, "--where", endless], stderr=subprocess.PIPE) as process:
        while not os.listdir(tmp_path):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b"bamquery: interrupted\n"
    assert os.listdir(tmp_path) == []
