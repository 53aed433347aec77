"""What tables of the catalogue are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from bamquery.engine.settings import Settings
from bamquery.storage.ingest.sources.reject_log import RejectedFile
from bamquery.storage.tables.stored_view import StoredView


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column of a table or view; `default` is SQL."""

    name: str
    type: pa.DataType
    not_null: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """A table or view.

    Attributes:
        name: as its creator wrote it.
        columns: None where they are not known: its manifest is damaged, or a view's query cannot be bound.
        rows: of a table; None of a view, or where that is not known.
        view: its definition; None for a table.
    """

    name: str
    columns: tuple[ColumnFacts, ...] | None
    rows: int | None = None
    view: StoredView | None = None


class CatalogFacts(Protocol):
    """What there is at the moment at which it is asked."""

    @property
    def database(self) -> str:
        """The database's name."""
        ...

    @property
    def path(self) -> str | None:
        """Its folder; None for one that goes with the connection."""
        ...

    @property
    def settings(self) -> Settings:
        """The connection's."""
        ...

    @property
    def rejected_files(self) -> Sequence[RejectedFile]:
        """Files that were read with `store_rejects`."""
        ...

    def relations(self) -> Sequence[RelationFacts]:
        """All tables and views, sorted by name without regard to case."""
        ...

    def relation(self, name: str) -> RelationFacts | None:
        """The table or view of that name; None where there is none."""
        ...
