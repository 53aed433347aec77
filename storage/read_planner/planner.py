"""How to read columns for some rows: stream, fetch vectors or fetch blocks, by what they cost together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.read_planner.corrections import NO_CORRECTIONS, Corrections
from bamquery.storage.read_planner.cost_model import Cost, CostModel, ReadDemand
from bamquery.storage.read_planner.strategy import Strategy

__all__ = ["VERIFIED_FIRST", "Choice", "Demands", "Strategy", "plan_reads", "total_seconds"]

VERIFIED_FIRST: Final = 0.9
"""Blocks cannot be compared with checksums: they must cost at most so much of what can be."""
_PICKED: Final = 0.99
"""To pick nearly all vectors is no better than a stream, of which nothing need be listed."""
_ENUMERATED: Final = 8
"""Columns whose strategies are tried in all combinations; of more, one after the other."""

Demands: TypeAlias = "Mapping[Strategy, ReadDemand]"
"""What one column's read takes by each strategy that is open to it."""


@dataclass(slots=True)
class Choice:
    """How a column is to be read, and what that should cost.

    Attributes:
        strategy: the way.
        demand: what it asks for.
        predicted: by the measured rates alone, seconds of each resource.
        cost: the same, corrected by what earlier chunks took.
        cost_seconds: for this column alone.
        host_seconds: to start it.
    """

    strategy: Strategy
    demand: ReadDemand
    predicted: Cost
    cost: Cost
    cost_seconds: float
    host_seconds: float = 0.0

    @property
    def bytes(self) -> int:
        """Of all blocks."""
        return self.demand.bytes

    @property
    def commands(self) -> int:
        """That fetch them."""
        return self.demand.commands


def plan_reads(
    columns: Sequence[Demands],
    model: CostModel,
    corrections: Corrections = NO_CORRECTIONS,
    *,
    verified_first: bool = True,
    explores: bool = False,
) -> list[Choice]:
    """The ways that together cost least: columns of one fetch share bandwidth, commands and processors.

    Up to eight columns are tried in all combinations of their strategies; of more, each begins with what is
    cheapest alone, and the one change that saves most is made until none does.

    Args:
        columns: to be read together.
        model: what things cost.
        corrections: by what they took so far.
        verified_first: whether blocks must be clearly cheaper than what can be verified.
        explores: whether a way that no chunk has tried may be taken where it could be the best one.
    """
    options = [_choices(demands, model, corrections) for demands in columns]
    prices = [
        [_price(choice, model, verified_first=verified_first) for choice in choices] for choices in options
    ]
    picked = _greedy(prices, model) if len(columns) > _ENUMERATED else _enumerate(prices, model)
    chosen = [choices[place] for choices, place in zip(options, picked, strict=True)]
    if explores:
        chosen = [
            corrections.choose_untried(one, choices) or one
            for one, choices in zip(chosen, options, strict=True)
        ]
    return chosen


def total_seconds(choices: Sequence[Choice], model: CostModel) -> float:
    """What reads that were planned together should take together."""
    return model.seconds(choice.cost for choice in choices)


def _choices(demands: Demands, model: CostModel, corrections: Corrections) -> list[Choice]:
    found = []
    for strategy, demand in demands.items():
        predicted = model.cost(demand)
        cost = corrections.apply(strategy, predicted)
        seconds = model.seconds((cost,))
        found.append(Choice(strategy, demand, predicted, cost, seconds, model.host_seconds(demand)))
    return found


def _price(choice: Choice, model: CostModel, *, verified_first: bool) -> Cost:
    """A cost to choose by: that blocks are not compared with checksums is no saving.

    What it takes to start a read goes with each resource, so that it adds to whichever is the scarcest.
    """
    latency, *shared = choice.cost
    link, commands, work, carried = (seconds + choice.host_seconds for seconds in shared)
    if choice.strategy is Strategy.FETCH_BLOCKS and verified_first:
        work += choice.demand.bytes / model.processor.checksum
        dear = 1 / VERIFIED_FIRST
    elif choice.strategy is Strategy.FETCH_VECTORS:
        dear = 1 / _PICKED
    else:
        dear = 1.0
    return dear * latency, dear * link, dear * commands, dear * work, dear * carried


def _enumerate(prices: Sequence[Sequence[Cost]], model: CostModel) -> list[int]:
    if not prices:
        return []
    if len(prices) == 1:
        seconds = [model.seconds((price,)) for price in prices[0]]
        return [seconds.index(min(seconds))]
    latency, others = _sums(prices, model)
    total = latency + (others.max(0) if model.overlaps else others.sum(0))
    # Of equal sums the first: the simplest strategies.
    best = np.unravel_index(int(total.argmin()), total.shape)
    return [int(place) for place in best]


def _sums(
    prices: Sequence[Sequence[Cost]], model: CostModel
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of all combinations, an axis a column: latencies, and sums of each other resource."""
    latency = np.zeros(())
    others = np.zeros((len(prices[0][0]) - 1,))
    for choices in prices:
        found = np.array(choices)
        latency = latency[..., None]
        latency = np.maximum(latency, found[:, 0]) if model.together else latency + found[:, 0]
        others = others[..., None] + found[:, 1:].T.reshape(-1, *[1] * (others.ndim - 1), len(choices))
    return latency, others


def _greedy(prices: Sequence[Sequence[Cost]], model: CostModel) -> list[int]:
    picked = [min(range(len(c)), key=lambda i, c=c: model.seconds((c[i],))) for c in prices]  # type: ignore[misc]
    best = model.seconds(c[i] for c, i in zip(prices, picked, strict=True))
    while True:
        changed = None
        for column, choices in enumerate(prices):
            for place in range(len(choices)):
                tried = [*picked[:column], place, *picked[column + 1 :]]
                seconds = model.seconds(c[i] for c, i in zip(prices, tried, strict=True))
                if seconds < best:
                    best, changed = seconds, tried
        if changed is None:
            return picked
        picked = changed
