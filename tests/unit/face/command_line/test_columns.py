"""`bamquery columns`: figures that are right, in three forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from tests.stored import store
from tests.unit.face.conftest import Run

ROWS = 100_000


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table t of two fragments: columns of every encoding, of which `late` is younger than the first rows."""
    random = np.random.default_rng(0)
    table = pa.table(
        {
            "key": pa.array(random.permutation(ROWS)),
            "price": pa.array(random.integers(0, 5000, ROWS) / 100, mask=np.arange(ROWS) % 10 == 0),
            "noise": pa.array(random.random(ROWS)),
            "word": pa.array([f"word {i % 12}" for i in range(ROWS)]),
            "code": pa.array(["x", "y"] * (ROWS // 2)).dictionary_encode(),
            "same": pa.array(np.full(ROWS, 7)),
            "$odd\x1b": pa.array([f"text {i}" for i in range(ROWS)]),
        }
    )
    path = tmp_path_factory.mktemp("columns") / "db"
    with bamquery.connect(path) as con:
        store(con._session.database, "T", table, (40_000,), encoding="auto")
        store(con._session.database, "plain", table.slice(0, 2000))
        con.sql("ALTER TABLE T ADD COLUMN late INTEGER; CREATE TABLE nothing (a INTEGER, b VARCHAR)")
    return path


def columns(run: Run, database: Path, table: str) -> dict[str, dict[str, object]]:
    done = run("columns", database, table, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return {column["name"]: column for column in json.loads(done.stdout)["columns"]}


def test_figures(run: Run, database: Path) -> None:
    found = columns(run, database, "t")
    assert {name: column["encodings"] for name, column in found.items()} == {
        "key": {"packed": 2},
        "price": {"packed": 2},
        "noise": {"plain": 2},
        "word": {"dictionary": 2},
        "code": {"dictionary": 2},
        "same": {"packed": 2},
        "$odd\x1b": {"fsst": 2},
        "late": {},
    }
    key, price, same = found["key"], found["price"], found["same"]
    vectors = 40 + 59
    assert key["forms"] == {"integer": vectors}
    assert price["forms"] == {"decimal": vectors}
    assert same["forms"] == {"constant": vectors}
    assert same["stored_bytes"] == 16 * vectors
    assert 17 <= key["bits"] <= 17.5
    assert 13 <= price["bits"] <= 13.5
    assert (key["plain_bits"], found["noise"]["bits"]) == (64, 64)
    assert price["plain_bits"] == pytest.approx(65, abs=0.01)  # with the bitmap of its nulls
    assert key["ratio"] == pytest.approx(key["plain_bytes"] / key["stored_bytes"])
    assert {name: column["nulls"] for name, column in found.items() if column["nulls"]} == {
        "price": ROWS // 10,
        "late": ROWS,
    }
    assert 0 < 8 * key["statistics_bytes"] <= 0.8 * 1024 * vectors  # bits a value, parts included


def test_distinct_values_are_estimated(run: Run, database: Path) -> None:
    found = {name: (c["distinct"], c["distinct_exact"]) for name, c in columns(run, database, "t").items()}
    assert (found["word"], found["code"], found["same"]) == ((12, True), (2, True), (1, False))
    assert found["late"] == (0, True)
    for name, distinct in (("key", ROWS), ("noise", ROWS), ("price", 5000)):
        assert found[name][0] == pytest.approx(distinct, rel=0.02)
    exact = columns(run, database, "plain")
    assert (exact["noise"]["distinct"], exact["noise"]["distinct_exact"]) == (2000, True)
    assert exact["code"]["encodings"] == {"plain dictionary": 1}


def test_a_table_for_people(run: Run, database: Path) -> None:
    done = run("columns", database, "t")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    names = "column type encoding bits plain ratio distinct nulls"
    assert lines[1].replace("│", "").split() == names.split(" ")
    (price,) = (line for line in lines if "price" in line)
    assert "DOUBLE  │ packed (decimal)" in price
    assert "\x1b" not in done.stdout
    assert lines[-1].startswith("T: 100,000 rows, ")
    assert " of zone maps and checksums" in lines[-1]


def test_a_table_without_rows(run: Run, database: Path) -> None:
    done = run("columns", database, "nothing")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing: no rows")
    assert columns(run, database, "nothing")["a"]["bits"] is None


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture(run: Run, database: Path, tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"columns.{suffix}"
    assert run("columns", database, "t", "--picture", path).returncode == 0
    first = path.read_bytes()
    assert run("columns", database, "t", "--picture", path).returncode == 0
    assert path.read_bytes() == first
    done = run("columns", database, "t", "--picture", tmp_path / "no" / f"c.{suffix}")
    assert (done.returncode, "cannot write the picture" in done.stderr) == (1, True)


def test_what_cannot_be_says_the_way_out(run: Run, database: Path, tmp_path: Path) -> None:
    done = run("columns", database, "tt")
    assert (done.returncode, 'Did you mean "T"?' in done.stderr) == (1, True)
    assert run("columns", tmp_path / "none", "t").returncode == 1
    assert not (tmp_path / "none").exists()
