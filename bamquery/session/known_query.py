"""One query that was planned, over places where its tables stood, and what it serves besides."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from bamquery.catalog.statement_catalog import StatementCatalog
from bamquery.engine.constant_folding import depends_on_time
from bamquery.engine.sources.scan_sources import StoredTable
from bamquery.errors import ExecutionError, SqlError
from bamquery.plan.assumptions import Assumptions
from bamquery.plan.bound_statements import Query
from bamquery.plan.expressions import Literal, walk
from bamquery.plan.late_plan import LatePlan
from bamquery.plan.nodes import Aggregate, Plan, Scan, Source, Window
from bamquery.plan.rewriting import expressions_of, nodes_of
from bamquery.plan.substitution import OtherPlanError, Substitution
from bamquery.session.optimized_plans import keep_optimized, receive_optimized
from bamquery.sql_frontend.text_constants import move_place
from bamquery.statement_context.limits import statement_limits

if TYPE_CHECKING:
    from bamquery.sql_frontend.parameter_constants import Constants

_NOT_THIS_PLAN = (OtherPlanError, ArithmeticError, ExecutionError, SqlError, ValueError, pa.ArrowException)
"""What is raised where constants do not go through the plan: planning them anew says what they do."""


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """Where a table stood in a plan. The table's version is not held, so vacuum may have it."""

    name: str
    schema: pa.Schema
    rows: int | None
    key: str


class KnownQuery:
    """A query as it was bound, and as it was optimised once somebody has run it. Thread-safe.

    Attributes:
        text: that it was planned for.
        constants: the text's, or values of its parameters.
        served: how many texts went through it since; about, as threads count.
    """

    def __init__(
        self,
        text: str,
        constants: Constants,
        bound: Plan,
        versions: Mapping[str, tuple[str, int, datetime]],
        assumptions: Assumptions,
    ) -> None:
        """Over places; `from_plan` makes one of a query over tables."""
        self.text = text
        self.constants = constants
        self.served = 0
        self._bound = bound
        self._versions = versions
        self._assumptions = assumptions
        self._optimized: Plan | None = None
        self._limits = statement_limits()
        self._lock = threading.Lock()

    @classmethod
    def from_plan(
        cls,
        text: str,
        constants: Constants,
        plan: Plan,
        tables: Mapping[str, StoredTable],
        assumptions: Assumptions,
    ) -> KnownQuery | None:
        """A bound query over these tables, by folded name; None where it reads anything else.

        Args:
            text: it is the one statement in.
            constants: the text's, or values of its parameters.
            plan: it was bound to. What it is optimised to is kept, too.
            tables: all that it may read.
            assumptions: noted while it was bound.
        """
        places = {id(table): _place(key, table) for key, table in tables.items()}
        if any(id(source) not in places for source in _sources(plan)):  # with numbers of rows, say
            return None
        bound = Substitution(partial(_place_of, places)).plan(plan)
        versions = {key: _version(table) for key, table in tables.items()}
        known = cls(text, constants, bound, versions, assumptions)
        if depends_on_time(plan):
            known._close()
        else:
            receive_optimized(plan, assumptions, partial(known._receive, places))
        return known

    def query(self, text: str, constants: Constants, catalog: StatementCatalog) -> Query | None:
        """What a text of the same shape is bound to; None where it may be another plan.

        Raises:
            BamQueryError: a table cannot be read.
        """
        is_same = constants == self.constants
        if self._limits != statement_limits():
            return None
        if self._assumptions.is_open and not is_same:
            return None
        if any(constants.written[n] != self.constants.written[n] for n in self._assumptions.fixed):
            return None
        tables: dict[str, StoredTable] = {}
        for key, version in self._versions.items():
            table = catalog.stored_table(key)
            if table is None or _version(table) != version:
                return None
            tables[key] = table
        try:
            move = partial(move_place, self.constants.spans, constants.spans, text, self.text)
            substitution = Substitution(
                partial(_table_of, tables),
                None if is_same else constants.literals(),
                constants.written,
                None if is_same else move,
                same_tables=True,
            )
            substitution.require_same_answers(self._assumptions)
            if self._optimized is not None:
                # Each constant has been computed by now: nothing that the bound plan is made of can fail. Its
                # columns are the same, since an answer's names are of these constants or of none.
                optimized = substitution.plan(self._optimized)
                make = partial(_bound_plan, substitution, self._bound, optimized)
                return Query(LatePlan(self._bound.fields, optimized, make), has_views=False)
            plan = substitution.plan(self._bound)
        except _NOT_THIS_PLAN:
            return None
        if self._assumptions.is_open:
            places = {id(table): _place(key, table) for key, table in tables.items()}
            receive_optimized(plan, self._assumptions, partial(self._receive, places))
        return Query(plan, has_views=False)

    def _receive(self, places: Mapping[int, _Place], optimized: Plan) -> None:
        with self._lock:
            if not self._assumptions.is_open:
                return
            over_places = Substitution(partial(_place_of, places))
            self._assumptions.questions = [
                replace(question, about=over_places.substitute(question.about))
                for question in self._assumptions.questions
            ]
            self._close(over_places.plan(optimized))

    def _close(self, optimized: Plan | None = None) -> None:
        plans = (self._bound,) if optimized is None else (self._bound, optimized)
        others = [one for plan in plans for one in _literals(plan) if one.origin is None]
        self._optimized = optimized
        self._assumptions.close(others)


def _bound_plan(substitution: Substitution, bound: Plan, optimized: Plan) -> Plan:
    made = substitution.plan(bound)
    keep_optimized(made, optimized)
    return made


def _literals(plan: Plan) -> Iterator[Literal]:
    """Those that stand in a plan; parameters of aggregates, which are no expressions, are fixed."""
    for node in nodes_of(plan):
        calls = [one.call for one in node.calls] if isinstance(node, Window) else ()
        for call in node.aggregates if isinstance(node, Aggregate) else calls:
            if call.parameter is not None and call.parameter.origin is not None:
                call.parameter.origin.fix()
        for expression in expressions_of(node):
            yield from (one for one in walk(expression) if isinstance(one, Literal))


def _sources(plan: Plan) -> Iterator[Source]:
    return (node.source for node in nodes_of(plan) if isinstance(node, Scan))


def _place_of(places: Mapping[int, _Place], source: Source) -> Source:
    return places[id(source)]


def _table_of(tables: Mapping[str, StoredTable], source: Source) -> Source:
    return tables[source.key] if isinstance(source, _Place) else source


def _place(key: str, table: StoredTable) -> _Place:
    return _Place(table.name, table.schema, table.rows, key)


def _version(table: StoredTable) -> tuple[str, int, datetime]:
    snapshot = table.snapshot
    from bamquery.storage.tables.snapshot import Snapshot  # noqa: PLC0415 (there is one by now)

    assert isinstance(snapshot, Snapshot)
    return snapshot.name, snapshot.version, snapshot.created_at
