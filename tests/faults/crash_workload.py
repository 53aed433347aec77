"""Everything that changes a database, in one short run; and what a database may look like after a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from bamquery.storage.database.database import Database
from bamquery.storage.format.layout import Encoding
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.schema_evolution import ColumnRule
from bamquery.storage.tables.manifest import RECORDS, parse_commit_name
from bamquery.storage.tables.open_fragment import fragment_batches
from bamquery.storage.tables.snapshot import Snapshot
from bamquery.storage.tables.stored_view import StoredView
from tests.faults.recording import RecordingFileSystem

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.large_string())])
OTHER_SCHEMA = pa.schema([("only", pa.float64())])
ENCODED = frozenset({"a", "old"})
"""Tables whose columns are packed; of the others any Arrow reader sees the values."""
FRAGMENT_BYTES = 24_000
"""Small enough that 1,500 rows of SCHEMA make two fragments."""

VIEW = "view"
"""What the content of a view is called, whose value is its SQL."""

OLD, NEW = "old", "new"
"""Names of one table, before and after."""

Content = dict[str, list[object]] | None
"""Columns of a table by name; None: there is no such table."""


@dataclass
class Change:
    """A table's content once the operations [begin, end) are done; end is None where it never was."""

    table: str
    content: Content
    begin: int
    end: int | None = None


@dataclass
class History:
    """What was committed when, in numbers of operations."""

    filesystem: RecordingFileSystem
    changes: list[Change] = field(default_factory=list)

    def commit(self, table: str, content: Content, work: Callable[[], object]) -> None:
        change = Change(table, content, len(self.filesystem.operations))
        self.changes.append(change)
        work()
        change.end = len(self.filesystem.operations)

    def allowed(self, done: int) -> dict[str, list[Content]]:
        """For each table, what it may hold after the first `done` operations."""
        found: dict[str, list[Content]] = {change.table: [None] for change in self.changes}
        for change in self.changes:
            if change.end is not None and change.end <= done:
                found[change.table] = [change.content]
            elif change.begin <= done:
                found[change.table].append(change.content)
        return found


def rows(start: int, stop: int) -> pa.RecordBatch:
    """Rows of SCHEMA."""
    ids = range(start, stop)
    texts = [None if i % 7 == 0 else f"t{i}" for i in ids]
    return pa.record_batch([pa.array(ids, pa.int64()), pa.array(texts, pa.large_string())], schema=SCHEMA)


def content_of(*batches: pa.RecordBatch) -> Content:
    """The content of a table made of these rows."""
    return pa.Table.from_batches(list(batches)).to_pydict()


def run(history: History, base: Path) -> None:
    """The workload. Fragments are small, so that a few rows make several."""
    filesystem = history.filesystem
    # Folders that another process made and left without a sync when it was killed.
    filesystem.make_directory(base / "outer")
    with Database.open(base / "outer" / "inner" / "db", filesystem) as database:
        a, b, c, d = rows(0, 1500), rows(1500, 1510), rows(1510, 1530), rows(1530, 1540)
        write(history, database, "a", [a])
        append(history, database, "a", content_of(a, b), b)
        with database.table("a").snapshot():
            append(history, database, "a", content_of(a, b, c), c)
            database.vacuum()
        history.commit("e", {"id": [], "text": []}, database.create_table("e", SCHEMA).commit)
        history.commit("e", None, lambda: database.drop_table("e"))
        write(history, database, "b", [b])
        history.commit("b", None, lambda: database.drop_table("b"))
        database.vacuum()
        other = pa.record_batch([pa.array([0.5, None])], schema=OTHER_SCHEMA)
        write(history, database, "b", [other])
        with database.create_table("never", SCHEMA) as writer:
            writer.write(a)
            writer.write(b)
        optimize(history, database, "a", content_of(a, b, c))
        database.vacuum()
        append(history, database, "a", content_of(a, b, c, d), d)
        write(history, database, "b", [d], or_replace=True)
        by_text = pa.Table.from_batches([a, b, c, d]).sort_by("text")
        optimize(history, database, "a", by_text.to_pydict(), "text")
        database.vacuum()


