"""Which parts of a plan stand in it more than once, and are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bamquery.engine.operators.operator import Operator
from bamquery.engine.operators.shared_rows import SharedRows
from bamquery.plan import nodes
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import children

_WORTH: Final = (nodes.Aggregate, nodes.Window, nodes.Recursion)
"""What has seen all its rows before it gives the first one. Others are read again: a scan may read less for
one of its readers than for another, and a join of large tables gives more rows than it is read from."""


class SharedPlans:
    """The parts of a plan that are equal, found once rules have given each what it needs.

    A condition that only one of two references to a query in WITH has, or a column that only one of them
    reads, has become part of that one's plan by then: these two are not equal, and each is computed.
    """

    def __init__(self, plan: Plan) -> None:
        self._groups: list[list[Plan]] = []
        self._rows: dict[int, SharedRows[Any]] = {}
        self._find(plan)
        self._groups = [group for group in self._groups if len(group) > 1]

    def lowered(self, plan: Plan, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
        """The operator of a part: `lower` makes one, of equal ones for the first only."""
        place = next((i for i, group in enumerate(self._groups) if any(one is plan for one in group)), None)
        if place is None:
            return lower(plan)
        if place not in self._rows:
            self._rows[place] = SharedRows(lower(plan), len(self._rows) + 1)
        return self._rows[place].scan()

    def _find(self, plan: Plan) -> None:
        if isinstance(plan, _WORTH) and _reads(plan):
            for group in self._groups:
                if group[0] == plan:
                    group.append(plan)
                    return  # what is within is computed once, too
            self._groups.append([plan])
        if not isinstance(plan, nodes.Recursion):  # its step is repeated, over other rows each time
            for child in children(plan):
                self._find(child)


def _reads(plan: Plan) -> bool:
    """Whether it reads a table or files; constants are as quickly computed again."""
    return isinstance(plan, nodes.Scan) or any(map(_reads, children(plan)))
