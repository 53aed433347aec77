"""The rules and their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bamquery.plan.interning import Interning, note_interned
from bamquery.plan.nodes import Plan
from bamquery.plan.rules.compare_intervals import compare_intervals
from bamquery.plan.rules.factor_conditions import factor_conditions
from bamquery.plan.rules.fold_constants import fold_constants
from bamquery.plan.rules.imply_conditions import imply_conditions
from bamquery.plan.rules.measure_durations import measure_durations
from bamquery.plan.rules.merge_equalities import merge_equalities
from bamquery.plan.rules.merge_projects import merge_projects
from bamquery.plan.rules.narrow_comparisons import narrow_comparisons
from bamquery.plan.rules.order_joins import order_joins
from bamquery.plan.rules.project_strings_below import project_strings_below
from bamquery.plan.rules.prune_columns import prune_columns
from bamquery.plan.rules.push_down_limits import push_down_limits
from bamquery.plan.rules.push_down_predicates import push_down_predicates
from bamquery.plan.rules.remove_trivial import remove_trivial
from bamquery.plan.rules.share_expressions import share_expressions
from bamquery.plan.rules.simplify_joins import simplify_joins
from bamquery.plan.rules.simplify_logic import simplify_logic
from bamquery.plan.rules.total_groups import total_groups

Rule = Callable[[Plan], Plan]

RULES: Final[tuple[Rule, ...]] = (
    fold_constants,
    measure_durations,
    compare_intervals,
    simplify_logic,
    narrow_comparisons,
    factor_conditions,
    imply_conditions,
    merge_equalities,
    remove_trivial,  # before conditions that are decided reach a scan
    merge_projects,
    simplify_joins,
    push_down_predicates,
    order_joins,
    push_down_limits,
    share_expressions,
    project_strings_below,
    total_groups,  # before what only groups need is left out of the totals' rows
    prune_columns,
)

_MOST_PASSES: Final = 10


def optimize(plan: Plan) -> Plan:
    """The plan after all rules, over and over until they find nothing more to do.

    The result gives the same rows in the same columns; where the plan would fail with an error, it may
    succeed instead, if the value that fails is not needed.
    """
    interned = Interning()
    plan = interned(plan)
    for _ in range(_MOST_PASSES):
        before = plan
        for rule in RULES:
            plan = rule(plan)
        plan = interned(plan)
        if plan is before:
            break
    note_interned(plan)
    return plan
