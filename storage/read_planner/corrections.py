"""Costs corrected by what earlier chunks of the same scan took."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from bamquery.storage.read_planner.cost_model import Cost, CostModel, Resource
from bamquery.storage.read_planner.strategy import Strategy

if TYPE_CHECKING:
    from bamquery.storage.read_planner.planner import Choice

_LEAST: Final = 0.5
_MOST: Final = 2.0
"""Rates were measured: what is farther off than that has another reason, such as another process."""
_PRIOR_S: Final = 1e-4
"""Of reads that were as expected, before there was any: what small reads take says little of large ones."""
_ENOUGH_S: Final = 2 * _PRIOR_S
_ENOUGH: Final = 1 / 8
"""Of a read's seconds, those of reads that tell of it."""
_FADE: Final = 0.5
"""What earlier chunks count for beside the next one."""

_Key: TypeAlias = "tuple[Strategy, Resource | None]"


class Corrections:
    """Measured seconds over predicted ones, by strategy and what it spends most on. Thread-safe."""

    def __init__(self, model: CostModel | None = None) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._seen: dict[_Key, tuple[float, float]] = {}
        """Predicted and measured seconds; the last chunks count most."""
        self._factors: dict[_Key, float] = {}
        """What comes of these."""

    def learn(self, reads: Sequence[Choice], seconds: float) -> None:
        """Note what reads of one strategy took together, which is shared out by what was expected of each."""
        if self._model is None:
            return
        costs = [read.predicted for read in reads]
        expected = self._model.seconds(costs)
        if not expected or seconds <= 0:
            return
        key = self._key(reads[0].strategy, costs)
        with self._lock:
            predicted, measured = self._seen.get(key, (_PRIOR_S, _PRIOR_S))
            predicted, measured = _FADE * predicted + expected, _FADE * measured + seconds
            self._seen[key] = (predicted, measured)
            self._factors[key] = min(max(measured / predicted, _LEAST), _MOST)

    def apply(self, strategy: Strategy, predicted: Cost) -> Cost:
        """A cost, corrected.

        In all it consists of: what a read took is as much as its scarcest resource took, and at least as much
        as any other did.
        """
        if self._model is None:
            return predicted
        factor = self._factors.get(self._key(strategy, (predicted,)), 1.0)
        latency, link, commands, work, carried = predicted
        return factor * latency, factor * link, factor * commands, factor * work, factor * carried

    def factor(self, strategy: Strategy, resource: Resource | None) -> float:
        """Measured over predicted; 1 where nothing is known. Resource None: of a device without overlap."""
        return self._factors.get((strategy, resource), 1.0)

    def choose_untried(self, chosen: Choice, others: Sequence[Choice]) -> Choice | None:
        """Another way that nobody has tried, and that may yet be the cheaper one: rates can be as far off."""
        if self._model is None or not self._is_tried(chosen):
            return None
        model, best = self._model, None
        for other in others:
            fastest = other.host_seconds + _LEAST * model.seconds((other.predicted,))
            if fastest >= chosen.host_seconds + chosen.cost_seconds or self._is_tried(other):
                continue
            if best is None or other.cost_seconds < best.cost_seconds:
                best = other
        return best

    def _is_tried(self, choice: Choice) -> bool:
        """Whether by reads that were large enough to say something of this one."""
        assert self._model is not None
        key = self._key(choice.strategy, (choice.predicted,))
        enough = max(_ENOUGH_S, _ENOUGH * self._model.seconds((choice.predicted,)))
        with self._lock:
            return self._seen.get(key, (0.0, 0.0))[0] >= enough

    def _key(self, strategy: Strategy, costs: Sequence[Cost]) -> _Key:
        """Of reads together."""
        assert self._model is not None
        return strategy, self._model.scarcest(_sum(costs)) if self._model.overlaps else None


NO_CORRECTIONS: Final = Corrections()
"""Nothing was seen, and nothing is noted."""


def _sum(costs: Sequence[Cost]) -> Cost:
    latency, link, commands, work, carried = (sum(values) for values in zip(*costs, strict=True))
    return latency, link, commands, work, carried
