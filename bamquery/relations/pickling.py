"""Relations as bytes: the plan, with the versions of its tables in place of what is open."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from bamquery.engine.sources.scan_sources import FileSource, NumberedTable, StoredTable
from bamquery.errors import BamQueryError, within_depth
from bamquery.plan.nodes import Plan, Scan, Source
from bamquery.plan.rewriting import transform_plan
from bamquery.relations.base import RelationBase
from bamquery.relations.definition import Definition
from bamquery.session.session import Session

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation
    from bamquery.storage.tables.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class _Version:
    """A table's version, which is not held by this; `is_numbered`: with its rows' numbers as a column."""

    name: str
    schema: pa.Schema
    version: int
    created_at: datetime
    is_numbered: bool


class RelationPickling(RelationBase):
    """`pickle.dumps(relation)`, and copies."""

    def __copy__(self) -> RelationBase:
        return self  # nothing changes it

    def __deepcopy__(self, memo: dict[int, Any]) -> RelationBase:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """As `(path, settings, versions, plan)`.

        Raises:
            BamQueryError: it reads what only this process has, or files; or the connection is closed.
        """
        self._session.require_open()
        with within_depth():
            plan = pickle.dumps(_replace_sources(self._plan, _describe_source))
        details = {
            "name": self._name,
            "definition": self._definition,
            "message": self.message,
            "is_answer": self.is_answer,
        }
        return _restore_relation, (self._session, plan, details)


def _restore_relation(
    session: Session, data: bytes, details: dict[str, str | bool | Definition | None]
) -> Relation:
    """The relation, over the versions that it was made over.

    Raises:
        CatalogError: one of these is not there any more.
    """
    from bamquery.relations.relation import Relation  # noqa: PLC0415 (which is made of these classes)

    held: dict[tuple[str, int], StoredTable] = {}

    def open_source(source: Source) -> Source:
        if not isinstance(source, _Version):
            return source
        key = source.name, source.version
        if key not in held:
            snapshot = session.database.hold_version(source.name, source.version, source.created_at)
            session.close_with_session(snapshot)
            held[key] = StoredTable(snapshot)
        return held[key].with_row_numbers() if source.is_numbered else held[key]

    with within_depth():
        plan: Plan = pickle.loads(data)  # noqa: S301 (part of what is being unpickled)
        arguments: dict[str, Any] = details
        return Relation(session, _replace_sources(plan, open_source), **arguments)


def _describe_source(source: Source) -> Source:
    if isinstance(source, StoredTable):
        snapshot = cast("Snapshot", source.snapshot)  # parts of one are in lowered plans only
        numbered = isinstance(source, NumberedTable)
        return _Version(snapshot.name, source.schema, snapshot.version, snapshot.created_at, numbered)
    if isinstance(source, FileSource):
        raise BamQueryError(
            f"this relation reads {source.name}, which is not in the database, so it cannot be pickled: "
            "load it into a table first, or pass to_arrow()"
        )
    return source


def _replace_sources(plan: Plan, change: Callable[[Source], Source]) -> Plan:
    """The plan over other sources."""
    return transform_plan(
        plan, lambda node: replace(node, source=change(node.source)) if isinstance(node, Scan) else node
    )
