"""What every part of a relation's face works with: the session, the plan, and runs of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bamquery.engine.profile import QueryProfile
from bamquery.errors import SqlError, within_depth
from bamquery.plan.nodes import Plan
from bamquery.plan.statements import Query
from bamquery.query_progress import RunningQuery
from bamquery.result import Result
from bamquery.session import Session
from bamquery.sql_frontend.statements import bind
from bamquery.type_names import type_name
from bamquery.views import View, inline

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation

PREVIEW_ROWS: Final = 20
"""As many are shown of a relation, where nobody says how many."""


class RelationBase:
    """A plan of a session; `Relation` adds its face."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        *,
        optimized: Plan | None = None,
        profile: QueryProfile | None = None,
        message: str = "",
        is_answer: bool = True,
    ) -> None:
        """Made by a connection.

        Args:
            session: the connection's.
            plan: what to run.
            optimized: the same after all rules, where that is known already.
            profile: of the run that led to the rows of `plan`, if there was one.
            message: to be shown instead of the rows.
            is_answer: False where the statement was not asked for its rows, such as CREATE TABLE.
        """
        self._session = session
        self._plan = plan
        self._optimized = optimized
        self._profile = profile
        self._latest: RunningQuery | None = None
        self._cursor: Iterator[tuple[Any, ...]] | None = None
        self._lock = threading.Lock()
        self.message = message
        self.is_answer = is_answer

    # What it looks like.

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [field.name for field in self._plan.fields]

    @property
    def types(self) -> list[str]:
        """Types of the columns, as SQL spells them."""
        return [type_name(field.type) for field in self._plan.fields]

    @property
    def schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""
        return pa.schema([pa.field(field.name, field.type) for field in self._plan.fields])

    def plan_of(self, session: Session) -> Plan:
        """What it runs, for a statement of its connection that names it.

        Raises:
            SqlError: the statement is another connection's.
        """
        if session is not self._session:
            raise SqlError("a relation can only be used by the connection that it is of: pass its to_arrow()")
        return self._plan

    def execute(self) -> Result:
        """A run of its own, to take batches from as they come; see `Result`."""
        result = self._session.run(self._plan, self._optimized)
        if self.is_answer:  # otherwise what counts is the run that did the work
            self._profile = result.profile
            self._latest = result.running
        return result

    def _derived(self, plan: Plan) -> Relation:
        """Another relation, of the same session."""
        from bamquery.relations.relation import Relation  # noqa: PLC0415 (which is made of this class)

        return Relation(self._session, plan)

    @within_depth()
    def _over(self, text: str) -> Relation:
        catalog = self._session.catalog({"relation": View("relation", self._plan)})
        (statement,) = bind(text, catalog)
        assert isinstance(statement, Query)
        return self._derived(inline(statement.plan))
