"""How alike two strings are, byte by byte, as DuckDB counts.

rapidfuzz counts, but for long strings: it holds Python's lock for as long as a pair of strings takes, so it
cannot be stopped in the middle. There each byte of a text is a step, at which a query can be.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Implementation
from bamquery.engine.cpu.value_kernels import per_value, pieces
from bamquery.engine.execution.string_limits import require_room
from bamquery.statement_context.cancellation import check_cancelled

_BOOST_ABOVE: Final = 0.7
_PREFIX_WEIGHT: Final = 0.1
_PREFIX: Final = 4
_CELLS: Final = 1 << 22
"""Pairs of bytes that are compared before it is asked again whether the query goes on."""
_MOMENT: Final = 1 << 14
"""Pairs of bytes that rapidfuzz compares in less time than it is worth to ask whether the query goes on."""
_STEP: Final = 64
"""Cells for which Python's own work on a byte counts."""


def _steps(text: bytes, width: int) -> Iterator[tuple[int, int]]:
    """Each byte and its number from 0, one after another as long as the query goes on.

    Raises:
        CancelledError: it does not.
    """
    every = max(_CELLS // max(width, 1), 1)
    for number, byte in enumerate(text):
        if number % every == 0:
            check_cancelled()
        yield number, byte


def _strip_common_ends(a: bytes, b: bytes) -> tuple[bytes, bytes]:
    """The strings without what both begin and end with, which costs no edit."""
    shorter = min(len(a), len(b))
    start = _common(a[:shorter], b[:shorter])
    a, b, shorter = a[start:], b[start:], shorter - start
    end = _common(a[len(a) - shorter :][::-1], b[len(b) - shorter :][::-1])
    return a[: len(a) - end], b[: len(b) - end]


def _common(a: bytes, b: bytes) -> int:
    """How many bytes two strings of one length have in common from the first on."""
    if a == b:
        return len(a)
    differ = np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8)
    return int(np.argmax(differ))


