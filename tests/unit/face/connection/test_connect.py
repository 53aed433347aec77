"""`connect`: paths as users write them, slips of the finger, and settings by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import bamquery
from bamquery.engine.settings import Settings, SettingValues
from bamquery.errors import SettingError, StorageError


def made(path: Path) -> Path:
    bamquery.connect(path).close()
    return path


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with bamquery.connect("~/x.bq") as con:
        assert con.created
        assert "made new" in repr(con)
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
    assert (tmp_path / "x.bq").is_dir()
    with bamquery.connect(Path("~") / "x.bq") as con:
        assert not con.created
        assert con.tables == ["t"]


def test_memory_is_not_said_to_be_new() -> None:
    with bamquery.connect() as con:
        assert not con.created
        assert "made new" not in repr(con)


def test_a_missing_parent(tmp_path: Path) -> None:
    (tmp_path / "stored_things").mkdir()
    with pytest.raises(StorageError, match=r'no folder .*stored_thing .*"stored_things".*mkdir -p') as caught:
        bamquery.connect(tmp_path / "stored_thing" / "x.bq")
    assert caught.value.path == tmp_path / "stored_thing" / "x.bq"
    with pytest.raises(StorageError, match=r"no folder .*/far "):
        bamquery.connect(tmp_path / "far" / "away" / "x.bq", create=True)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="is a file"):
        bamquery.connect(tmp_path / "file" / "x.bq")
    assert sorted(os.listdir(tmp_path)) == ["file", "stored_things"]


@pytest.mark.parametrize("name", ["trps.bq", "tripss.bq", "tirps.bq", "trips.db", "trips", "Trips.bq"])
def test_a_slip_for_a_database_beside_it(tmp_path: Path, name: str) -> None:
    made(tmp_path / "trips.bq")
    with pytest.raises(StorageError, match=r'"trips\.bq" beside it.*create=True'):
        bamquery.connect(tmp_path / name)
    assert os.listdir(tmp_path) == ["trips.bq"]
    with bamquery.connect(tmp_path / name, create=True) as con:
        assert con.created
    bamquery.connect(tmp_path / name).close()  # there by now


@pytest.mark.parametrize(
    ("there", "name"),
    [
        ("db1", "db2"),
        ("a", "b"),
        ("sales_2023.bq", "sales_2024.bq"),
        ("part_a", "part_b"),
        ("sales1", "sales"),
        ("trips.bq", "zones.bq"),
    ],
)
def test_names_that_differ_on_purpose(tmp_path: Path, there: str, name: str) -> None:
    made(tmp_path / there)
    with bamquery.connect(tmp_path / name) as con:
        assert con.created


def test_folders_that_are_no_databases_are_no_slips(tmp_path: Path) -> None:
    (tmp_path / "trips.bq").mkdir()
    bamquery.connect(tmp_path / "trps.bq").close()
    with bamquery.connect(tmp_path / "trips.bq") as con:  # an empty folder becomes one
        assert con.created


def test_create_false_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="create=False"):
        bamquery.connect(tmp_path / "new", create=False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="there is no database"):
        bamquery.connect(tmp_path / "empty", create=False)
    assert os.listdir(tmp_path / "empty") == []
    made(tmp_path / "trips")
    with pytest.raises(StorageError, match='"trips" beside it: open that') as caught:
        bamquery.connect(tmp_path / "tripss", create=False)
    assert "create=True" not in str(caught.value)
    bamquery.connect(tmp_path / "trips", create=False).close()


def test_paths_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="the path is empty"):
        bamquery.connect("")
    with pytest.raises(TypeError, match="path is a str"):
        bamquery.connect(b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        bamquery.connect(5)  # type: ignore[arg-type]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(StorageError, match="not a BamQuery database"):
        bamquery.connect(tmp_path / "full")


def test_type_checkers_know_every_setting() -> None:
    assert set(get_type_hints(SettingValues)) == {field.name for field in fields(Settings)}


def test_a_misspelt_setting_fails_when_it_runs() -> None:
    with pytest.raises(SettingError, match=r'no setting "thread".*"threads"'):
        bamquery.connect(thread=4)  # type: ignore[call-arg]
    with bamquery.connect(threads=2) as con:
        with pytest.raises(SettingError, match=r'no setting "memory_limits".*"memory_limit"'):
            con.set(threads=3, memory_limits="1GB")  # type: ignore[call-overload]
        assert con.settings.threads == 2  # all or none
        con.set(threads=3, memory_limit="1GB")
        con.set("block_size", 4096)
        assert (con.settings.threads, con.settings.memory_limit, con.settings.block_size) == (3, 10**9, 4096)
        con.set(threads=None)
        assert con.settings.threads is None
        with pytest.raises(TypeError, match="one name and its value"):
            con.set("threads")  # type: ignore[call-overload]


_SNIPPET = """\
import bamquery

con = bamquery.connect("x", threads=4, memory_limit="2GiB", create=True)
con.set(zone_maps=False)
bamquery.connect(thread=4)
bamquery.connect(reader="mapt")
con.set(zone_map=False)
con.table("t").filter(bamquery.col("a") > 3).filtr("a")
relation: bamquery.Relation = con.table("t").join(con.table("u"), on="a", how="left").order("a")
con.table("t").join(con.table("u"), on="a", how="lift")
rows: int = relation.to_parquet("x.parquet", compression="zstd")
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs Node, and would fetch it")
def test_pyright_finds_misspelt_names(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    snippet = tmp_path / "snippet.py"
    snippet.write_text(_SNIPPET)
    # With the checkout as the place of the package: an editable install's hook tells pyright nothing.
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(Path(bamquery.__file__).parents[1])]})
    )
    done = subprocess.run(
        ["python", "-m", "pyright", "--outputjson", "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(os.sys.executable).parent}:{os.environ['PATH']}"},
    )
    report = json.loads(done.stdout)
    wrong = {problem["range"]["start"]["line"] + 1 for problem in report["generalDiagnostics"]}
    assert wrong == {5, 6, 7, 8, 10}, done.stdout
