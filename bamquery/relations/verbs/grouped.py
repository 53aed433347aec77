"""Groups of a relation's rows that wait for what is to be computed of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bamquery.relations.expressions.expression import ColumnLike

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation
    from bamquery.relations.verbs.transformation import RelationVerbs


class GroupedRelation:
    """See `Relation.group_by`; `agg` makes a relation of it."""

    def __init__(self, relation: RelationVerbs, keys: Sequence[ColumnLike]) -> None:
        """Made by `group_by`."""
        self._relation = relation
        self._keys = tuple(keys)

    def agg(self, /, *expressions: ColumnLike, **named: ColumnLike | Any) -> Relation:
        """One row a group, its keys first; as `Relation.aggregate`."""
        return self._relation.aggregate(*expressions, by=self._keys, **named)

    def count(self) -> Relation:
        """How many rows each group has."""
        return self.agg(count="count(*)")

    def __repr__(self) -> str:
        return f"<groups of a relation by {', '.join(map(str, self._keys))}: agg() computes of each>"