def _levenshtein(a: bytes, b: bytes) -> int:
    """Insertions, deletions and replacements from one to the other.

    A row of the table of distances at once, as bits of whether it rises or falls from cell to cell: Hyyrö,
    "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances" (2003), figure 3.
    """
    a, b = _strip_common_ends(a, b)
    if not a or not b:
        return len(a) + len(b)
    places = _places(a)
    all_rows, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    rises, falls, distance = all_rows, 0, len(a)
    for _, byte in _steps(b, len(a) // 8 + _STEP):
        equal = places.get(byte, 0)
        diagonal = ((((equal & rises) + rises) ^ rises) | equal | falls) & all_rows
        more = falls | (all_rows ^ (diagonal | rises))
        less = rises & diagonal
        distance += bool(more & last) - bool(less & last)
        more, less = ((more << 1) | 1) & all_rows, (less << 1) & all_rows
        rises = less | (all_rows ^ (diagonal | more))
        falls = more & diagonal
    return distance


def _places(text: bytes) -> dict[int, int]:
    """For each byte the places where it stands, as bits."""
    found: dict[int, int] = {}
    stands = np.frombuffer(text, np.uint8)
    for byte in set(text):
        check_cancelled()
        bits = np.packbits(stands == byte, bitorder="little")
        found[byte] = int.from_bytes(bits.tobytes(), "little")
    return found


def _damerau_levenshtein(a: bytes, b: bytes) -> int:
    """As `_levenshtein`, with transpositions of neighbours, also where something comes between them.

    Lowrance and Wagner, "An Extension of the String-to-String Correction Problem" (1975), a row at once: what
    depends on the cell before it is a running minimum.
    """
    a, b = _strip_common_ends(a, b)
    if not a or not b:
        return len(a) + len(b)
    if len(a) < len(b):
        a, b = b, a
    width, far = len(b), len(a) + len(b)
    numbers = np.arange(width + 1, dtype=np.int32)
    bytes_of_b = np.frombuffer(b, np.uint8)
    kinds = np.array(sorted(set[int]().union(*pieces(b))), np.uint8)
    numbers_of = np.zeros(256, np.intp)
    numbers_of[kinds] = np.arange(len(kinds))
    kind_of = numbers_of[bytes_of_b]
    require_room("damerau_levenshtein()", 8 * len(kinds) * width, 1)
    number_of = {int(byte): number for number, byte in enumerate(kinds)}
    # Of each different byte of b: what was above its last row in a, moved by one place, and which row.
    last_row = np.zeros(len(kinds), np.int32)
    before = np.full((len(kinds), width + 2), far, np.int32)
    matches: dict[int, NDArray[np.int32]] = {}
    above = numbers.copy()
    for i, one in _steps(a, width):
        if one not in matches:
            stands = np.where(bytes_of_b == one, numbers[1:], 0)
            matches[one] = np.concatenate([[0], np.maximum.accumulate(stands)[:-1]]).astype(np.int32)
        column_before = matches[one]
        swapped = before[kind_of, column_before]
        check_cancelled()
        swapped += i - last_row[kind_of]
        swapped += numbers[1:] - column_before
        check_cancelled()
        row = np.empty(width + 1, np.int32)
        row[0] = i + 1
        np.minimum(above[:-1] + (bytes_of_b != one), above[1:] + 1, out=row[1:])
        np.minimum(row[1:], swapped, out=row[1:])
        check_cancelled()
        row = np.minimum.accumulate(row - numbers) + numbers
        number = number_of.get(one)
        if number is not None:
            last_row[number] = i + 1
            before[number, 1:] = above
        above = row
    return int(above[-1])


def _mismatches(a: bytes, b: bytes) -> int:
    if len(a) != len(b) or not a:
        raise ValueError("hamming() and mismatches() need two strings of equal length, not empty")
    return int(_library("Hamming.distance")(a, b))


def _jaccard(a: bytes, b: bytes) -> float:
    """Bytes in both among bytes in either."""
    if not a or not b:
        raise ValueError("jaccard() needs strings that are not empty")
    ones, others = (set[int]().union(*pieces(text)) for text in (a, b))
    return len(ones & others) / len(ones | others)


def _jaro(a: bytes, b: bytes) -> float:
    """Each byte's places in b are taken from the first on, so that no place is looked at twice."""
    if not a or not b:
        return 0.0
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    places: dict[int, list[int]] = {}
    for j, other in _steps(b, _STEP):
        places.setdefault(other, []).append(j)
    free = {byte: iter(found) for byte, found in places.items()}
    following = {byte: next(found) for byte, found in free.items()}
    matched: list[int] = []
    taken: list[int] = []
    for i, one in _steps(a, _STEP):
        place = following.get(one)
        while place is not None and place < i - reach:
            place = next(free[one], None)
        if place is not None and place <= i + reach:
            matched.append(one)
            taken.append(place)
            place = next(free[one], None)
        if place is None:
            following.pop(one, None)
        else:
            following[one] = place
    if not matched:
        return 0.0
    moved = sum(one != b[place] for one, place in zip(matched, sorted(taken), strict=True)) // 2
    count = len(matched)
    return (count / len(a) + count / len(b) + (count - moved) / count) / 3.0


def _jaro_winkler(a: bytes, b: bytes) -> float:
    """As `_jaro`, more for a common beginning."""
    alike = _jaro(a, b)
    if alike <= _BOOST_ABOVE:
        return alike
    prefix = 0
    for one, other in zip(a[:_PREFIX], b[:_PREFIX], strict=False):
        if one != other:
            break
        prefix += 1
    return alike + prefix * _PREFIX_WEIGHT * (1.0 - alike)


@functools.cache
def _library(measure: str) -> Callable[[bytes, bytes], Any]:
    """A function of rapidfuzz, which is imported now: few queries ask for one."""
    module, _, function = measure.rpartition(".")
    counted: Callable[[bytes, bytes], Any] = getattr(
        importlib.import_module(f"rapidfuzz.distance.{module}"), function
    )
    return counted


def _rapidfuzz_function(measure: str, most: int, in_steps: Callable[[bytes, bytes], Any]) -> Implementation:
    """A function of rapidfuzz; in steps where it would have more than `most` pairs of bytes to compare.

    So many take it a tenth of a second or two, within which no query can be stopped.
    """

    def compare(a: bytes, b: bytes) -> Any:
        pairs = len(a) * len(b)
        if pairs > _MOMENT:
            check_cancelled()
        # To rapidfuzz two empty strings are alike, to DuckDB nothing is like an empty one.
        return _library(measure)(a, b) if 0 < pairs <= most else in_steps(a, b)

    return _bytewise(compare)


def _bytewise(function: Callable[[bytes, bytes], Any]) -> Implementation:
    return per_value(lambda a, b: function(a.encode(), b.encode()))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "levenshtein": _rapidfuzz_function("Levenshtein.distance", 1 << 26, _levenshtein),
        "damerau_levenshtein": _rapidfuzz_function(
            "DamerauLevenshtein.distance", 1 << 23, _damerau_levenshtein
        ),
        "hamming": _bytewise(_mismatches),
        "jaccard": _bytewise(_jaccard),
        "jaro_similarity": _rapidfuzz_function("Jaro.similarity", 1 << 26, _jaro),
        "jaro_winkler_similarity": _rapidfuzz_function("JaroWinkler.similarity", 1 << 26, _jaro_winkler),
    }
)
