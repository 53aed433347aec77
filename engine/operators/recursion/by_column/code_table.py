"""Different numbers, each with its place among them: a hash table in numpy's arrays, or a table by number.

Both are looked into and filled by a few calls for all numbers of a step.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.statement_context.cancellation import check_cancelled

Codes: TypeAlias = NDArray[np.int64]
"""Numbers from 0 on."""

_MULTIPLIER: Final = np.array(0x9E3779B97F4A7C15, np.uint64)
"""2**64 over the golden ratio: Fibonacci hashing."""
_SLOTS_OF_CODE: Final = 4
"""At least so many slots for each number: most are found at the first look."""
_LEAST_BITS: Final = 10
_SPARSE: Final = 8
"""Slots of a table by number for each number that is there, or else it is hashed."""
_SMALL: Final = 1 << 16
"""Slots of a table by number that are worth it for few numbers too."""


class CodeTable:
    """Numbers in the order in which they came, each once.

    Slots have a number's place, counted from 1 on; 0: the slot is empty.
    """

    def __init__(self, span: int) -> None:
        """`span`: numbers are below it."""
        self._span = span
        self._known: Codes = np.full(1 << _LEAST_BITS, -1, np.int64)  # from place 1 on
        self._count = 0
        self._is_direct = False
        self._slots: NDArray[np.int32]
        self._make_slots(0)

    def __len__(self) -> int:
        return self._count

    @property
    def codes(self) -> Codes:
        """All numbers, in order."""
        return self._known[1 : self._count + 1]

    @property
    def nbytes(self) -> int:
        """Memory for all."""
        return self._known.nbytes + self._slots.nbytes

    def nbytes_with(self, more: int) -> int:
        """Memory at most, once there are so many more, and while they are put in."""
        size, wanted = self.nbytes, self._count + more + 1
        if wanted > len(self._known):
            size += 8 * max(2 * len(self._known), wanted)
        if not self._is_direct and _SLOTS_OF_CODE * wanted > len(self._slots):
            size += 4 * max(_slots_for(wanted), _SPARSE * wanted)
        return size

    def places(self, codes: Codes) -> NDArray[np.int32]:
        """The place of each, counted from 1 on; 0: it is not there."""
        if self._is_direct:
            return self._slots[codes]
        slots = self._slots_of(codes)
        places: NDArray[np.int32] = self._slots[slots]
        other = ((self._known[places] != codes) & (places != 0)).nonzero()[0]
        step = 0
        while len(other):
            step += 1
            slots[other] = (slots[other] + step) & (len(self._slots) - 1)
            found = self._slots[slots[other]]
            places[other] = found
            other = other[(self._known[found] != codes[other]) & (found != 0)]
        return places

    def add(self, codes: Codes) -> NDArray[np.int64] | None:
        """Put in numbers; where those are that are new, the first of several equal ones; None: all are."""
        if self._count + len(codes) >= 1 << 31:
            raise OverflowError("places have 31 bits")
        self._make_room(len(codes))
        new = self._add_direct(codes) if self._is_direct else self._add_hashed(codes)
        added = codes if new is None else codes[new]
        self._known[self._count + 1 : self._count + 1 + len(added)] = added
        self._count += len(added)
        return new

    def _add_direct(self, codes: Codes) -> NDArray[np.int64] | None:
        absent: NDArray[np.int64] = (self._slots[codes] == 0).nonzero()[0]
        wanted = codes if len(absent) == len(codes) else codes[absent]
        places = self._claim(wanted)
        first = self._slots[wanted] == places
        if first.all():
            return None if len(wanted) == len(codes) else absent
        firsts: NDArray[np.int64] = first.nonzero()[0]
        self._slots[wanted[firsts]] = self._next_places(len(firsts))
        return absent[firsts]

    def _add_hashed(self, codes: Codes) -> NDArray[np.int64] | None:
        """Each number that is not there takes an empty slot, unless one that is before it has taken it."""
        rows = len(codes)
        slots = self._slots_of(codes)
        # For now as if all were new, so that equal ones among them are seen, too.
        self._known[self._count + 1 : self._count + 1 + rows] = codes
        places = self._next_places(rows)
        left = None  # all
        step = 0
        while True:
            looked = slots if left is None else slots[left]
            empty = (self._slots[looked] == 0).nonzero()[0]
            if len(empty):
                own = places if left is None else places[left]
                # Of several that want a slot the first has it: what is assigned last stays.
                self._slots[looked[empty][::-1]] = own[empty][::-1]
            wanted = codes if left is None else codes[left]
            other = (self._known[self._slots[looked]] != wanted).nonzero()[0]
            if not len(other):
                break
            check_cancelled()
            left = other if left is None else left[other]
            step += 1
            slots[left] = (slots[left] + step) & (len(self._slots) - 1)
        is_new = self._slots[slots] == places
        if is_new.all():
            return None
        new: NDArray[np.int64] = is_new.nonzero()[0]
        self._slots[slots[new]] = self._next_places(len(new))
        return new

    def _claim(self, codes: Codes) -> NDArray[np.int32]:
        """Write the place that each would have to its slot; of several equal ones the first stays."""
        places = self._next_places(len(codes))
        self._slots[codes[::-1]] = places[::-1]
        return places

    def _next_places(self, count: int) -> NDArray[np.int32]:
        return np.arange(self._count + 1, self._count + 1 + count, dtype=np.int32)

    def _slots_of(self, codes: Codes) -> Codes:
        hashed: Any = codes.view(np.uint64) * _MULTIPLIER
        found: Codes = (hashed >> self._shift).view(np.int64)
        return found

    def _make_room(self, more: int) -> None:
        wanted = self._count + more + 1
        if wanted > len(self._known):
            grown = np.full(max(2 * len(self._known), wanted), -1, np.int64)
            grown[: self._count + 1] = self._known[: self._count + 1]
            self._known = grown
        if not self._is_direct and _SLOTS_OF_CODE * wanted > len(self._slots):
            self._make_slots(more)

    def _make_slots(self, more: int) -> None:
        wanted = self._count + more + 1
        if self._span <= max(_SPARSE * wanted, _SMALL):
            self._is_direct = True
            self._slots = np.zeros(self._span, np.int32)
            self._slots[self.codes] = np.arange(1, self._count + 1, dtype=np.int32)
            return
        slots = _slots_for(wanted)
        self._shift = np.array(65 - slots.bit_length(), np.uint64)
        self._slots = np.zeros(slots, np.int32)
        if self._count:
            codes, self._count = self.codes.copy(), 0
            self._add_hashed(codes)
            self._count = len(codes)


def _slots_for(count: int) -> int:
    """Of a hash table that has room for as many numbers again."""
    return 1 << max((2 * _SLOTS_OF_CODE * count).bit_length() - 1, _LEAST_BITS)
