"""Plans as people read them; golden files have the exact form."""

from __future__ import annotations

from bamquery.plan.format import format_plan
from bamquery.plan.optimizer import optimize
from tests.plans import plan_of


def test_readable() -> None:
    plan = optimize(
        plan_of(
            "SELECT zone, count(*) AS n, sum(fare) FILTER (WHERE paid) FROM trips WHERE distance >= 30 "
            "AND zone NOT LIKE 'a%' AND pickup < '2024-01-01' "
            "GROUP BY zone HAVING n > 5 ORDER BY 2 DESC LIMIT 3"
        )
    )
    assert format_plan(plan).splitlines() == [
        "Sort n DESC limit 3",
        "  Project zone, count_star() AS n, sum(fare) AS sum(fare) FILTER (WHERE paid)",
        "    Filter (count_star() > 5)",
        "      Aggregate count_star(), sum(fare) FILTER (WHERE paid) BY zone",
        "        Scan trips: fare, zone, paid WHERE (distance >= 30.0) AND (NOT (zone LIKE 'a%')) "
        "AND (pickup < '2024-01-01 00:00:00')",
    ]


def test_values_are_counted() -> None:
    assert format_plan(plan_of("VALUES (1), (2)")) == "Values col0: 2 rows"
