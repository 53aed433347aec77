"""Relations made from a relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bamquery.plan.nodes import Limit
from bamquery.relations.base import RelationBase
from bamquery.relations.relation_text import aggregate_text, filter_text, order_text, project_text
from bamquery.values import whole_number

if TYPE_CHECKING:
    from bamquery.relations.relation import Relation


class RelationVerbs(RelationBase):
    """Methods that return another relation; none of them runs anything."""

    def filter(self, condition: str) -> Relation:
        """Rows for which an SQL condition is true: `filter("trip_distance >= 30")`."""
        return self._over(filter_text(condition))

    def project(self, *expressions: str) -> Relation:
        """Columns computed from these: `project("total_amount / trip_distance AS per_mile", "extra")`."""
        return self._over(project_text(expressions))

    def aggregate(self, *expressions: str, by: str | Sequence[str] = ()) -> Relation:
        """One row a group, or one row in all: `aggregate("avg(tolls_amount)", by="payment_type")`.

        The columns of `by` come first.
        """
        return self._over(aggregate_text(expressions, [by] if isinstance(by, str) else by))

    def order(self, *keys: str) -> Relation:
        """Rows in order: `order("pickup_at DESC", "fare_amount")`."""
        return self._over(order_text(keys))

    def limit(self, count: int, offset: int = 0) -> Relation:
        """At most `count` rows, after skipping `offset`."""
        limit = Limit(self._plan, whole_number(count, "count"), whole_number(offset, "offset"))
        return self._derived(limit)
