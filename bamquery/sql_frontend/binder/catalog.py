"""What the binder asks of whoever owns the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from bamquery.storage.ingest.sources.options import NO_OPTIONS, FileOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from bamquery.plan.expressions import Expression
    from bamquery.plan.nodes import Source
    from bamquery.storage.fragments.schema_evolution import ColumnRule

FoldConstants: TypeAlias = "Callable[[Expression], Expression]"
"""See `Catalog.fold_constants`."""


class Catalog(Protocol):
    """Names to sources. Nothing of a table but its schema is looked at while a statement is bound."""

    def fold_constants(self, expression: Expression) -> Expression:
        """The expression with a literal for every constant part that can be computed; others stay."""
        ...

    def table(self, name: str) -> Source:
        """The table of that name, compared without regard to case; `CatalogError` if there is none."""
        ...

    def table_names(self) -> Sequence[str]:
        """All tables and views, as they were written."""
        ...

    def with_row_numbers(self, source: Source) -> Source | None:
        """A table with one column more, the last, `ROW_NUMBER`; None where it is no stored table."""
        ...

    def rules(self, name: str) -> Sequence[ColumnRule]:
        """What the columns of a stored table demand: one rule each, or none where nothing is demanded.

        Raises:
            CatalogError: there is no such table; views and registered objects are none.
        """
        ...

    def stored_tables_only(self) -> Catalog:
        """The same without what only this connection knows, such as objects of Python."""
        ...

    def files(
        self, patterns: Sequence[str], file_format: str | None, options: FileOptions = NO_OPTIONS
    ) -> Source:
        """The files that the paths or globs name, as one source.

        Args:
            patterns: as the statement gives them, at least one.
            file_format: ``parquet``, ``csv``, ``json`` or ``arrow`` where the statement says so, else None.
            options: what else the statement says of them.
        """
        ...

    def virtual_columns(self, source: Source) -> tuple[int, int]:
        """How many columns of files come from paths and places: those shown, and the last ones, hidden."""
        ...

    @property
    def database(self) -> str:
        """The database's name: what may stand before that of the schema."""
        ...

    def system_table(self, subject: str, table: str | None = None) -> Source:
        """A table of the catalogue, as it is now.

        Args:
            subject: of `bamquery.sql_frontend.system_names`, or a table of information_schema with that name
                and a point before its own.
            table: whose columns or definition are wanted, for `table_info` and `definition`.

        Raises:
            CatalogError: there is no such table or view.
        """
        ...

    def setting(self, name: str) -> pa.Scalar[Any]:
        """The value of a setting; null where it has none.

        Raises:
            SettingError: there is no such setting.
        """
        ...

    def has_variable(self, name: str) -> bool:
        """Whether SET VARIABLE has given the name a value."""
        ...

    def variable(self, name: str) -> pa.Scalar[Any] | None:
        """The value of a variable, which the statement depends on from here on; None where there is none."""
        ...

    @property
    def version(self) -> str:
        """BamQuery's, with a v before it."""
        ...
