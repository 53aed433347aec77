"""What the read planner expected, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PlannedSeconds:
    """What reads were expected to take, and what they took: times of several threads are added up."""

    expected: float = 0.0
    taken: float = 0.0

    def add(self, expected: float, taken: float) -> None:
        """One more read."""
        self.expected += expected
        self.taken += taken
