"""Where COPY may write: `enable_external_access` and what comes with it, and ways around it."""

import os
from pathlib import Path

import pytest

import bamquery
from bamquery.errors import (
    AccessError,
    BamQueryError,
    SqlError,
    StorageError,
)
from tests.unit.face.external_access.restricted import connect_restricted


@pytest.mark.parametrize(
    "target",
    ["out/o.csv", "in/../out/o.csv", "in/folder/o.csv", "in/link.csv", "o.csv", "in/loop/folder/o.csv"],
)
def test_other_files_cannot_be_written(place: Path, target: str) -> None:
    with connect_restricted(place) as con:
        before = sorted(os.listdir(place / "out")), (place / "out" / "s.csv").read_text()
        with pytest.raises(AccessError, match="enable_external_access"):
            con.sql(f"COPY (SELECT 1 AS a) TO '{place}/{target}'")
        assert before == (sorted(os.listdir(place / "out")), (place / "out" / "s.csv").read_text())


def test_nothing_runs_before_a_target_is_refused(place: Path) -> None:
    with connect_restricted(place) as con, pytest.raises(AccessError):
        con.sql(f"COPY (SELECT CAST('x' AS INTEGER) AS a) TO '{place}/out/o.csv'")


def test_allowed_directories_can_be_written(place: Path) -> None:
    with connect_restricted(place) as con:
        con.sql(f"COPY (SELECT 7 AS a) TO '{place}/in/loop/new.csv'")
        con.sql(f"COPY (SELECT 8 AS a) TO '{place}/in/x.csv'")
        with pytest.raises(BamQueryError, match=r"nowhere/o\.csv"):
            con.sql(f"COPY (SELECT 8 AS a) TO '{place}/in/nowhere/o.csv'")
    assert (place / "in" / "new.csv").read_text() == "a\n7\n"
    assert (place / "in" / "x.csv").read_text() == "a\n8\n"
    assert not [name for name in os.listdir(place / "in") if name.endswith(".tmp")]


def test_nothing_is_written_into_a_database(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    elsewhere = tmp_path / "disk"
    with bamquery.connect(folder) as con, bamquery.connect(tmp_path / "other") as other:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        (tmp_path / "link").symlink_to(folder / "tables")
        table = next((folder / "tables").iterdir())
        table.rename(elsewhere)
        table.symlink_to(elsewhere)
        (tmp_path / "plain").mkdir()
        fragment = next((elsewhere / "fragments").glob("*.arrow"))
        (tmp_path / "plain" / "hard.csv").hardlink_to(fragment)
        before = fragment.read_bytes()
        targets = ["db/o.csv", "db/tables/o.csv", "link/o.csv", f"link/{table.name}/fragments/o.csv"]
        targets += ["plain/../db/bamquery.json", "disk/fragments/o.csv", f"disk/fragments/{fragment.name}"]
        for one in (con, other):
            for target in targets:
                with pytest.raises(AccessError, match="BamQuery database"):
                    one.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/{target}'")
        con.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/plain/hard.csv'")  # takes the name, not what it named
        assert fragment.read_bytes() == before
        assert con.sql("FROM t").fetchall() == [(1,)]


PARTITIONED = "COPY (SELECT 1 AS a, {} AS {}) TO '{}' (FORMAT csv, PARTITION_BY ({}){})"


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("'../../out/x'", "k"),
        ("'..'", "k"),
        ("'/etc'", "k"),
        ("chr(0)", "k"),
        ("chr(10)", "k"),
        ("''", "k"),
        ("'%2F..%2F'", "k"),
        ("'v'", '"../../out/x"'),
        ("'v'", '".."'),
        ("'v'", '"/etc"'),
        ("'v'", '"."'),
    ],
)
def test_folders_of_keys_stay_within_theirs(place: Path, value: str, key: str) -> None:
    before = sorted(place.rglob("*"))
    with connect_restricted(place) as con:
        con.sql(PARTITIONED.format(value, key, f"{place}/in/new", key, ""))
        made = sorted(set(place.rglob("*")) - set(before))
        assert [len(path.relative_to(place / "in" / "new").parts) for path in made] == [0, 1, 2]
        again = con.sql(f"FROM read_csv('{made[1]}/*', all_varchar = true, hive_partitioning = true)")
        assert again.fetchall() == con.sql(f"SELECT '1', {value}::VARCHAR").fetchall()


@pytest.mark.parametrize(
    "option", ["FILENAME_PATTERN '../x'", "FILENAME_PATTERN '/x'", "FILE_EXTENSION '/../../x'"]
)
def test_names_of_partitioned_files_are_no_paths(place: Path, option: str) -> None:
    with connect_restricted(place) as con, pytest.raises(SqlError, match="without /"):
        con.sql(PARTITIONED.format(1, "k", f"{place}/in/new", "k", f", {option}"))
    assert not (place / "in" / "new").exists()


@pytest.mark.parametrize("mode", ["", ", OVERWRITE", ", OVERWRITE_OR_IGNORE", ", APPEND"])
@pytest.mark.parametrize("target", ["in/part", "in/folder", "out", "in/../out", "in/loop/folder/new"])
def test_partitioned_files_follow_no_link(place: Path, target: str, mode: str) -> None:
    (place / "in" / "part").mkdir()
    (place / "in" / "part" / "k=1").symlink_to(place / "out")
    with connect_restricted(place) as con, pytest.raises((AccessError, StorageError)):
        con.sql(PARTITIONED.format(1, "k", f"{place}/{target}", "k", mode))
    assert os.listdir(place / "out") == ["s.csv"]


def test_partitioned_files_are_not_written_into_a_database(tmp_path: Path) -> None:
    folder, parts = tmp_path / "up" / "k=1", tmp_path / "parts"
    parts.mkdir()
    (tmp_path / "up").mkdir()
    (parts / "k=1").symlink_to(folder)
    with bamquery.connect(folder) as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        before = sorted(folder.rglob("*"))
        (tmp_path / "up").rename(tmp_path / "down")
        (tmp_path / "up").symlink_to("down")  # the name by which it was opened is another way there now
        for target in ("up", "down", "parts", "up/k=1", "up/k=1/tables", "parts/../down/k=1"):
            for mode in (
                ", OVERWRITE_OR_IGNORE",
                ", OVERWRITE",
                ", APPEND",
                ", APPEND, FILE_EXTENSION 'json'",
            ):
                with pytest.raises((AccessError, StorageError), match=r"BamQuery database|not removed"):
                    con.sql(PARTITIONED.format(1, "k", tmp_path / target, "k", mode))
        for target in ("up/k=1/o.csv", "down/k=1/tables/o.csv", "parts/k=1/o.csv"):
            with pytest.raises(AccessError, match="BamQuery database"):
                con.sql(f"COPY (SELECT 1 AS a) TO '{tmp_path}/{target}'")
        assert sorted(folder.rglob("*")) == before
        assert con.sql("FROM t").fetchall() == [(1,)]
