"""A database as SQL: statements that make its tables, fill them, and make its views."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sqlglot import exp

from bamquery.data_types.names import type_name
from bamquery.engine.settings import Settings
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.errors import BamQueryError, CatalogError
from bamquery.output.arrow_batches import small_batches
from bamquery.output.atomic_file import whole_file
from bamquery.output.display_options import DisplayOptions
from bamquery.output.inserts import write_inserts
from bamquery.output.literals import identifier
from bamquery.output.terminal_stream import TerminalStream
from bamquery.plan.nodes import Plan, Scan
from bamquery.session.session import Session
from bamquery.sql_frontend.parser.parser import parse
from bamquery.storage.database.database import Database
from bamquery.storage.tables.stored_view import StoredView
from bamquery.text.identifiers import fold_case, suggestion
from bamquery.text.terminal import escape_lines


def dump_database(path: str, names: Sequence[str], output: str | None) -> None:
    """Write a dump of a database's folder to a file, which is there once all of it is, or standard output.

    Raises:
        StorageError: there is no database, or the file cannot be written. CatalogError: nothing has the name.
    """
    session = Session(Database.open(path, create=False), Settings())
    try:
        with _stream(output) as stream:
            write_dump(session, names, stream)
    finally:
        session.close()


def write_dump(session: Session, names: Sequence[str], out: BinaryIO, *, rows: bool = True) -> None:
    """Write statements that make these tables and views again, in an order in which they can be run.

    The tables are those of one moment, and no rows but those of one statement are in memory. A view that
    cannot be used, such as over a table that was dropped, is written as a comment.

    Args:
        session: of the database.
        names: tables and views; all of them where there is none.
        out: gets UTF-8.
        rows: whether tables are filled, too.

    Raises:
        CatalogError: nothing has one of the names; suggests the nearest.
    """
    tables, views = _select_tables(session, names)
    sources = {name: _open_table(session, name) for name in tables}
    for name, (table, plan) in sources.items():
        out.write(f"{_create_table(name, table)}\n".encode())
        if not rows:
            continue
        with session.run(plan) as result:
            write_inserts(small_batches(result), result.schema, out, DisplayOptions(table_name=name))
    for name, view in _sort_by_dependency(views):
        out.write(f"{_create_view(session, name, view)}\n".encode())
    out.flush()


@contextmanager
def _stream(output: str | None) -> Iterator[BinaryIO]:
    if output is None:
        stream = sys.stdout.buffer
        yield TerminalStream(stream) if sys.stdout.isatty() else stream
        return
    with whole_file(Path(output)) as file:
        yield file


def _select_tables(session: Session, names: Sequence[str]) -> tuple[list[str], dict[str, StoredView]]:
    """Names of tables, and views by name, as they were written when they were made."""
    database = session.database
    tables = {fold_case(name): name for name in database.table_names()}
    views = {fold_case(name): name for name in database.view_names()}
    wanted = dict.fromkeys(map(fold_case, names)) if names else [*tables, *views]
    spelled = {fold_case(name): name for name in names}
    for name in wanted:
        if name not in tables and name not in views:
            near = suggestion(name, [*tables.values(), *views.values()])
            raise CatalogError(f'there is no table or view "{spelled[name]}".{near}')
    found = {views[name]: database.view(views[name]) for name in wanted if name in views}
    return (
        [tables[name] for name in wanted if name in tables],
        {name: view for name, view in found.items() if view is not None},
    )


def _open_table(session: Session, name: str) -> tuple[StoredTable, Plan]:
    """The table's version of now, and what reads all of it."""
    source = session.catalog(with_variables=False).table(name)
    assert isinstance(source, StoredTable)
    return source, Scan(source, tuple(range(len(source.schema))))


def _create_table(name: str, table: StoredTable) -> str:
    rules = table.snapshot.evolution.rules
    columns = []
    for position, field in enumerate(table.schema):
        line = f"{identifier(field.name)} {type_name(field.type)}"
        rule = rules[position] if rules else None
        if rule is not None and rule.default is not None:
            line += f" DEFAULT {rule.default}"
        if rule is not None and rule.not_null:
            line += " NOT NULL"
        columns.append(line)
    return f"CREATE TABLE {identifier(name)} (\n  " + ",\n  ".join(columns) + "\n);"


def _create_view(session: Session, name: str, view: StoredView) -> str:
    # What ends the statement has a line of its own: the query may end with a comment.
    names = f" ({', '.join(map(identifier, view.columns))})" if view.columns else ""
    statement = f"CREATE VIEW {identifier(name)}{names} AS\n{view.sql}\n;"
    try:
        session.catalog(with_variables=False).table(name)
    except BamQueryError as error:
        lines = [*escape_lines(str(error)).split("\n"), *statement.splitlines()]
        return "\n".join(f"-- {line}" for line in lines)
    return statement


def _sort_by_dependency(views: Mapping[str, StoredView]) -> list[tuple[str, StoredView]]:
    """Views after those that they name; in the order of names where nothing else says."""
    known = {fold_case(name): name for name in views}
    ordered: dict[str, StoredView] = {}
    begun: set[str] = set()

    def add(name: str) -> None:
        if name in begun:
            return
        begun.add(name)
        for other in sorted(_referenced_names(views[name])):
            if other in known:
                add(known[other])
        ordered[name] = views[name]

    for name in sorted(views, key=fold_case):
        add(name)
    return list(ordered.items())


def _referenced_names(view: StoredView) -> set[str]:
    """Tables, views and what WITH names, in the view's query; nothing where that is no SQL any more."""
    try:
        return {fold_case(table.name) for tree in parse(view.sql) for table in tree.find_all(exp.Table)}
    except BamQueryError:
        return set()
