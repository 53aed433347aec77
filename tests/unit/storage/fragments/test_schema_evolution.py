"""Columns that change while fragments stay: what a version says of them, and how they are read."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from bamquery._native import crc32c
from bamquery.errors import CatalogError, ConflictError, ConstraintError, CorruptionError, StorageError
from bamquery.storage.database.database import Database
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.fragments.rows import table_rows
from bamquery.storage.fragments.schema_evolution import SCHEMA_VERSIONS, ColumnRule, Evolution, SchemaVersion
from bamquery.storage.tables.manifest import Manifest
from bamquery.storage.tables.stored_view import StoredView

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.large_string())])
FIVE = ColumnRule(default="5", initial=pa.scalar(5, pa.int32()))


@pytest.fixture
def database(tmp_path):
    with Database.open(tmp_path / "db") as database:
        with database.create_table("t", SCHEMA) as writer:
            writer.write(pa.record_batch([[1, 2], ["x", None]], schema=SCHEMA))
            writer.commit()
        yield database


def rows(database, name="t"):
    """The table's rows, as OPTIMIZE would write them."""
    with database.table(name).snapshot() as snapshot:
        found = []
        for fragment in snapshot.fragments:
            source = table_rows(fragment, snapshot.schema, snapshot.evolution)
            columns = [pa.concat_arrays(list(source.column(i))) for i in range(len(snapshot.schema))]
            found += pa.table(columns, names=snapshot.schema.names).to_pylist()
        return found


def append(database, **values):
    with database.table("t").append() as writer:
        writer.write(pa.RecordBatch.from_pylist([values], schema=writer.schema))
        writer.commit()


def test_columns_come_go_and_change_their_names(database):
    table = database.table("t")
    table.add_column("c", pa.int32(), FIVE)
    assert rows(database) == [{"a": 1, "b": "x", "c": 5}, {"a": 2, "b": None, "c": 5}]
    append(database, a=3, c=7)
    table.rename_column("B", "Z")
    table.drop_column("a")
    assert rows(database) == [{"Z": "x", "c": 5}, {"Z": None, "c": 5}, {"Z": None, "c": 7}]
    table.add_column("a", pa.float64())
    table.rename_column("c", "C")
    assert rows(database) == [
        {"Z": "x", "C": 5, "a": None},
        {"Z": None, "C": 5, "a": None},
        {"Z": None, "C": 7, "a": None},
    ]
    assert [version.operation for version in table.versions()][-2:] == ["alter", "alter"]


def test_versions_that_are_held_keep_their_columns(database):
    table = database.table("t")
    with table.snapshot() as before:
        first = before.fragments
        table.rename_column("a", "z")
        table.add_column("c", pa.int32(), FIVE)
        with table.snapshot() as after:
            assert after.schema.names == ["z", "b", "c"]
            assert after.fragments[0].schema.names == ["z", "b"]
            assert before.schema.names == ["a", "b"]
            assert first[0].schema.names == ["a", "b"]
            assert after.fragments[0].column("z") is not first[0].column("a")


def test_optimize_leaves_nothing_of_old_columns(database):
    table = database.table("t")
    table.add_column("c", pa.int32(), FIVE)
    table.drop_column("b")
    append(database, a=0, c=1)
    before = rows(database)
    report = table.optimize()
    assert report.fragments_after == 1
    with table.snapshot() as snapshot:
        assert snapshot.evolution == Evolution((ColumnRule(), ColumnRule(default="5")))
        assert snapshot.entries[0].schema_version is None
    assert rows(database) == before
    table.add_column("d", pa.bool_())
    table.optimize(["a"])
    assert [row["a"] for row in rows(database)] == [0, 1, 2]
    assert database.check().clean


def test_small_appends_are_merged_over_schema_versions(database, monkeypatch):
    monkeypatch.setattr("bamquery.storage.tables.writer.MERGED_APPENDS", 2)
    append(database, a=3)
    database.table("t").add_column("c", pa.int32(), FIVE)
    append(database, a=4, c=6)
    with database.table("t").snapshot() as snapshot:
        assert len(snapshot.entries) == 1
    assert [row["c"] for row in rows(database)] == [5, 5, 5, 6]
    assert database.check().clean


