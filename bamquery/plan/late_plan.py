"""A bound plan that nobody may ever look at, since what it is optimised to is known."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from bamquery.plan.nodes import Field, Plan
from bamquery.statement_context.deep_recursion import with_deep_recursion


class LatePlan:
    """Made when somebody asks for it, once. Thread-safe.

    Attributes:
        fields: of its rows.
        optimized: what is run.
    """

    def __init__(self, fields: tuple[Field, ...], optimized: Plan, make: Callable[[], Plan]) -> None:
        """`make` does not fail, and holds what the plan reads."""
        self.fields: Final = fields
        self.optimized: Final = optimized
        self._make: Callable[[], Plan] | None = make
        self._plan: Plan | None = None
        self._lock = threading.Lock()

    @property
    def plan(self) -> Plan:
        """As it was bound."""
        with self._lock:
            if self._plan is None:
                assert self._make is not None
                self._plan = with_deep_recursion(self._make)
                self._make = None
            return self._plan


def made_plan(plan: Plan | LatePlan) -> Plan:
    """The plan itself."""
    return plan.plan if isinstance(plan, LatePlan) else plan
