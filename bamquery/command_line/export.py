"""`bamquery export`: a version of a table as one file that everybody reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bamquery.catalog.views import inline_views
from bamquery.command_line.arguments import Parser
from bamquery.command_line.interruption import interruptible
from bamquery.engine.human_units import human_bytes, plural
from bamquery.engine.settings import Settings
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.errors import BamQueryError, StorageError
from bamquery.output.atomic_file import whole_file
from bamquery.output.binary_files import write_arrow_file, write_parquet
from bamquery.plan.nodes import Scan, Source
from bamquery.relations.expressions.sql_literals import quoted_name
from bamquery.relations.relation import Relation
from bamquery.session.progress.observers import batches_with_progress
from bamquery.session.session import Session
from bamquery.storage.database.database import Database
from bamquery.text.terminal import escape_lines

_WRITERS: Final = {".parquet": write_parquet, ".arrow": write_arrow_file}
SUFFIXES: Final = tuple(_WRITERS)


@dataclass(frozen=True, slots=True)
class Export:
    """What to write.

    Attributes:
        database: the folder.
        table: a table or view.
        file: where to; its suffix says how.
        columns: their names, in the order wanted; none: all.
        where: a condition of SQL on rows, or empty.
        version: of the table; None: the latest.
        force: whether a file of that name is replaced.
    """

    database: Path
    table: str
    file: Path
    columns: Sequence[str] = ()
    where: str = ""
    version: int | None = None
    force: bool = False


def export_table(export: Export) -> int:
    """Stream the rows, decoded, to a file that is there once all of it is; returns how many.

    Raises:
        StorageError: there is no database, the file is there already, or cannot be written.
        CatalogError: there is no such table or version. SqlError: there is no such column, or the condition
            is none. BamQueryError: the suffix says nothing, or Parquet has no such type.
    """
    writer = _WRITERS.get(export.file.suffix.lower())
    if writer is None:
        raise BamQueryError(
            f"{export.file}: which format that is, nothing says: end the name with {' or '.join(SUFFIXES)} "
            "(COPY … TO writes CSV and JSON)"
        )
    if not export.force and os.path.lexists(export.file):
        raise _already_exists(export.file)
    session = Session(Database.open(export.database, create=False), Settings().with_values({"device": "cpu"}))
    try:
        relation = _relation(session, export)
        with (
            session.settings.file_access.target(export.file) as target,
            relation.run() as result,
            whole_file(target, export.file, replace=export.force) as file,
        ):
            return writer(batches_with_progress(result, f"Writing {export.file}"), result.schema, file)
    except FileExistsError as error:
        raise _already_exists(export.file) from error
    finally:
        session.close()


def _relation(session: Session, export: Export) -> Relation:
    relation = Relation(session, inline_views(_scan(_source(session, export))), name=export.table)
    if export.where:
        relation = relation.filter(export.where)
    return relation.select(*map(quoted_name, export.columns)) if export.columns else relation


def _source(session: Session, export: Export) -> Source:
    if export.version is None:
        return session.catalog(with_variables=False).table(export.table)
    snapshot = session.database.table(export.table).snapshot(export.version)
    session.close_with_session(snapshot)
    return StoredTable(snapshot)


def _scan(source: Source) -> Scan:
    return Scan(source, tuple(range(len(source.schema))))


def _already_exists(file: Path) -> StorageError:
    return StorageError("is there already: name another file, or pass --force to replace it", file)


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit status.

    Raises:
        BamQueryError: as `export_table`.
    """
    options = _parser().parse_args(arguments)
    wanted = Export(
        database=Path(options.database),
        table=options.table,
        file=Path(options.file),
        columns=options.columns,
        where=options.where,
        version=options.version,
        force=options.force,
    )
    with interruptible():
        rows = export_table(wanted)
    size = human_bytes(wanted.file.stat().st_size)
    print(f"{plural(rows, 'row')}, {size}: {escape_lines(options.file)}")  # noqa: T201
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="bamquery export",
        description="Stream a table, or a view, to a Parquet or Arrow file that any program reads, whatever "
        "its columns' encodings. The file is there once all of it is.",
    )
    parser.add_argument("database", metavar="DB", help="the database's folder")
    parser.add_argument("table", metavar="TABLE", help="a table or view")
    parser.add_argument("file", metavar="FILE", help="whose name ends in .parquet or .arrow")
    parser.add_argument(
        "--columns", metavar="NAME", nargs="+", default=[], help="those wanted, in this order (all)"
    )
    parser.add_argument("--where", metavar="SQL", default="", help="a condition that rows fulfil")
    parser.add_argument("--version", metavar="N", type=int, help="of the table, while it is stored (latest)")
    parser.add_argument("--force", action="store_true", help="replace a file of that name")
    return parser
