"""Several processes make the bytes that one thread makes, and leave nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery.errors import BamQueryError
from bamquery.queries.generator import generate as generating
from bamquery.queries.generator import processes
from bamquery.queries.generator.generate import TripGenerator, generate
from bamquery.queries.generator.processes import batches_from_processes
from bamquery.queries.generator.recipe import COLUMNS, Recipe
from bamquery.queries.generator.worker import Share
from bamquery.storage.database.database import Database


@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize(
    ("rows", "count"), [(0, 2), (1, 3), (70_000, 2), pytest.param(300_000, 3, marks=pytest.mark.slow)]
)
def test_the_rows_are_those_of_one_thread(rows: int, count: int, nulls: bool) -> None:
    recipe = Recipe(rows, tuple(COLUMNS) if rows < 100_000 else COLUMNS[5:8], nulls=nulls)
    generator = TripGenerator(recipe)
    found = pa.Table.from_batches(list(batches_from_processes(recipe, count)), generator.schema)
    whole = pa.Table.from_batches(list(generator.batches(1)), generator.schema)
    assert found.combine_chunks().equals(whole.combine_chunks())


def test_shares_cover_all_rows_once() -> None:
    recipe = Recipe(1_000_001)
    starts = sorted(start for number in range(7) for start in Share(recipe, number, 7).starts())
    assert starts == list(range(0, recipe.rows, Share(recipe, 0, 7).batch_rows))


@pytest.mark.parametrize("nulls", [True, False])
def test_tables_have_the_same_fragments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nulls: bool) -> None:
    """File by file: where fragments are cut depends on the bytes of batches, too."""
    monkeypatch.setattr("bamquery.storage.tables.writer.FRAGMENT_BYTES", 1 << 20)
    recipe = Recipe(150_000, ("total_amount", "mta_tax", "improvement_surcharge"), nulls=nulls)
    found = []
    for least in (0, 10**9):
        monkeypatch.setattr(generating, "PROCESS_ROWS", least)
        with Database.open(tmp_path / f"{least}.bq") as database:
            generate(database, "generated", recipe, threads=2)
            with database.table("generated").snapshot() as snapshot:
                found.append([fragment.path.read_bytes() for fragment in snapshot.fragments])
    assert len(found[0]) > 2
    assert found[0] == found[1]


def test_a_process_that_is_killed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: object, **settings: object) -> None:
            super().__init__(*arguments, **settings)  # type: ignore[call-overload]
            started.append(self)

    monkeypatch.setattr(processes.subprocess, "Popen", Recorded)
    rows = batches_from_processes(Recipe(50_000_000), 2)
    next(rows)
    os.kill(started[1].pid, signal.SIGKILL)
    with pytest.raises(BamQueryError, match=r"a process ended before its last row, with status -9"):
        for _ in rows:
            pass
    assert [process.returncode is not None for process in started] == [True, True]


def test_whoever_stops_early_leaves_no_process() -> None:
    program = """
import os, subprocess
from bamquery.queries.generator.processes import batches_from_processes
from bamquery.queries.generator.recipe import Recipe
rows = batches_from_processes(Recipe(50_000_000), 2)
next(rows)
rows.close()
children = ["ps", "--ppid", str(os.getpid()), "-o", "comm="]
print(subprocess.run(children, capture_output=True, text=True).stdout)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.split() if line != "ps"] == []
    assert done.stderr == ""
