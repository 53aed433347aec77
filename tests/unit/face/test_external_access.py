"""Which files statements may name: `enable_external_access` and what comes with it, and ways around it."""

import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bamquery
from bamquery.connection import Connection
from bamquery.errors import AccessError, BamQueryError, CancelledError, IngestError, SettingError, SqlError

SECRET = "secret-value"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that may be read, `in`, and one that may not, `out`."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "s.csv").write_text(f"a\n{SECRET}\n")
    (inside / "x.csv").write_text("a\n1\n")
    (inside / "sub" / "y.csv").write_text("a\n2\n")
    pq.write_table(pa.table({"a": [3]}), inside / "p.parquet")
    with pa.ipc.new_file(str(inside / "f.arrow"), pa.schema({"a": pa.int64()})) as writer:
        writer.write_batch(pa.record_batch({"a": [4]}))
    (inside / "j.json").write_text('{"a": 5}\n')
    (inside / "link.csv").symlink_to(outside / "s.csv")
    (inside / "folder").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    (inside / "within.csv").symlink_to("x.csv")
    (tmp_path / "inside_too.csv").write_text(f"a\n{SECRET}\n")
    return tmp_path


def restricted(place: Path, **settings: object) -> Connection:
    return bamquery.connect(
        enable_external_access=False, allowed_directories=[str(place / "in")], device="cpu", **settings
    )


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
    with restricted(place) as con:
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
    with restricted(place) as con:
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
    with restricted(place) as con:
        told = []
        for name in ("out/s.csv", "out/t.csv", "out/s*", "out/t*"):
            with pytest.raises(SqlError) as caught:
                con.sql(f"FROM '{place}/{name}'")
            told.append(str(caught.value).replace(name, ""))
        assert len({text.split("\n")[0] for text in told}) == 1


def test_names_that_are_no_text(place: Path) -> None:
    odd = os.fsencode(place / "out") + b"/\xff.csv"
    Path(os.fsdecode(odd)).write_text("a\n1\n")
    with restricted(place) as con:
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
        with restricted(place) as con:
            relation = con.sql(f"FROM '{place}/in/{name}'")
            (place / "in" / name).unlink()
            (place / "in" / name).symlink_to(place / "out" / "s.csv")
            with pytest.raises(IngestError):
                relation.fetchall()


def test_a_folder_that_is_replaced_after_the_check_is_not_followed(place: Path) -> None:
    (place / "out" / "y.csv").write_text(f"a\n{SECRET}\n")
    with restricted(place) as con:
        relation = con.sql(f"FROM '{place}/in/sub/y.csv'")
        (place / "in" / "sub").rename(place / "in" / "was")
        (place / "in" / "sub").symlink_to(place / "out")
        with pytest.raises(IngestError, match="taken the place"):
            relation.fetchall()


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


@pytest.mark.parametrize(
    "target",
    ["out/o.csv", "in/../out/o.csv", "in/folder/o.csv", "in/link.csv", "o.csv", "in/loop/folder/o.csv"],
)
def test_other_files_cannot_be_written(place: Path, target: str) -> None:
    with restricted(place) as con:
        before = sorted(os.listdir(place / "out")), (place / "out" / "s.csv").read_text()
        with pytest.raises(AccessError, match="enable_external_access"):
            con.sql(f"COPY (SELECT 1 AS a) TO '{place}/{target}'")
        assert before == (sorted(os.listdir(place / "out")), (place / "out" / "s.csv").read_text())


def test_methods_are_as_statements(place: Path) -> None:
    with restricted(place) as con:
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


def test_nothing_runs_before_a_target_is_refused(place: Path) -> None:
    with restricted(place) as con, pytest.raises(AccessError):
        con.sql(f"COPY (SELECT CAST('x' AS INTEGER) AS a) TO '{place}/out/o.csv'")


def test_allowed_directories_can_be_written(place: Path) -> None:
    with restricted(place) as con:
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


def test_variables_of_python_are_out_of_reach(place: Path) -> None:
    frame = pa.table({"a": [1]})
    with restricted(place) as con:
        con.register("known", frame)
        assert con.sql("FROM known").fetchall() == [(1,)]
        with pytest.raises(SqlError, match=r"enable_external_access is off: con\.register"):
            con.sql("FROM frame")


SWITCHES = [
    ["SET enable_external_access = false", "SET enable_external_access = true"],
    ["SET enable_external_access = false", "RESET enable_external_access"],
    ["SET enable_external_access = false", "SET enable_external_access = false"],
    ["SET enable_external_access = false", "SET enable_external_access = NULL"],
    ["SET enable_external_access = false", "SET allowed_directories = ['/tmp']"],
    ["SET enable_external_access = false", "RESET allowed_directories"],
    ["SET enable_external_access = false", "SET allowed_paths = []"],
    [
        "SET allowed_directories = ['/tmp', '/']",
        "SET allowed_directories = ['/tmp']",
        "RESET allowed_directories",
    ],
    ["SET lock_configuration = true", "SET threads = 1"],
    ["SET lock_configuration = true", "SET lock_configuration = false"],
    ["SET lock_configuration = true", "SET lock_configuration = true"],
    ["SET lock_configuration = true", "RESET lock_configuration"],
    ["SET lock_configuration = true", "RESET threads"],
    ["SET lock_configuration = true", "SET SESSION threads = 1"],
    ["SET lock_configuration = true", "PRAGMA threads = 1"],
    ["SET lock_configuration = false", "SET threads = 1"],
]


@pytest.mark.parametrize("statements", SWITCHES, ids="; ".join)
def test_settings_are_switched_as_duckdb_lets_them(statements: list[str]) -> None:
    with bamquery.connect() as con, duckdb.connect() as oracle:
        for statement in statements:
            try:
                oracle.sql(statement)
            except duckdb.Error:
                with pytest.raises(SettingError, match="cannot be"):
                    con.sql(statement)
            else:
                con.sql(statement)


def test_the_lock_holds_for_python_too() -> None:
    with (
        bamquery.connect(lock_configuration=True) as con,
        pytest.raises(SettingError, match="lock_configuration"),
    ):
        con.set("threads", 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allowed_directories", "/there/is/none"),
        ("allowed_directories", [""]),
        ("allowed_directories", [7]),
        ("allowed_directories", "file:///tmp"),
        ("allowed_paths", "a\0b"),
        ("statement_timeout", "soon"),
        ("statement_timeout", -1),
        ("statement_timeout", True),
        ("statement_timeout", float("nan")),
    ],
)
def test_values_that_make_no_sense(name: str, value: object) -> None:
    with pytest.raises(SettingError, match=name):
        bamquery.connect(**{name: value})


def test_statements_end_when_their_time_is_up(tmp_path: Path) -> None:
    endless = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = -1"
    with bamquery.connect(device="cpu") as con:
        con.set("statement_timeout", 0.3)
        with pytest.raises(CancelledError, match=r"statement_timeout, 0\.3 seconds"):
            con.sql(endless).fetchall()
        with pytest.raises(CancelledError, match="statement_timeout"):
            con.sql(f"CREATE TABLE t AS {endless}")
        assert con.tables == []
        con.sql("SET statement_timeout = 0")
        assert con.settings.statement_timeout is None
        assert con.sql("SELECT 1").fetchall() == [(1,)]
