"""Which files statements may name: `enable_external_access` and what comes with it, and ways around it."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import bamquery
from bamquery.errors import (
    AccessError,
    BamQueryError,
    IngestError,
    SettingError,
    SqlError,
)
from tests.unit.face.external_access.restricted import SECRET, connect_restricted


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("in/x.csv", 1),
        ("in/./sub/../x.csv", 1),
        ("in/within.csv", 1),
        ("in/loop/loop/x.csv", 1),
        ("in/su*/y.csv", 2),
        ("in/p.parquet", 3),
        ("in/f.arrow", 4),
        ("in/j.json", 5),
    ],
)
def test_allowed_directories_can_be_read(place: Path, name: str, answer: int) -> None:
    with connect_restricted(place) as con:
        assert con.sql(f"FROM '{place}/{name}'").fetchall() == [(answer,)]
        con.sql(f"CREATE TABLE t AS FROM '{place}/{name}'")
        assert con.load("u", str(place / name)) == 1


ATTACKS = [
    "/etc/passwd",
    "{}/out/s.csv",
    "{}/in/../out/s.csv",
    "{}/in/link.csv",
    "{}/in/folder/s.csv",
    "{}/in/loop/folder/s.csv",
    "{}/in/*/s.csv",
    "{}/in/l*.csv",
    "{}/out/*.csv",
    "{}/*/s.csv",
    "{}/in/s*/../../out/s.csv",
    "{}/in/**/s.csv",
    "{}/in*.csv",
    "{}/inside_too.csv",  # begins as the folder does
    "{}/IN/x.csv",
    "{}/in/../in/../out/s.csv",
    "{}/in/fold*/s.csv",
    "{}/in/fold*/*",
    "{}/in/l*/folder/s.csv",
    "{}/in/[l]ink.csv/../../out/s.csv",
    "{}/in/x.csv/../../out/s.csv",
    "{}/in//../out/s.csv",
    "/proc/thread-self/root{}/out/s.csv",
    "~root/x.csv",
    "~nobody-has-this-name/x.csv",
    "{}/nowhere/x.csv",
    "/proc/self/root{}/out/s.csv",
    "/proc/self/cwd/x.csv",
    "/proc/self/fd/0",
    "/dev/stdin",
    "file://{}/out/s.csv",
    "file:{}/out/s.csv",
    "out/s.csv",
    "../out/s.csv",
    "~/x.csv",
    "",
]


@pytest.mark.parametrize("pattern", ATTACKS)
@pytest.mark.parametrize(
    "form", ["FROM '{}'", "FROM read_csv('{}')", "FROM read_parquet(['{}'])", "COPY t FROM '{}'"]
)
def test_other_files_cannot_be_read(
    place: Path, pattern: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    with connect_restricted(place) as con:
        con.sql("CREATE TABLE t (a VARCHAR)")
        with pytest.raises(SqlError) as caught:
            con.sql(form.format(pattern.format(place))).fetchall()
        said = str(caught.value)
        assert "enable_external_access" in said or "a URL" in said or "is empty" in said
        assert SECRET not in said
        with pytest.raises((AccessError, IngestError)):
            con.load("t", pattern.format(place), if_exists="append")
        assert con.sql("FROM t").fetchall() == []


def test_whether_a_file_exists_is_not_told(place: Path) -> None:
    with connect_restricted(place) as con:
        told = []
        names = ["out/s.csv", "out/t.csv", "out/s*", "out/t*", "in/folder/s.csv", "in/folder/t.csv"]
        names += ["in/fold*/s.csv", "in/fold*/t.csv", "in/f*r/s*", "in/f*r/t*", "in/l*p/folder/t.csv"]
        for name in names:
            with pytest.raises(SqlError) as caught:
                con.sql(f"FROM '{place}/{name}'")
            told.append(str(caught.value).replace(name, ""))
        assert len({text.split("\n")[0] for text in told}) == 1


READINGS = [
    "DESCRIBE FROM '{out}'",
    "SUMMARIZE FROM '{out}'",
    "SUMMARIZE '{out}'",
    "SHOW '{out}'",
    "EXPLAIN FROM '{out}'",
    "EXPLAIN ANALYZE FROM '{out}'",
    "CREATE VIEW v AS FROM '{out}'",
    "CREATE TABLE u AS FROM '{out}'",
    "INSERT INTO t FROM '{out}'",
    "COPY (FROM '{out}') TO '{in}/n.csv'",
    "COPY t FROM '{out}'",
    "SELECT (SELECT a FROM '{out}')",
    "SELECT 1 WHERE EXISTS (FROM '{out}')",
    "WITH x AS (FROM '{out}') FROM x",
    "FROM '{in}/x.csv' UNION ALL FROM '{out}'",
    "FROM '{in}/x.csv' x SEMI JOIN '{out}' y ON x.a = y.a",
    'FROM "{out}"',
    'TABLE "{out}"',
    "FROM read_csv(['{in}/x.csv', '{out}'])",
    "FROM read_csv_auto('{out}')",
    "FROM read_json('{out}')",
    "FROM read_ndjson('{out}')",
    "FROM parquet_scan('{out}')",
    "FROM read_arrow('{out}')",
]


@pytest.mark.parametrize("text", READINGS)
def test_every_place_of_a_file_is_checked(place: Path, text: str) -> None:
    with connect_restricted(place) as con:
        con.sql("CREATE TABLE t (a VARCHAR)")
        text = text.replace("{out}", f"{place}/out/s.csv").replace("{in}", f"{place}/in")
        with pytest.raises(SqlError, match="enable_external_access"):
            con.sql(text).fetchall()
        assert (con.tables, con.views) == (["t"], [])
        assert con.sql("FROM t").fetchall() == []
    assert not (place / "in" / "n.csv").exists()


@pytest.mark.parametrize(
    "text",
    [
        "PREPARE q AS FROM '{}/out/s.csv'",
        "CREATE MACRO m() AS TABLE FROM '{}/out/s.csv'",
        "CREATE TEMP VIEW v AS FROM '{}/out/s.csv'",
        "FROM read_text('{}/out/s.csv')",
        "FROM read_blob('{}/out/s.csv')",
        "FROM glob('{}/out/*')",
        "FROM sniff_csv('{}/out/s.csv')",
        "FROM parquet_metadata('{}/out/s.csv')",
        "FROM query('FROM ''{}/out/s.csv'' ')",
        "FROM query_table('{}/out/s.csv')",
        "FROM read_csv('{}/out/' || 's.csv')",
        "ATTACH '{}/out/new' AS o",
        "EXPORT DATABASE '{}/out/new'",
        "IMPORT DATABASE '{}/out/new'",
        "LOAD '{}/out/s.csv'",
        "CALL read_csv('{}/out/s.csv')",
        "SET temp_directory = '{}/out/new'",
        "SET file_search_path = '{}/out'",
        "SET log_query_path = '{}/out/new'",
        "PRAGMA profiling_output = '{}/out/new'",
        "SELECT getenv('HOME')",
    ],
)
def test_other_ways_to_files_are_not_there(place: Path, text: str) -> None:
    """Whoever adds one puts it behind `FileAccess`, and moves its line to the test above."""
    with connect_restricted(place) as con, pytest.raises((SqlError, SettingError)):
        con.sql(text.format(place)).fetchall()
    assert os.listdir(place / "out") == ["s.csv"]


def test_parameters_are_checked_as_text_is(place: Path) -> None:
    secret = f"{place}/out/s.csv"
    with connect_restricted(place) as con:
        for text, params in (("FROM read_csv(?)", [secret]), ("FROM read_csv($f)", {"f": secret})):
            with pytest.raises(SqlError, match="enable_external_access"):
                con.sql(text, params)
        with pytest.raises(AccessError):
            con.sql("COPY (SELECT 1 AS a) TO ?", [f"{place}/out/o.csv"])
        con.sql(f"SET VARIABLE v = '{secret}'")
        for text in ("FROM read_csv(getvariable('v'))", "FROM read_csv($v)", "COPY (SELECT 1 AS a) TO $v"):
            with pytest.raises((AccessError, SqlError), match="enable_external_access"):
                con.sql(text)
        with pytest.raises(SqlError, match="enable_external_access"):
            con.sql(f"SET VARIABLE v = (SELECT max(a) FROM '{secret}')")
        assert con.sql("FROM read_csv(?)", [f"{place}/in/x.csv"]).fetchall() == [(1,)]


def test_what_was_understood_before_is_checked_again(place: Path) -> None:
    text, named = f"FROM '{place}/out/s.csv'", "FROM read_csv($f)"
    params = {"f": f"{place}/out/s.csv"}
    with bamquery.connect() as con:
        assert con.sql(text).fetchall() == con.sql(named, params).fetchall() == [(SECRET,)]
        early = con.cursor()
        pending = con.statements(f"SELECT 1; {text}")
        next(pending)
        con.set("enable_external_access", False)
        for cursor in (con, con.cursor(), early):
            with pytest.raises(SqlError, match="enable_external_access"):
                cursor.sql(text)
            with pytest.raises(SqlError, match="enable_external_access"):
                cursor.sql(named, params)
        with pytest.raises(SqlError, match="enable_external_access"):
            next(pending)


def test_names_that_are_no_text(place: Path) -> None:
    odd = os.fsencode(place / "out") + b"/\xff.csv"
    Path(os.fsdecode(odd)).write_text("a\n1\n")
    with connect_restricted(place) as con:
        with pytest.raises((AccessError, SqlError)):
            con.load("t", os.fsdecode(odd))
        with pytest.raises(BamQueryError):
            con.sql(f"FROM '{place}/in/x.csv\0'")


def test_views_see_what_their_reader_may(place: Path, tmp_path: Path) -> None:
    with bamquery.connect(tmp_path / "db") as con:
        con.sql(f"CREATE VIEW v AS FROM '{place}/out/s.csv'")
        assert con.sql("FROM v").fetchall() == [(SECRET,)]
        con.set("enable_external_access", False)
        with pytest.raises(SqlError, match="enable_external_access"):
            con.sql("FROM v")
        with pytest.raises(SqlError, match="enable_external_access"):
            con.sql("CREATE TABLE t AS FROM v")


def test_a_link_that_comes_after_the_check_is_not_followed(place: Path) -> None:
    for name in ("x.csv", "p.parquet", "f.arrow", "j.json"):
        with connect_restricted(place) as con:
            relation = con.sql(f"FROM '{place}/in/{name}'")
            (place / "in" / name).unlink()
            (place / "in" / name).symlink_to(place / "out" / "s.csv")
            with pytest.raises(IngestError):
                relation.fetchall()


def test_a_folder_that_is_replaced_after_the_check_is_not_followed(place: Path) -> None:
    (place / "out" / "y.csv").write_text(f"a\n{SECRET}\n")
    with connect_restricted(place) as con:
        relation = con.sql(f"FROM '{place}/in/sub/y.csv'")
        (place / "in" / "sub").rename(place / "in" / "was")
        (place / "in" / "sub").symlink_to(place / "out")
        with pytest.raises(IngestError, match="taken the place"):
            relation.fetchall()


@pytest.mark.parametrize("pattern", ["l*/x", "l*/*", "l*/**", "**/x", "**/l*/x", "sub/l*/x"])
@pytest.mark.parametrize("within", ["in", "in/sub"])
def test_what_a_link_leads_to_cannot_be_told_from_a_pattern(place: Path, pattern: str, within: str) -> None:
    """A folder, a file, nothing, itself, or what may not be looked at."""
    said = set()
    for name in ("folder", "loop"):
        (place / "in" / name).unlink()
    (place / "in" / "link.csv").unlink()
    for target in ("out", "out/s.csv", "out/none", "out/s.csv/under a file"):
        link = place / within / "l"
        link.symlink_to(place / target)
        with connect_restricted(place) as con, pytest.raises(SqlError) as caught:
            con.sql(f"FROM '{place}/in/{pattern}'")
        said.add(str(caught.value))
        link.unlink()
    assert len(said) == 1, said


def test_allowed_paths_are_single_files(place: Path) -> None:
    paths = [str(place / "out" / "s.csv"), str(place / "out" / "new.csv"), str(place / "out" / "none.csv")]
    with bamquery.connect(enable_external_access=False, allowed_paths=paths) as con:
        assert con.sql(f"FROM '{place}/out/s.csv'").fetchall() == [(SECRET,)]
        con.sql(f"COPY (SELECT 1 AS a) TO '{place}/out/new.csv'")
        assert (place / "out" / "new.csv").read_text() == "a\n1\n"
        with pytest.raises(AccessError):
            con.sql(f"COPY (SELECT 1 AS a) TO '{place}/out/other.csv'")
        with pytest.raises(SqlError, match="no such file") as caught:
            con.sql(f"FROM '{place}/out/none.csv'")
        assert "s.csv" not in str(caught.value)


def test_methods_are_as_statements(place: Path) -> None:
    with connect_restricted(place) as con:
        for read in (con.read_csv, con.read_parquet, con.read_json):
            with pytest.raises(SqlError, match="enable_external_access"):
                read(f"{place}/out/s.csv")
        assert con.read_csv(f"{place}/in/x.csv").fetchall() == [(1,)]
        relation = con.sql("SELECT 1 AS a")
        for write in (relation.to_csv, relation.to_parquet, relation.to_json, relation.write_csv):
            with pytest.raises(AccessError, match="enable_external_access"):
                write(f"{place}/out/o.csv")
            write(f"{place}/in/o.csv")
        with pytest.raises(SqlError, match="enable_external_access"):
            relation.filter(f"a IN (SELECT a FROM '{place}/out/s.csv')")
    assert os.listdir(place / "out") == ["s.csv"]


def test_variables_of_python_are_out_of_reach(place: Path) -> None:
    frame, number = pa.table({"a": [1]}), 7
    with connect_restricted(place) as con:
        with pytest.raises(SqlError, match='there is no table "number"') as caught:
            con.sql("FROM number")
        assert "Python" not in str(caught.value), number
        con.register("known", frame)
        assert con.sql("FROM known").fetchall() == [(1,)]
        with pytest.raises(SqlError, match=r"enable_external_access is off: con\.register"):
            con.sql("FROM frame")