def test_check_and_vacuum_know_old_columns(database):
    table = database.table("t")
    with table.snapshot():
        table.add_column("c", pa.int32(), FIVE)
        table.rename_column("a", "z")
        database.vacuum()
        report = database.check()
        assert report.clean
        assert report.fragments == 1
    database.vacuum()
    assert database.check().clean
    assert rows(database)[0] == {"z": 1, "b": "x", "c": 5}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda t: t.add_column("B", pa.int32()), CatalogError, 'a column "b" already'),
        (lambda t: t.add_column("c", pa.list_(pa.int32())), StorageError, "c"),
        (lambda t: t.add_column("c", pa.int32(), ColumnRule(not_null=True)), ConstraintError, "has rows"),
        (lambda t: t.drop_column("bb"), CatalogError, 'no column "bb".* Did you mean "b"'),
        (lambda t: t.rename_column("b", "A"), CatalogError, 'a column "a" already'),
        (lambda t: t.rename_column("zzz", "A"), CatalogError, 'no column "zzz"'),
    ],
)
def test_what_cannot_be_changed_stays(database, change, error, words):
    table = database.table("t")
    before = table.versions()
    with pytest.raises(error, match=words):
        change(table)
    assert table.versions() == before
    table.rename_column("b", "b")
    assert table.versions() == before


def test_the_last_column_stays(database):
    table = database.table("t")
    table.drop_column("a")
    with pytest.raises(CatalogError, match="drop the table"):
        table.drop_column("b")


def test_a_writer_that_began_before_loses(database):
    with database.table("t").append() as writer:
        writer.write(pa.record_batch([[9], ["z"]], schema=SCHEMA))
        database.table("t").add_column("c", pa.int32())
        with pytest.raises(ConflictError):
            writer.commit()
    assert len(rows(database)) == 2


def test_nulls_are_refused_where_they_must_not_be(database):
    rules = [ColumnRule(not_null=True), ColumnRule()]
    with database.create_table("n", SCHEMA, rules=rules) as writer:
        with pytest.raises(ConstraintError, match='"a" of table "n" is NOT NULL'):
            writer.write(pa.record_batch([[1, None], ["x", "y"]], schema=SCHEMA))
        writer.write(pa.record_batch([[1, 2], [None, "y"]], schema=SCHEMA))
        writer.commit()
    with database.table("n").append() as writer, pytest.raises(ConstraintError):
        writer.write(pa.record_batch([[None], ["x"]], schema=SCHEMA))
    database.table("n").rename_column("a", "z")
    with database.table("n").append() as writer, pytest.raises(ConstraintError, match='"z"'):
        writer.write(pa.record_batch([[None], ["x"]], schema=writer.schema))


def test_views_are_versions_too(database):
    database.create_view("V", StoredView("SELECT 1", ("x",)))
    assert database.view("v") == StoredView("SELECT 1", ("x",))
    assert database.view_names() == ["V"]
    assert database.table_names() == ["t"]
    assert not database.has_table("v")
    for refused in (
        lambda: database.create_view("v", StoredView("SELECT 2")),
        lambda: database.create_view("t", StoredView("SELECT 2")),
        lambda: database.create_view("t", StoredView("SELECT 2"), or_replace=True),
        lambda: database.create_table("v", SCHEMA),
        lambda: database.create_table("v", SCHEMA, or_replace=True),
        lambda: database.table("v"),
        lambda: database.drop_table("v"),
        lambda: database.drop_view("t"),
        lambda: database.drop_view("nope"),
    ):
        with pytest.raises(CatalogError):
            refused()
    database.create_view("v", StoredView("SELECT 2"), or_replace=True)
    database.vacuum()
    assert database.view("V") == StoredView("SELECT 2")
    assert database.check().clean
    database.drop_view("V")
    assert database.view("v") is None
    database.vacuum()
    assert database.check().litter == []
    with database.create_table("v", SCHEMA) as writer:
        writer.commit()
    assert database.view("v") is None
    assert database.table_names() == ["t", "v"]


