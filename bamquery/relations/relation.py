"""A query as a value: lazy, immutable, and asked again as often as one likes."""

from __future__ import annotations

from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.errors import BamQueryError, within_depth
from bamquery.relations.display.explanation import Explanation
from bamquery.relations.display.notebook import RelationNotebookDisplay
from bamquery.relations.duckdb_api.aggregates import RelationAggregates
from bamquery.relations.duckdb_api.names import RelationDuckdbNames
from bamquery.relations.frames.frames import RelationFrames
from bamquery.relations.frames.rows import RelationRows
from bamquery.relations.pickling import RelationPickling
from bamquery.relations.verbs.combining import RelationPairs
from bamquery.relations.verbs.inspection import RelationInspection
from bamquery.relations.verbs.take import RelationTake
from bamquery.relations.verbs.transformation import RelationVerbs
from bamquery.relations.verbs.writing import RelationWrites
from bamquery.statement_context.deep_recursion import with_deep_recursion


class Relation(
    RelationVerbs,
    RelationPairs,
    RelationTake,
    RelationInspection,
    RelationFrames,
    RelationRows,
    RelationWrites,
    RelationAggregates,
    RelationDuckdbNames,
    RelationPickling,
    RelationNotebookDisplay,
):
    """What a SELECT answers, over the table versions of the moment it was written.

    It runs each time its rows are asked for, and holds on to those versions until it is garbage
    collected or the connection is closed. Methods that change it return another relation. Only
    `fetchone` and `fetchmany` have a position, shared by all who call them.
    """

    @property
    def has_run(self) -> bool:
        """Whether there is a profile to look at."""
        return self._profile is not None

    @property
    def profile(self) -> QueryProfile:
        """Of the latest run: rows, time, strategies, bytes needed and read.

        Raises:
            BamQueryError: it has not been run.
        """
        if self._profile is None:
            raise BamQueryError("this relation has not been run yet: take its rows first, then its profile")
        return self._profile

    @within_depth()
    def explain(self, *, analyze: bool = False) -> Explanation:
        """The physical plan with what each scan is expected to do; with `analyze` run, and as measured.

        A text, which notebooks show as a tree that folds.
        """
        from bamquery.engine.explain.text_tree import explain_plan, explain_profile  # noqa: PLC0415 (rarely asked for)

        if not analyze:
            result = self._session.run(self._asked)
            profile = result.profile
            return Explanation(
                with_deep_recursion(lambda: explain_plan(result.operator, profile.device, profile.notes))
            )
        with self.run() as result, result.running.call():
            for _ in result:
                pass
        text = with_deep_recursion(lambda: explain_profile(result.profile))
        return Explanation(text, result.profile)

    def __repr__(self) -> str:
        """The first rows as a table; only these are computed, as far as the query allows."""
        try:
            return self.preview()
        except BamQueryError as error:
            return f"<Relation ({', '.join(self.columns)}): {error}>"
