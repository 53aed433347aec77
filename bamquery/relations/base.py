"""What every part of a relation's face works with: the session, the plan, and runs of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from bamquery.catalog.views import View, inline_views
from bamquery.data_types.names import type_name
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.errors import CatalogError, SqlError, foreign_errors, within_depth
from bamquery.plan.bound_statements import Query, Statement
from bamquery.plan.late_plan import LatePlan, made_plan
from bamquery.plan.nodes import Field, Plan
from bamquery.relations.definition import OTHER, SELF, Definition
from bamquery.relations.expressions.statement_builder import StatementBuilder, drop_repeated_reasons
from bamquery.session.query_progress import RunningQuery
from bamquery.session.result import Result
from bamquery.session.session import Session
from bamquery.sql_frontend.statement_binder import bind
from bamquery.text.identifiers import fold_case, suggestion, unique_names

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation

PREVIEW_ROWS: Final = 20
"""As many are shown of a relation, where nobody says how many."""


class RelationBase:
    """A plan of a session; `Relation` adds its face."""

    def __init__(
        self,
        session: Session,
        plan: Plan | LatePlan,
        *,
        profile: QueryProfile | None = None,
        message: str = "",
        is_answer: bool = True,
        name: str = "",
        definition: Definition | None = None,
    ) -> None:
        """Made by a connection.

        Args:
            session: the connection's.
            plan: what to run.
            profile: of the run that led to the rows of `plan`, if there was one.
            message: to be shown instead of the rows.
            is_answer: False where the statement was not asked for its rows, such as CREATE TABLE.
            name: what conditions of joins call it, and its own expressions may.
            definition: the same as SQL, where text says all of it.
        """
        self._session = session
        self._asked = plan
        self._profile = profile
        self._latest: RunningQuery | None = None
        self._cursor: Iterator[tuple[Any, ...]] | None = None
        self._lock = threading.Lock()
        self._name = name
        self._definition = definition
        self._text = "" if definition is None else definition.text  # for reports of faults
        self.message = message
        self.is_answer = is_answer

    @property
    def _plan(self) -> Plan:
        """What it runs, for who makes more of it: its own runs need not see it."""
        return made_plan(self._asked)

    # What it looks like.

    @property
    def _fields(self) -> tuple[Field, ...]:
        return self._asked.fields

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [field.name for field in self._fields]

    @property
    def types(self) -> list[str]:
        """Types of the columns, as SQL spells them."""
        return [type_name(field.type) for field in self._fields]

    @property
    def schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""
        return pa.schema([pa.field(field.name, field.type) for field in self._fields])

    def plan_of(self, session: Session) -> Plan:
        """What it runs, for a statement of its connection that names it.

        Raises:
            SqlError: the statement is another connection's.
        """
        if session is not self._session:
            raise SqlError("a relation can only be used by the connection that it is of: pass its to_arrow()")
        return self._plan

    def run(self) -> Result:
        """A run of its own, to take batches from as they come; see `Result`."""
        result = self._session.run(self._asked, self._text)
        if self.is_answer:  # otherwise what counts is the run that did the work
            self._profile = result.profile
            self._latest = result.running
        return result

    @property
    def _names(self) -> list[str]:
        """The columns as its own expressions call them: later ones of one name have numbers."""
        return unique_names(self.columns)

    def _column(self, name: object, argument: str = "column") -> str:
        """The column of that name, as it is spelled.

        Raises:
            TypeError: it is no string. CatalogError: there is no such column; with the nearest name.
        """
        if not isinstance(name, str):
            raise TypeError(f"{argument} is the name of a column, not {type(name).__name__}")
        names = self._names
        if name in names:
            return name
        known = {fold_case(own): own for own in reversed(names)}
        if fold_case(name) not in known:
            raise CatalogError(f'{argument}: there is no column "{name}".{suggestion(name, names)}')
        return known[fold_case(name)]

    def _derive(self, plan: Plan, text: str, other: RelationBase | None = None) -> Relation:
        """Another relation, of the same session; `text` is the same as SQL over `self` and `other`."""
        from bamquery.relations.relation import Relation  # noqa: PLC0415 (which is made of this class)

        definitions = {SELF: self._definition} | ({} if other is None else {OTHER: other._definition})
        over = {name: known for name, known in definitions.items() if known is not None}
        whole = bool(text) and len(over) == len(definitions)
        name = self._name if other is None else ""
        return Relation(self._session, plan, name=name, definition=Definition(text, over) if whole else None)

    def _define(self, text: str) -> None:
        """Note that a statement is all that leads to the rows, if it is a query's."""
        if self.is_answer and not self.message:
            self._definition = Definition(text)

    def _rename(self, name: str, definition: Definition | None) -> Relation:
        """The same rows under another name, and as other SQL."""
        from bamquery.relations.relation import Relation  # noqa: PLC0415 (which is made of this class)

        return Relation(self._session, self._asked, name=name, definition=definition)

    def _query_over(self, statement: StatementBuilder, other: RelationBase | None = None) -> Relation:
        """What a query over `self`, and `other`, answers."""
        bound, objects = self._bind_over(statement, other)
        assert isinstance(bound, Query)
        return self._derive(inline_views(bound.plan), "" if objects else statement.text, other)

    def _execute_over(self, statement: StatementBuilder, name: str = SELF) -> Relation:
        """The answer of a statement over `self`, or under another name, which is done when this returns."""
        bound, objects = self._bind_over(statement, name=name)
        if isinstance(bound, Query):
            whole = not objects and name == SELF
            return self._derive(inline_views(bound.plan), statement.text if whole else "")
        answer: Relation = self._session.perform(bound)
        return answer

    def _bind_over(
        self, statement: StatementBuilder, other: RelationBase | None = None, name: str = SELF
    ) -> tuple[Statement, bool]:
        """The statement, and whether it names objects of Python."""
        sources = {name: View(name, self._plan, is_inlined=True)}
        if other is not None:
            sources[OTHER] = View(OTHER, other.plan_of(self._session), is_inlined=True)
        catalog = self._session.catalog(sources)
        try:
            # No decorator: who calls is found by going up the frames of this package.
            with foreign_errors(statement.text), within_depth(), self._session.planning():
                bound = list(bind(statement.text, catalog))
        except SqlError as error:
            raise drop_repeated_reasons(error) from None
        if len(bound) != 1:
            raise SqlError("this takes one statement", statement.text)
        return bound[0], not catalog.objects <= {fold_case(known) for known in sources}
