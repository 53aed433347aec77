"""Which words a program's aggregates gather for each group."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from bamquery.engine.pipeline.instructions import AggregateKind, AggregateStep


class WordKind(enum.IntEnum):
    """What becomes of two states' words in one; the numbers are those of `cells.hpp`."""

    SUM = 0
    SUM_DOUBLES = 1
    LEAST = 2
    GREATEST = 3
    LOW_SUM = 4
    """Of low halves, which the next word has the high ones of: what is beyond 32 bits goes there."""


_VALUE_WORDS = {
    AggregateKind.COUNT: (),
    AggregateKind.SUM: (WordKind.LOW_SUM, WordKind.SUM),
    AggregateKind.SUM_DOUBLES: (WordKind.SUM_DOUBLES,),
    AggregateKind.LEAST: (WordKind.LEAST,),
    AggregateKind.LEAST_DOUBLE: (WordKind.LEAST,),
    AggregateKind.GREATEST: (WordKind.GREATEST,),
    AggregateKind.GREATEST_DOUBLE: (WordKind.GREATEST,),
}
MOST_WORDS = 48
"""Of a layout: kernels are given a list of so many."""


@dataclass(frozen=True, slots=True)
class CellPlace:
    """Where an aggregate's words are.

    Attributes:
        step: the aggregate.
        value: number of its first word; of a sum of whole numbers that of the low halves: the high ones' is
            next.
        width: how many words the value has; none where rows are counted.
        count: number of the word with the rows that counted.
    """

    step: AggregateStep
    value: int
    width: int
    count: int


class CellLayout:
    """Words of aggregates, in order. Word 0 counts a group's rows.

    Attributes:
        kinds: of each word.
        places: of each aggregate.
    """

    def __init__(self, steps: Sequence[AggregateStep], argument_nulls: Sequence[bool]) -> None:
        """`argument_nulls`: of each aggregate, whether its argument may be null."""
        self.kinds: list[WordKind] = [WordKind.SUM]
        self.places: list[CellPlace] = []
        counts: dict[tuple[int | None, int | None], int] = {(None, None): 0}
        for step, nullable in zip(steps, argument_nulls, strict=True):
            key = (step.argument if nullable else None, step.filter)
            if key not in counts:
                counts[key] = len(self.kinds)
                self.kinds.append(WordKind.SUM)
            value, own = len(self.kinds), _VALUE_WORDS[step.kind]
            self.kinds.extend(own)
            self.places.append(CellPlace(step, value, len(own), counts[key]))
        self.conditions = {word: key for key, word in counts.items() if word}
        """The argument that must be valid, and the flag that must be true, where a word counts rows."""


def pack_words(kinds: Sequence[WordKind], addresses: Sequence[int]) -> bytes:
    """A `Words` of group_cells.cu: where the column of each word is; of the kinds only, without addresses."""
    return struct.pack(
        f"<{MOST_WORDS}Q{MOST_WORDS}Bq",
        *(*addresses, *[0] * (MOST_WORDS - len(addresses))),
        *(*kinds, *[0] * (MOST_WORDS - len(kinds))),
        len(kinds),
    )