def run_definitions(history: History, base: Path) -> None:
    """Another workload: columns changed, rows added after that; a view made, replaced and dropped."""
    history.filesystem.make_directory(base / "outer")
    with Database.open(base / "outer" / "inner" / "db", history.filesystem) as database:
        define(history, database)
        database.vacuum()


def define(history: History, database: Database) -> None:
    first, last = rows(0, 50), rows(50, 60)
    write(history, database, "c", [first])
    table = database.table("c")
    now = dict(content_of(first) or {})
    now["more"] = [5] * 50
    rule = ColumnRule(default="5", initial=pa.scalar(5, pa.int32()))
    history.commit("c", dict(now), lambda: table.add_column("more", pa.int32(), rule))
    now["number"] = now.pop("id")
    history.commit("c", dict(now), lambda: table.rename_column("id", "number"))
    del now["text"]
    history.commit("c", dict(now), lambda: table.drop_column("text"))
    history.commit("c", dict(now), lambda: table.set_encoding("auto"))
    added = pa.record_batch([last.column(0), pa.array([6] * 10, pa.int32())], ["number", "more"])
    now = {name: [*now[name], *added.column(name).to_pylist()] for name in ("number", "more")}
    append(history, database, "c", now, added)
    optimize(history, database, "c", now)  # which packs what was plain
    for sql, or_replace in (("SELECT 1", False), ("SELECT 2", True)):
        view = StoredView(sql, ("x",))
        work = partial(database.create_view, "d", view, or_replace=or_replace)
        history.commit("d", {VIEW: [sql]}, work)
    history.commit("d", None, lambda: database.drop_view("d"))


def run_renames(history: History, base: Path) -> None:
    """Another workload: a table under another name, and what vacuum does of the old one."""
    history.filesystem.make_directory(base / "outer")
    with Database.open(base / "outer" / "inner" / "db", history.filesystem) as database:
        first, last = rows(0, 50), rows(50, 60)
        write(history, database, OLD, [first])
        rename(history, database, OLD, NEW, content_of(first))
        append(history, database, NEW, content_of(first, last), last)
        database.vacuum()


def rename(history: History, database: Database, old: str, new: str, content: Content) -> None:
    """RENAME: one name ends and the other begins at once."""
    begin = len(history.filesystem.operations)
    changes = [Change(old, None, begin), Change(new, content, begin)]
    history.changes += changes
    database.rename(old, new)
    for change in changes:
        change.end = len(history.filesystem.operations)


def go_on(history: History, path: Path, *, vacuum_first: bool) -> None:
    """What another process does with whatever a killed one has left."""
    with Database.open(path, history.filesystem) as database:
        if vacuum_first:
            database.vacuum()
        seen = contents(database, {change.table: None for change in history.changes})
        for name, is_now in seen.items():
            if is_now is not None and VIEW not in is_now:
                with database.table(name).snapshot() as snapshot:
                    row = pa.RecordBatch.from_pylist([{}], schema=snapshot.schema)
                append(history, database, name, {k: [*v, None] for k, v in is_now.items()}, row)
        database.vacuum()
        write(history, database, "after", [rows(0, 5)])
        if seen.get("b") is not None:
            history.commit("b", None, lambda: database.drop_table("b"))
            database.vacuum()
        write(history, database, "b", [rows(5, 10)], or_replace=True)


def write(
    history: History, database: Database, table: str, batches: list[pa.RecordBatch], or_replace: bool = False
) -> None:
    """CREATE [OR REPLACE] TABLE with these rows."""
    encoding: Encoding = "auto" if table in ENCODED else "plain"
    with database.create_table(table, batches[0].schema, or_replace=or_replace, encoding=encoding) as writer:
        for batch in batches:
            writer.write(batch)
        history.commit(table, content_of(*batches), writer.commit)


def append(history: History, database: Database, table: str, content: Content, batch: pa.RecordBatch) -> None:
    """Append rows, after which the table holds `content`."""
    with database.table(table).append() as writer:
        writer.write(batch)
        history.commit(table, content, writer.commit)


def optimize(history: History, database: Database, table: str, content: Content, *keys: str) -> None:
    """OPTIMIZE, after which the table holds `content`."""
    history.commit(table, content, lambda: database.table(table).optimize(keys))


