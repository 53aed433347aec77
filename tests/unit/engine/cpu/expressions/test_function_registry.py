"""The plan's contract: every function that plans may call is here, and no other."""

from bamquery.engine.aggregate_families import AGGREGATES
from bamquery.engine.cpu.aggregates.registry import FAMILIES
from bamquery.engine.cpu.expressions.conditions import FORMS
from bamquery.engine.cpu.expressions.function_registry import FUNCTIONS
from bamquery.function_catalog.plan_functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS


def test_scalar_functions() -> None:
    # now() is a literal before a device sees it.
    assert {*FUNCTIONS, *FORMS, "now"} == set(SCALAR_FUNCTIONS)


def test_aggregate_functions() -> None:
    assert set(AGGREGATES) == set(AGGREGATE_FUNCTIONS)
    assert {family for family, _ in AGGREGATES.values()} == set(FAMILIES)
