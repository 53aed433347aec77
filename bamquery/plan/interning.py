"""Equal parts of a plan as one node, so that what is done for each node is done once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeVar

from bamquery.plan.expressions import Call, walk
from bamquery.plan.nodes import Plan, Sample
from bamquery.plan.rewriting import children, expressions_of, fact_of_node, transform_plan

Answer = TypeVar("Answer")

DIFFERENT_EACH_TIME: Final = frozenset({"random", "uuid", "gen_random_uuid"})
_LASTING: Final = f"{__name__}.lasting"
_BELOW: Final = frozenset({"child", "left", "right", "inputs", "first", "step"})


class Interning:
    """One node for all that are equal, over any number of plans.

    Nodes that draw at random are equal to themselves only: two that are written alike give other rows.
    """

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Plan] = {}
        self._own: dict[int, Plan] = {}

    def __call__(self, plan: Plan) -> Plan:
        """The plan, of nodes that are equal to no other ones."""
        return transform_plan(plan, self._intern_node)

    def _intern_node(self, plan: Plan) -> Plan:
        if id(plan) in self._own:
            return plan
        if draws_at_random(plan):
            return self._own.setdefault(id(plan), plan)
        own = tuple(_hashable(getattr(plan, f.name)) for f in fields(plan) if f.name not in _BELOW)
        key = (type(plan), own, tuple(map(id, children(plan))))
        found = self._nodes.setdefault(key, plan)
        return self._own.setdefault(id(found), found)


def note_interned(plan: Plan) -> None:
    """Note that all nodes of a plan are interned, and let it have facts that last."""
    plan.__dict__[_LASTING] = {}


def lasting_facts(plan: Plan) -> dict[str, Any] | None:
    """What is known of an interned plan and all that are made of it with other constants; None of others."""
    found: dict[str, Any] | None = plan.__dict__.get(_LASTING)
    return found


def lasting_fact(plan: Plan, find: Callable[[Plan], Answer]) -> Answer:
    """What a function finds of a plan, once for all that are made of it, with whatever constants.

    It is to be the same whoever asks, and whenever, and of all of these plans.
    """
    facts = lasting_facts(plan)
    if facts is None:
        return find(plan)
    key = f"{find.__module__}.{find.__qualname__}"
    if key not in facts:
        facts[key] = find(plan)
    answer: Answer = facts[key]
    return answer


def share_lasting_facts(plan: Plan, made: Plan) -> None:
    """Let a plan have those of the one that it was made of: the same of its literals are equal."""
    if _LASTING in plan.__dict__:
        made.__dict__[_LASTING] = plan.__dict__[_LASTING]


@fact_of_node
def draws_at_random(plan: Plan) -> bool:
    """Whether the node itself gives other rows each time it is asked."""
    if isinstance(plan, Sample):
        return plan.seed is None
    return any(
        isinstance(node, Call) and node.function in DIFFERENT_EACH_TIME
        for expression in expressions_of(plan)
        for node in walk(expression)
    )


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:  # a source that compares by contents that change
        return id(value)
    return value
