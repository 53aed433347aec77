"""How alike two texts are, byte by byte, as DuckDB counts."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from bamquery.cancellation import check_cancelled
from bamquery.engine.cpu.kernels import Implementation
from bamquery.engine.cpu.rows import per_value

_BOOST_ABOVE: Final = 0.7
_PREFIX_WEIGHT: Final = 0.1
_PREFIX: Final = 4
_CELLS: Final = 1 << 18
"""Pairs of bytes that are compared before it is asked again whether the query goes on."""


def _by_row(text: bytes, width: int) -> Iterator[tuple[int, int]]:
    """Each byte and its number from 0, one after another as long as the query goes on.

    Raises:
        CancelledError: it does not.
    """
    every = max(_CELLS // max(width, 1), 1)
    for number, byte in enumerate(text):
        if number % every == 0:
            check_cancelled()
        yield number, byte


def _levenshtein(a: bytes, b: bytes) -> int:
    """Insertions, deletions and replacements from one to the other."""
    row = list(range(len(b) + 1))
    for i, one in _by_row(a, len(b)):
        corner, row[0] = row[0], i + 1
        for j, other in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (one != other))
    return row[-1]


def _damerau_levenshtein(a: bytes, b: bytes) -> int:
    """As `_levenshtein`, with transpositions of neighbours, also where something comes between them."""
    far = len(a) + len(b)
    no_row = (0, array("q", [far]) * (len(b) + 2))
    above = array("q", [far, *range(len(b) + 1)])
    before_last: dict[int, tuple[int, array[int]]] = {}  # a byte's last row, and what was above it
    for i, one in _by_row(a, len(b)):
        last_match = 0
        row = array("q", [far, i + 1])
        for j, other in enumerate(b, 1):
            (last_row, before), column_before = before_last.get(other, no_row), last_match
            cost = int(one != other)
            if not cost:
                last_match = j
            swapped = before[column_before] + (i - last_row) + 1 + (j - column_before - 1)
            row.append(min(above[j] + cost, row[j] + 1, above[j + 1] + 1, swapped))
        before_last[one] = i + 1, above
        above = row
    return int(above[-1])


def _mismatches(a: bytes, b: bytes) -> int:
    if len(a) != len(b) or not a:
        raise ValueError("hamming() and mismatches() need two texts of equal length, not empty")
    return sum(one != other for one, other in zip(a, b, strict=True))


def _jaccard(a: bytes, b: bytes) -> float:
    """Bytes in both among bytes in either."""
    if not a or not b:
        raise ValueError("jaccard() needs texts that are not empty")
    return len(set(a) & set(b)) / len(set(a) | set(b))


def _jaro(a: bytes, b: bytes) -> float:
    if not a or not b:
        return 0.0
    reach = max(max(len(a), len(b)) // 2 - 1, 0)
    taken = [False] * len(b)
    matched: list[int] = []
    for i, one in _by_row(a, min(2 * reach, len(b))):
        for j in range(max(i - reach, 0), min(i + reach + 1, len(b))):
            if not taken[j] and b[j] == one:
                taken[j] = True
                matched.append(one)
                break
    if not matched:
        return 0.0
    others = [other for other, used in zip(b, taken, strict=True) if used]
    moved = sum(one != other for one, other in zip(matched, others, strict=True)) // 2
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


def _of_bytes(function: Callable[[bytes, bytes], Any]) -> Implementation:
    return per_value(lambda a, b: function(a.encode(), b.encode()))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "levenshtein": _of_bytes(_levenshtein),
        "damerau_levenshtein": _of_bytes(_damerau_levenshtein),
        "hamming": _of_bytes(_mismatches),
        "jaccard": _of_bytes(_jaccard),
        "jaro_similarity": _of_bytes(_jaro),
        "jaro_winkler_similarity": _of_bytes(_jaro_winkler),
    }
)
