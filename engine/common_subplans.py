"""Which parts of a plan several operators take rows from, and are computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.operators.shared_rows import SharedRows
from bamquery.plan import nodes
from bamquery.plan.interning import lasting_fact
from bamquery.plan.nodes import Plan
from bamquery.plan.rewriting import (
    children,
    fact_of_node,
    is_too_large_to_copy,
    parents_first,
    shared_nodes,
)

_WORTH: Final = (nodes.Aggregate, nodes.Window, nodes.Recursion)
"""What has seen all its rows before it gives the first one. Others are read again: a scan may read less for
one of its readers than for another, and a join of large tables gives more rows than it is read from."""


class CommonSubplans:
    """The nodes that several others lead to, found once rules have given each what it needs.

    A condition that only one of two references to a query in WITH has, or a column that only one of them
    reads, has become part of that one's plan by then: these two are two nodes, and each is computed.
    """

    def __init__(self, plan: Plan, *, only_large: bool = False) -> None:
        """Of a plan in which equal nodes are one.

        `only_large`: for a step that is repeated, which computes anew what is little.
        """
        self._rows: dict[int, SharedRows[Any]] = {}
        self._shared: set[int] = set()
        if lasting_fact(plan, _is_tree):
            return
        ways = {id(plan): 1}
        for node in parents_first(plan, _lowering_children):
            worth = not only_large and isinstance(node, _WORTH) and _reads(node)
            if ways[id(node)] > 1 and (worth or is_too_large_to_copy(node)):
                self._shared.add(id(node))
            for child in _lowering_children(node):
                often = 1 if id(node) in self._shared else ways[id(node)]
                ways[id(child)] = ways.get(id(child), 0) + often

    def lower_once(self, plan: Plan, lower: Callable[[Plan], Operator[Any]]) -> Operator[Any]:
        """The operator of a node: `lower` makes one, of a shared one the first time only."""
        key = id(plan)
        if key not in self._shared:
            return lower(plan)
        if key not in self._rows:
            self._rows[key] = SharedRows(lower(plan), len(self._rows) + 1)
        return self._rows[key].scan()


def _is_tree(plan: Plan) -> bool:
    """Whether no node leads to one that another one leads to."""
    return not shared_nodes(plan)


def _lowering_children(plan: Plan) -> tuple[Plan, ...]:
    """The children; a recursive query's are lowered by themselves, its step over other rows each time."""
    return () if isinstance(plan, nodes.Recursion) else children(plan)


@fact_of_node
def _reads(plan: Plan) -> bool:
    """Whether it reads a table or files; constants are as quickly computed again."""
    return isinstance(plan, nodes.Scan) or any(map(_reads, children(plan)))
