"""Bound statements: what a text asks for, names looked up and types known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from bamquery.plan.late_plan import LatePlan, made_plan
from bamquery.plan.nodes import Field, Plan


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT.

    Attributes:
        asked: what for.
        has_views: it may scan views, of which nobody has looked for any yet.
    """

    asked: Plan | LatePlan
    has_views: bool = field(default=True, repr=False)

    @property
    def plan(self) -> Plan:
        """What is asked for, once somebody wants to see more of it than its fields."""
        return made_plan(self.asked)


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name AS query."""

    name: str
    plan: Plan
    or_replace: bool = False
    if_not_exists: bool = False
    encoding: str | None = None
    """How its columns are stored, `auto` or `plain`; None: as the setting says."""


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO name query; the plan's columns already are the table's, in order and type."""

    name: str
    plan: Plan


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE a table or query: its columns and types.

    `notes`: of each column of a table whether it is NOT NULL and its default; empty where none says any.
    """

    fields: tuple[Field, ...]
    notes: tuple[tuple[bool, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ShowTables:
    """SHOW TABLES."""


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN [ANALYZE]; with ANALYZE the query runs and its profile is shown."""

    statement: Query | CreateTableAs | Insert
    analyze: bool = False


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE name [CLUSTER BY (columns)]: compaction, optionally sorted."""

    name: str
    cluster_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM: remove what no version in use needs."""


@dataclass(frozen=True, slots=True)
class Set:
    """SET name = value: a setting of the connection, by its folded name; the value as a Python object.

    Which names and values there are is the connection's to know.
    """

    name: str
    value: bool | int | float | str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET VARIABLE name = value: what `getvariable` of the connection finds, by its folded name.

    Attributes:
        plan: of one column and one row, the value; None takes the variable away.
        type: of the value: `pa.null()` of NULL alone, for which the plan has a type.
    """

    name: str
    plan: Plan | None = None
    type: pa.DataType = field(default_factory=pa.null)


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column as a statement defines it; `default` is SQL."""

    name: str
    type: pa.DataType
    not_null: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name (columns)."""

    name: str
    columns: tuple[ColumnDefinition, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    encoding: str | None = None
    """See `CreateTableAs.encoding`."""


@dataclass(frozen=True, slots=True)
class SetEncoding:
    """ALTER TABLE SET (encoding = ...): how what is written from then on is stored. No table None."""

    table: str | None
    encoding: str


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(columns)] AS sql."""

    name: str
    sql: str
    columns: tuple[str, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP VIEW [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ALTER TABLE ADD COLUMN; rows that are there get `initial`. No table None: there is nothing to do."""

    table: str | None
    column: ColumnDefinition
    initial: pa.Scalar[Any] | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """ALTER TABLE DROP COLUMN."""

    table: str | None
    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """ALTER TABLE RENAME COLUMN."""

    table: str | None
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    """ALTER TABLE or VIEW RENAME TO."""

    table: str | None
    new: str


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How COPY TO spreads rows over files in folders `key=value`.

    Attributes:
        keys: positions of the columns whose values name the folders, outermost first.
        mode: what becomes of files that are there: an "error", or "overwrite" them all, those of the same
            names ("overwrite_or_ignore") or none ("append").
        name: of a file, in which {i} and {uuid} are replaced.
        extension: behind its name.
        writes_keys: whether the keys are columns of the files, too.
    """

    keys: tuple[int, ...]
    mode: str
    name: str
    extension: str
    writes_keys: bool


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY TO: a plan's rows into one file; `options` by their names, see `bamquery.statements.copy_to`.

    With `partitioning` into files of the folder that the path is, a file for each value of the keys; rows of
    one come together.
    """

    plan: Plan
    path: str
    format: str
    options: tuple[tuple[str, Any], ...] = ()
    partitioning: Partitioning | None = None


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """A few columns of SUMMARIZE, and a plan of one row.

    It begins with the number of rows; `figures` says of each column what follows in which order. `ordered`
    has plans of the columns that have quartiles, by name: their values in order, without nulls.
    """

    columns: tuple[Field, ...]
    figures: tuple[tuple[str, ...], ...]
    plan: Plan
    ordered: tuple[tuple[str, Plan], ...]


@dataclass(frozen=True, slots=True)
class Summarize:
    """SUMMARIZE: all columns, few by few."""

    figures: tuple[ColumnFigures, ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET name: a setting back to its default."""

    name: str


@dataclass(frozen=True, slots=True)
class NoOperation:
    """A statement that has nothing to do, such as USE main; `message` says so."""

    message: str


Statement: TypeAlias = (
    Query
    | CreateTableAs
    | Insert
    | DropTable
    | Describe
    | ShowTables
    | Explain
    | Optimize
    | Vacuum
    | Set
    | SetVariable
    | CreateTable
    | CreateView
    | DropView
    | AddColumn
    | DropColumn
    | RenameColumn
    | RenameTable
    | SetEncoding
    | CopyTo
    | Reset
    | Summarize
    | NoOperation
)
