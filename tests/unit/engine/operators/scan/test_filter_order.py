"""Filters go in the order that costs least, by what was seen."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.operators.scan.filter_order import AdaptiveFilterOrder, FilterStep
from bamquery.plan.expressions import Literal

TRUE = Literal(pa.scalar(True))


def step(number: int, *, can_fail: bool = False) -> FilterStep:
    return FilterStep(number, (number,), TRUE, (), can_fail)


def test_the_more_selective_of_equal_cost_goes_first() -> None:
    order = AdaptiveFilterOrder([step(0), step(1)], [0.5, 0.01])
    assert order.choose_next([step(0), step(1)], lambda s: 1.0).number == 1


def test_the_cheaper_of_equal_selectivity_goes_first() -> None:
    order = AdaptiveFilterOrder([step(0), step(1)], [0.5, 0.5])
    assert order.choose_next([step(0), step(1)], lambda s: 2.0 - s.number).number == 1


def test_what_was_seen_outweighs_the_guess() -> None:
    order = AdaptiveFilterOrder([step(0), step(1)], [0.01, 0.5])
    order.learn(step(0), 1_000_000, 990_000)
    order.learn(step(1), 1_000_000, 20_000)
    assert order.choose_next([step(0), step(1)], lambda s: 1.0).number == 1
    assert abs(order.selectivity(step(0)) - 0.989) < 1e-3


def test_conditions_that_can_fail_wait_and_keep_their_order() -> None:
    waiting = [step(2, can_fail=True), step(1, can_fail=True), step(0)]
    order = AdaptiveFilterOrder([step(0), step(1), step(2)], [0.9, 0.1, 0.1])
    assert order.choose_next(waiting, lambda s: 1.0).number == 0
    assert order.choose_next(waiting[:2], lambda s: 1.0 - s.number).number == 2


@given(st.lists(st.tuples(st.floats(0.01, 0.95), st.floats(0.1, 100.0)), min_size=2, max_size=5))
def test_independent_filters_cost_least_in_this_order(filters: list[tuple[float, float]]) -> None:
    """Against all orders, where a filter costs so much a row that reaches it."""

    def total(sequence: tuple[int, ...]) -> float:
        alive, cost = 1.0, 0.0
        for number in sequence:
            selectivity, price = filters[number]
            cost += alive * price
            alive *= selectivity
        return cost

    every = [step(i) for i in range(len(filters))]
    order = AdaptiveFilterOrder(every, [selectivity for selectivity, _ in filters])
    waiting, taken, alive = list(every), [], 1.0
    while waiting:
        chosen = order.choose_next(waiting, lambda s: alive * filters[s.number][1])  # noqa: B023
        alive *= filters[chosen.number][0]
        taken.append(chosen.number)
        waiting.remove(chosen)
    best = min(total(sequence) for sequence in permutations(range(len(filters))))
    assert total(tuple(taken)) <= best * (1 + 1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10), st.booleans()), min_size=1, max_size=6))
def test_the_whole_order_is_as_steps_are_chosen_one_by_one(made: list[tuple[float, float, bool]]) -> None:
    steps = [step(number, can_fail=can_fail) for number, (*_, can_fail) in enumerate(made)]
    order = AdaptiveFilterOrder(steps, [selectivity for selectivity, *_ in made])

    def cost(one: FilterStep) -> float:
        return made[one.number][1]

    waiting, chosen = list(steps), []
    while waiting:
        chosen.append(order.choose_next(waiting, cost))
        waiting.remove(chosen[-1])
    assert order.in_order(steps, cost) == chosen
