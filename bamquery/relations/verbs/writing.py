"""A relation's rows put elsewhere: into tables, views and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bamquery.errors import CatalogError
from bamquery.relations.base import RelationBase
from bamquery.relations.definition import Definition
from bamquery.relations.expressions.sql_literals import quoted_name, quoted_value
from bamquery.relations.expressions.statement_builder import StatementBuilder

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation

Path: TypeAlias = str | os.PathLike[str]


class RelationWrites(RelationBase):
    """Methods that run the relation, and are done when they return; what fails has changed nothing."""

    def create(self, name: str, *, replace: bool = False) -> Relation:
        """Make a table of the rows; returns all rows of the table.

        Args:
            name: of the table.
            replace: whether it may take the place of one that has the name.

        Raises:
            CatalogError: there is something of that name. ConflictError: another writer made it meanwhile.
        """
        quoted = quoted_name(name)
        made = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
        self._execute_over(StatementBuilder().words(f"{made} {quoted} AS SELECT * FROM self"))
        return self._read_table(name)

    def create_view(self, name: str, *, replace: bool = False) -> Relation:
        """Make a view of what the relation asks; returns the view's rows.

        A view is SQL, and sees the tables as they are when it is used, not those that this relation sees.

        Raises:
            CatalogError: there is something of that name, or the relation is not of SQL alone: it has
                parameters, or reads objects of Python.
        """
        made = "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW"
        self._execute_over(StatementBuilder().words(f"{made} {quoted_name(name)} AS").piece(self.sql_query()))
        return self._read_table(name)

    def sql_query(self) -> str:
        """One statement of SQL that asks the same, of the tables as they are when it runs.

        Raises:
            CatalogError: no text says all of it.
        """
        text = None if self._definition is None else self._definition.sql()
        if text is None:
            raise CatalogError(
                "this relation is not of SQL alone: it has parameters, reads objects of Python, or is what a "
                "statement had to say. Make a table of it: create(name)"
            )
        return text

    def insert_into(self, name: str, *, by_name: bool = False) -> int:
        """Put the rows into a table that there is; returns how many.

        Args:
            name: of the table.
            by_name: whether columns go to those of their names, not to those at their places.

        Raises:
            SqlError: there is no such table, or the columns do not go together.
            ConstraintError: a row has a null where the table takes none.
        """
        how = " BY NAME" if by_name else ""
        statement = StatementBuilder().words(f"INSERT INTO {quoted_name(name)}{how} SELECT * FROM self")
        return _count(self._execute_over(statement))

    def to_parquet(
        self,
        path: Path,
        *,
        compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"] | None = None,
        compression_level: int | None = None,
        row_group_size: int | None = None,
    ) -> int:
        """Write a Parquet file, which is there once all of it is; returns how many rows.

        Args:
            path: `~` is expanded; a file that is there is replaced.
            compression: zstd, if nothing is said.
            compression_level: higher is smaller and slower; which there are depends on the compression.
            row_group_size: rows of a row group.

        Raises:
            SqlError: an option cannot be so. StorageError: the file cannot be written.
        """
        return self._copy_to(
            path,
            "parquet",
            compression=compression,
            compression_level=compression_level,
            row_group_size=row_group_size,
        )

    def to_csv(
        self,
        path: Path,
        *,
        header: bool = True,
        delimiter: str | None = None,
        quote: str | None = None,
        escape: str | None = None,
        null: str | None = None,
        force_quote: str | Sequence[str] | None = None,
        compression: Literal["auto", "none", "gzip", "zstd"] | None = None,
    ) -> int:
        """Write a CSV file, which is there once all of it is; returns how many rows.

        Args:
            path: `~` is expanded; a file that is there is replaced.
            header: whether the first line has the names.
            delimiter: between values; a comma, or a tab where the path ends in .tsv.
            quote: around values that need it; double quotes, if nothing is said.
            escape: before a quote within a value; the quote itself, if nothing is said.
            null: what stands for null; nothing at all, if nothing is said.
            force_quote: columns of which every value is quoted; "*" is all.
            compression: by the path's end (.gz, .zst), if nothing is said.

        Raises:
            SqlError: an option cannot be so. StorageError: the file cannot be written.
        """
        return self._copy_to(
            path,
            None if str(path).lower().endswith((".tsv", ".tsv.gz", ".tsv.zst")) else "csv",
            header=header,
            delimiter=delimiter,
            quote=quote,
            escape=escape,
            nullstr=null,
            force_quote=[force_quote] if isinstance(force_quote, str) else force_quote,
            compression=compression,
        )

    def to_json(
        self,
        path: Path,
        *,
        array: bool = False,
        compression: Literal["auto", "none", "gzip", "zstd"] | None = None,
    ) -> int:
        """Write a JSON file, an object a line or an `array` of them; returns how many rows.

        Raises:
            StorageError: the file cannot be written.
        """
        return self._copy_to(path, "json", array=array, compression=compression)

    def to_arrow_file(self, path: Path, *, compression: Literal["none", "zstd", "lz4"] | None = None) -> int:
        """Write an Arrow IPC file (Feather), which is there once all of it is; returns how many rows.

        Raises:
            StorageError: the file cannot be written.
        """
        return self._copy_to(path, "arrow", compression=compression)

    def _copy_to(self, path: Path, file_format: str | None, **options: Any) -> int:
        text = os.fspath(path)
        if not isinstance(text, str):
            raise TypeError(f"path is a str or a pathlib.Path, not {type(path).__name__}")
        listed = [] if file_format is None else [f"FORMAT {file_format}"]
        listed += [f"{name.upper()} {_option(value)}" for name, value in options.items() if value is not None]
        said = f" ({', '.join(listed)})" if listed else ""
        return _count(
            self._execute_over(
                StatementBuilder().words(f"COPY (SELECT * FROM self) TO {quoted_value(text)}{said}")
            )
        )

    def _read_table(self, name: str) -> Relation:
        """All rows of a table or view."""
        text = f"SELECT * FROM main.{quoted_name(name)}"
        return self._query_over(StatementBuilder().words(text))._rename(name, Definition(text))


def _option(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "*" if list(value) == ["*"] else f"({', '.join(map(quoted_name, value))})"
    return quoted_value(value)


def _count(answer: Relation) -> int:
    ((count,),) = answer.fetchall()
    return int(count)
