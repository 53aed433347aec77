"""What looks for files and opens them asks whether to go on, before each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import bamquery
from bamquery.errors import CancelledError
from bamquery.statement_context.cancellation import use_cancellation_check
from bamquery.storage.ingest import opening
from bamquery.storage.ingest.opening import open_source
from bamquery.storage.ingest.sources.path_patterns import matching_paths
from bamquery.storage.ingest.sources.paths import expand


class Stopped(CancelledError):  # noqa: N818 (it stands for an interrupt)
    """Raised by a check."""


def stopping_after(count: int) -> Callable[[], None]:
    left = iter(range(count))

    def check() -> None:
        if next(left, None) is None:
            raise Stopped

    return check


def test_a_pattern_that_matches_nothing_can_be_stopped(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}/a/b").mkdir(parents=True)
    for pattern in ("**/none.csv", "*/a/b/*.csv"):
        with pytest.raises(Stopped):
            expand(str(tmp_path / pattern), check=stopping_after(15))


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
@pytest.mark.parametrize("folders", [False, True])
def test_opening_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, folders: bool
) -> None:
    paths = []
    for number in range(40):
        path = tmp_path / (f"k={number}" if folders else "") / f"{number}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        if suffix == "parquet":
            parquet.write_table(pa.table({"a": [number]}), path)
        else:
            path.write_text('{"a": 1}\n' if suffix == "json" else "a,b\n1,x\n")
        paths.append(str(path))
    opened = 0
    open_file = opening._open_file

    def counted(*arguments: object, **options: object) -> object:
        nonlocal opened
        opened += 1
        return open_file(*arguments, **options)

    monkeypatch.setattr(opening, "_open_file", counted)
    with pytest.raises(Stopped):
        open_source(paths, check=stopping_after(len(paths) + 5))
    assert 0 < opened <= 6


def test_a_statement_that_is_cancelled_opens_no_more_files(tmp_path: Path) -> None:
    for number in range(50):
        parquet.write_table(pa.table({"a": [number]}), tmp_path / f"{number}.parquet")
    with bamquery.connect(device="cpu") as connection:
        connection.sql(f"CREATE VIEW v AS FROM '{tmp_path}/*.parquet'")
        for query in (f"FROM '{tmp_path}/*.parquet'", "FROM v"):
            with use_cancellation_check(stopping_after(60)), pytest.raises(Stopped):
                connection.sql(query)


def test_reading_can_be_stopped_between_files_without_rows(tmp_path: Path) -> None:
    for number in range(50):
        parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / f"{number}.parquet")
    source = open_source(str(tmp_path / "*.parquet"))
    with use_cancellation_check(stopping_after(10)), pytest.raises(Stopped):
        list(source.batches())


def test_a_load_is_interrupted_while_files_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        parquet.write_table(pa.table({"a": [number]}), tmp_path / f"{number}.parquet")
    opened = 0
    open_file = opening._open_file
    with bamquery.connect(device="cpu") as connection:

        def interrupting(*arguments: object, **options: object) -> object:
            nonlocal opened
            opened += 1
            if opened == 3:
                connection.interrupt()
            return open_file(*arguments, **options)

        monkeypatch.setattr(opening, "_open_file", interrupting)
        with pytest.raises(CancelledError):
            connection.load("t", str(tmp_path / "*.parquet"))
        assert opened == 3
        assert connection.tables == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.csv", ["a.csv", "b.csv"]),
        ("[a-b].csv", ["a.csv", "b.csv"]),
        ("?.csv", ["a.csv", "b.csv"]),
        (".*.csv", [".hidden.csv"]),
        ("*/*.csv", ["x/c.csv"]),
        ("**/*.csv", ["a.csv", "b.csv", "x/c.csv", "x/y/d.csv"]),
        ("x/**/d.csv", ["x/y/d.csv"]),
        ("x/y/*", ["x/y/d.csv"]),
        ("*/y/d.csv", ["x/y/d.csv"]),
        ("none/*.csv", []),
        ("a.csv/*", []),
        ("link*", ["link.csv"]),
    ],
)
def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, expected: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x/y").mkdir(parents=True)
    (tmp_path / ".z").mkdir()
    for name in ("a.csv", "b.csv", ".hidden.csv", "x/c.csv", "x/y/d.csv", ".z/e.csv"):
        (tmp_path / name).touch()
    (tmp_path / "link.csv").symlink_to("a.csv") if "link" in pattern else None
    (tmp_path / "around").symlink_to("around")
    for where in (Path(), tmp_path):
        found = matching_paths(where / pattern, lambda _: None)
        assert sorted(str(Path(path).relative_to(where)) for path in found) == expected
