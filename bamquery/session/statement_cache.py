"""Queries that were asked before are not parsed, bound and optimised again while their tables stay."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import pyarrow as pa

from bamquery.catalog.statement_catalog import StatementCatalog
from bamquery.catalog.views import inline_views
from bamquery.engine.constant_folding import depends_on_time, moments_read
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.plan.bound_statements import Query, Statement
from bamquery.plan.nodes import Plan, Scan, Source
from bamquery.plan.rewriting import nodes_of, transform_plan
from bamquery.session.optimized_plans import keep_optimized, optimized_plan
from bamquery.sql_frontend.parameters import Parameters
from bamquery.sql_frontend.statement_binder import bind
from bamquery.statement_context.deep_recursion import with_deep_recursion

_MOST_QUERIES: Final = 64
_LONGEST_TEXT: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where a table stood in a plan. The table's version is not held, so vacuum may have it."""

    name: str
    schema: pa.Schema
    rows: int | None
    key: str


@dataclass(slots=True)
class _Known:
    """A bound query over places.

    Attributes:
        plan: as it was bound.
        versions: by folded name, which version of the table it was bound over.
        fixed: whether it says the same at any time.
        optimized: after all rules; None until it is asked for again.
    """

    plan: Plan
    versions: dict[str, tuple[str, int, datetime]]
    fixed: bool
    optimized: Plan | None = None


class StatementCache:
    """Bound queries by their text, the last ones used. Thread-safe.

    Only a text of one query without parameters over stored tables is kept. It is looked up under the tables'
    versions of now, so that it gives what binding it anew would give.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def bind(
        self, text: str, catalog: StatementCatalog, parameters: Parameters | None
    ) -> Iterator[Statement]:
        """As `bamquery.sql_frontend.statement_binder.bind`, which see."""
        found = None if parameters is not None else with_deep_recursion(lambda: self._find(text, catalog))
        if found is not None:
            return iter((found,))
        return self._bind(text, catalog, parameters)

    def _bind(
        self, text: str, catalog: StatementCatalog, parameters: Parameters | None
    ) -> Iterator[Statement]:
        statements = bind(text, catalog, parameters)
        moments = moments_read()
        first = next(statements, None)
        lasting = moments_read() == moments  # VALUES and range() may hold the time of binding
        if first is None:
            return
        tables = catalog.only_tables()
        yield first
        others = list(itertools.islice(statements, 1))
        if isinstance(first, Query) and lasting and not others and tables and parameters is None:
            plan = first.plan
            with_deep_recursion(lambda: self._store(text, plan, tables))
        yield from others
        yield from statements

    def _store(self, text: str, plan: Plan, tables: dict[str, StoredTable]) -> None:
        if len(text) > _LONGEST_TEXT:
            return
        places = {id(table): _place(key, table) for key, table in tables.items()}
        if any(id(source) not in places for source in _sources(plan)):  # with numbers of rows, say
            return
        known = _Known(
            # Inlined already, so that whoever runs it has the very plan that an optimised one is kept with.
            _replace_sources(inline_views(plan), lambda source: places.get(id(source), source)),
            {key: _version(table) for key, table in tables.items()},
            not depends_on_time(plan),
        )
        with self._lock:
            self._known[text] = known
            while len(self._known) > _MOST_QUERIES:
                self._known.popitem(last=False)

    def _find(self, text: str, catalog: StatementCatalog) -> Query | None:
        with self._lock:
            known = self._known.get(text)
            if known is None:
                return None
            self._known.move_to_end(text)
        tables: dict[str, StoredTable] = {}
        for key, version in known.versions.items():
            table = catalog.stored_table(key)
            if table is None or _version(table) != version:
                return None
            tables[key] = table

        def table_of(source: Source) -> Source:
            return tables[source.key] if isinstance(source, _Place) else source

        plan = _replace_sources(known.plan, table_of)
        if known.fixed:
            if known.optimized is None:
                places = {id(table): _place(key, table) for key, table in tables.items()}
                known.optimized = _replace_sources(
                    optimized_plan(plan), lambda source: places.get(id(source), source)
                )
            keep_optimized(plan, _replace_sources(known.optimized, table_of))
        return Query(plan)


def _replace_sources(plan: Plan, change: Callable[[Source], Source]) -> Plan:
    """The plan over other sources."""
    return transform_plan(
        plan, lambda node: replace(node, source=change(node.source)) if isinstance(node, Scan) else node
    )


def _sources(plan: Plan) -> Iterator[Source]:
    return (node.source for node in nodes_of(plan) if isinstance(node, Scan))


def _place(key: str, table: StoredTable) -> _Place:
    return _Place(table.name, table.schema, table.rows, key)


def _version(table: StoredTable) -> tuple[str, int, datetime]:
    snapshot = table.snapshot
    from bamquery.storage.tables.snapshot import Snapshot  # noqa: PLC0415 (there is one by now)

    assert isinstance(snapshot, Snapshot)
    return snapshot.name, snapshot.version, snapshot.created_at