def content(snapshot: Snapshot) -> Content:
    """All rows, read by pyarrow from the fragments' files, where it sees them."""
    tables = [_rows(snapshot, fragment) for fragment in snapshot.fragments]
    return pa.concat_tables(tables).to_pydict() if tables else snapshot.schema.empty_table().to_pydict()


def _rows(snapshot: Snapshot, fragment: Fragment) -> pa.Table:
    """What a fragment's file has of the table's columns, and the first values of those that it has not."""
    if fragment.layout.is_encoded:
        schema = fragment.schema
        stored = pa.Table.from_batches(list(fragment_batches(fragment, schema)), schema)
    else:
        file = pa.ipc.open_file(pa.memory_map(str(fragment.path))).read_all()
        known = snapshot.evolution.columns(snapshot.schema, fragment.entry)
        stored = file.select(list(known.positions)).rename_columns(known.schema.names)

    def column(index: int, name: str) -> pa.ChunkedArray:
        if name in stored.column_names:
            return stored.column(name)
        return pa.chunked_array([pa.repeat(snapshot.evolution.rule(index).initial, stored.num_rows)])

    names = snapshot.schema.names
    return pa.table([column(index, name) for index, name in enumerate(names)], names=names)


def verify(folder: Path, allowed: dict[str, list[Content]], *, thorough: bool = True) -> None:
    """Open what a crash left: each table is one of its allowed versions, nothing is damaged, litter goes.

    If thorough, also that `check` sees no damage and no litter after that, and that every table can be
    written to.
    """
    committed = any(None not in contents for contents in allowed.values())
    if not folder.exists():
        assert not committed, "the database is gone"
        return
    with Database.open(folder) as database:
        before = contents(database, allowed)
        report = database.check()
        assert not report.errors, report.errors
        assert not report.unknown, report.unknown
        database.vacuum()
        assert contents(database, allowed) == before, "vacuum changed a table"
        if thorough:
            report = database.check()
            assert report.clean, report.errors
            assert not report.litter, report.litter
        paths = {path for path in folder.rglob("*") if path.name != "tables"}
        # What says that a version was committed may be lost, but must never say more than is so.
        paths = {path for path in paths if parse_commit_name(path.name) is None}
        paths = {path for path in paths if RECORDS not in path.relative_to(folder).parts}
        found = {str(path.relative_to(folder)) for path in paths}
        assert found == needed_files(database), found ^ needed_files(database)
        for name, is_now in before.items():
            if thorough and is_now is not None and VIEW not in is_now:
                with database.table(name).append() as writer:
                    writer.write(pa.RecordBatch.from_pylist([{}], schema=writer.schema))
                    writer.commit()


def contents(database: Database, allowed: Mapping[str, list[Content] | None]) -> dict[str, Content]:
    """The content of every table, each asserted to be allowed (None: anything is)."""
    found: dict[str, Content] = dict.fromkeys(allowed)
    with ExitStack() as stack:
        for name in database.table_names():
            found[name] = content(stack.enter_context(database.table(name).snapshot()))
    for name in database.view_names():
        view = database.view(name)
        assert view is not None
        found[name] = {VIEW: [view.sql]}
    assert found.keys() == allowed.keys(), "a table that never was"
    if len(allowed.get(OLD) or []) + len(allowed.get(NEW) or []) == 4:  # amid a rename
        assert (found[OLD] is None) != (found[NEW] is None), "a table under both names, or under none"
    for name, is_now in found.items():
        wanted = allowed[name]
        assert wanted is None or is_now in wanted, f"table {name} was never {str(is_now)[:200]}"
    return found


def needed_files(database: Database) -> set[str]:
    """The files and folders of a database without litter."""
    needed = {"bamquery.json"}
    for name in database.view_names():
        folder = database._folder(name)
        paths = [folder.path, folder.fragments, folder.manifests, folder.lock]
        paths.append(folder.manifest(folder.latest()))
        needed |= {str(path.relative_to(database.path)) for path in paths}
    for name in database.table_names():
        folder = database.table(name).folder
        with database.table(name).snapshot() as snapshot:
            paths = [folder.path, folder.fragments, folder.manifests, folder.lock]
            paths.append(folder.manifest(snapshot.version))
            for entry in snapshot.entries:
                paths += [folder.fragments / entry.data_name, folder.fragments / entry.vectors_name]
        needed |= {str(path.relative_to(database.path)) for path in paths}
    return needed
