import os
from pathlib import Path

import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest.sources.paths import expand


@pytest.fixture
def folder(tmp_path):
    for name in ("trips_10.csv", "trips_2.csv", "trips_1.csv", "green.parquet", "odd[1].csv"):
        (tmp_path / name).write_text("x")
    (tmp_path / "2024").mkdir()
    (tmp_path / "2024" / "trips_3.csv").write_text("x")
    return tmp_path


def names(files):
    return [file.name for file in files]


def test_patterns_sort_naturally(folder):
    assert names(expand(f"{folder}/trips_*.csv")) == ["trips_1.csv", "trips_2.csv", "trips_10.csv"]
    assert names(expand(folder / "trips_?.csv")) == ["trips_1.csv", "trips_2.csv"]
    assert names(expand(f"{folder}/**/trips_[23].csv")) == ["trips_3.csv", "trips_2.csv"]


def test_folders_that_match_are_passed_over(folder):
    assert names(expand(f"{folder}/2*") if (folder / "2.csv").write_text("x") else []) == ["2.csv"]


def test_lists_keep_their_order(folder):
    files = expand([folder / "green.parquet", f"{folder}/trips_?.csv", str(folder / "trips_1.csv")])
    assert names(files) == ["green.parquet", "trips_1.csv", "trips_2.csv", "trips_1.csv"]


def test_a_name_that_looks_like_a_pattern(folder):
    assert names(expand(str(folder / "odd[1].csv"))) == ["odd[1].csv"]


def test_home(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert expand("~/green.parquet") == [folder / "green.parquet"]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("{0}/tripps_*.csv", r'{0}/tripps_\*.csv: no file matches this pattern.* Did you mean "{0}/trips_'),
        ("{0}/gren.parquet", r'{0}/gren.parquet: no such file. Did you mean "{0}/green.parquet"\?'),
        ("{0}/zzzzzz", r"no such file; the folder has green.parquet, odd"),
        ("{0}/nowhere/x.csv", r"there is no folder {0}/nowhere"),
        ("{0}/*/zz*.csv", r"no file matches this pattern"),
        ("{0}", r'is a folder: name its files with a pattern such as "{0}/\*.csv"'),
        ("https://example.org/trips.parquet", r"is a URL.*download it"),
        ("s3://bucket/trips.parquet", r"is a URL"),
        ("", r"the path is empty"),
        ([], r"the list of files is empty"),
    ],
)
def test_what_cannot_be_found(folder, what, message):
    if isinstance(what, str):
        what = what.format(folder)
    with pytest.raises(IngestError, match=message.replace("{0}", str(folder))):
        expand(what)


def test_an_empty_folder_and_a_pipe(tmp_path):
    (tmp_path / ".x.csv.12-34.tmp").touch()  # a draft, which is nobody's business
    with pytest.raises(IngestError, match="has no files"):
        expand(tmp_path / "x.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(IngestError, match="is a pipe or device"):
        expand(tmp_path / "pipe")


def test_relative_paths(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert expand("green.parquet") == [Path("green.parquet")]
    with pytest.raises(IngestError, match="Did you mean"):
        expand("green.parqet")