def test_two_who_replace_a_view_at_once(database, monkeypatch):
    database.create_view("v", StoredView("SELECT 1"))
    begin = database._begin

    def overtaken(folder, replaced):
        begun = begin(folder, replaced)
        monkeypatch.undo()
        database.create_view("v", StoredView("SELECT 2"), or_replace=True)
        return begun

    monkeypatch.setattr(database, "_begin", overtaken)
    with pytest.raises(ConflictError):
        database.create_view("v", StoredView("SELECT 3"), or_replace=True)
    assert database.view("v") == StoredView("SELECT 2")
    database.vacuum()
    assert database.check().litter == []


ENTRY = FragmentEntry("0123456789abcde-0000", 2, 4096, 512, 200, 56, 7, schema_version=0)
LATER = pa.schema([("z", pa.int64()), ("c", pa.int32())])
MANIFEST = Manifest(
    version=3,
    table="t",
    operation="alter",
    created_at=datetime(2026, 1, 2, tzinfo=UTC),
    schema=LATER,
    fragments=(ENTRY,),
    evolution=Evolution((ColumnRule(not_null=True), FIVE), (SchemaVersion(SCHEMA, (0, None)),)),
)
VIEW = Manifest(3, "t", "view", MANIFEST.created_at, None, (), view=StoredView("SELECT 1", ("x",)))
PATH = Path("t", "manifests", "00000003.json")


def sealed(members):
    covered = json.dumps(members, indent=1).encode()[: -len("\n}")]
    return covered + b',\n "crc32c": "%08x"\n}\n' % crc32c(covered)


@pytest.mark.parametrize("manifest", [MANIFEST, VIEW])
def test_what_is_written_is_read_back(manifest):
    assert Manifest.from_bytes(manifest.to_bytes(), PATH) == manifest
    assert manifest.is_table == (manifest is MANIFEST)


EARLIER = json.loads(MANIFEST.to_bytes())[SCHEMA_VERSIONS][0]


@pytest.mark.parametrize(
    ("manifest", "changes"),
    [
        (MANIFEST, {SCHEMA_VERSIONS: []}),
        (MANIFEST, {SCHEMA_VERSIONS: {}}),
        (MANIFEST, {SCHEMA_VERSIONS: [{}]}),
        (MANIFEST, {SCHEMA_VERSIONS: [{**EARLIER, "columns": [0]}]}),
        (MANIFEST, {SCHEMA_VERSIONS: [{**EARLIER, "columns": [0, 0]}]}),
        (MANIFEST, {SCHEMA_VERSIONS: [{**EARLIER, "columns": [5, None]}]}),
        (MANIFEST, {SCHEMA_VERSIONS: [{**EARLIER, "columns": [1, None]}]}),
        (MANIFEST, {SCHEMA_VERSIONS: [{**EARLIER, "columns": [True, None]}]}),
        (MANIFEST, {SCHEMA_VERSIONS: [{**EARLIER, "schema": "%"}]}),
        (MANIFEST, {"columns": [{}]}),
        (MANIFEST, {"columns": [{}, {"not_null": 1}]}),
        (MANIFEST, {"columns": [{}, {"default": 1}]}),
        (MANIFEST, {"columns": [{}, {"initial": EARLIER["schema"]}]}),
        (MANIFEST, {"columns": [{}, {"other": 1}]}),
        (MANIFEST, {"view": {"sql": "SELECT 1", "columns": []}}),
        (MANIFEST, {"operation": "view"}),
        (MANIFEST, {"other": 1}),
        (VIEW, {"operation": "alter"}),
        (VIEW, {"view": {}}),
        (VIEW, {"view": {"sql": 1, "columns": []}}),
        (VIEW, {"view": {"sql": "SELECT 1", "columns": [1]}}),
        (VIEW, {"columns": [{}]}),
        (VIEW, {"schema": json.loads(MANIFEST.to_bytes())["schema"]}),
    ],
)
def test_forged_members_are_refused(manifest, changes):
    members = {k: v for k, v in json.loads(manifest.to_bytes()).items() if k != "crc32c"}
    with pytest.raises(CorruptionError, match="damaged"):
        Manifest.from_bytes(sealed({**members, **changes}), PATH)
