"""What a device's join table may do itself: rows put together where they are, without pairs for the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, runtime_checkable

from bamquery.engine.operators.join_pairs import JoinCondition
from bamquery.plan.nodes import JoinKind

_KINDS: Final = ("inner", "left", "semi", "anti")


@runtime_checkable
class JoiningTable(Protocol):
    """A `bamquery.engine.device.JoinTable` that joins by keys alone."""

    def joined(self, kind: JoinKind, frame: Any, keys: Any, held: Any) -> Iterator[Any]:
        """What the rows of a frame become in an inner, left, semi or anti join, in portions, in their order.

        Args:
            kind: of the join.
            frame: the probed rows.
            keys: theirs, as for `matches`.
            held: the rows that the table was made of the keys of, with the columns that are wanted.
        """
        ...


def joining_table(table: object, kind: JoinKind, condition: JoinCondition) -> JoiningTable | None:
    """The table, if it can do such a join by itself; an inner join's residual is left to the caller."""
    if kind not in _KINDS or (condition.residual is not None and kind != "inner"):
        return None
    return table if condition.probe_keys and isinstance(table, JoiningTable) else None
