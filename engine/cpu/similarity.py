"""How alike two texts are, byte by byte, as DuckDB counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from bamquery.engine.cpu.kernels import Implementation
from bamquery.engine.cpu.rows import per_value

_BOOST_ABOVE: Final = 0.7
_PREFIX_WEIGHT: Final = 0.1
_PREFIX: Final = 4


def _levenshtein(a: bytes, b: bytes) -> int:
    """Insertions, deletions and replacements from one to the other."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (one != other))
    return row[-1]


def _damerau_levenshtein(a: bytes, b: bytes) -> int:
    """As `_levenshtein`, with transpositions of neighbours, also where something comes between them."""
    far = len(a) + len(b)
    rows: list[list[int]] = [[far] * (len(b) + 2), [far, *range(len(b) + 1)]]
    last_row: dict[int, int] = {}
    for i, one in enumerate(a, 1):
        last_match = 0
        row = [far, i]
        for j, other in enumerate(b, 1):
            row_before, column_before = last_row.get(other, 0), last_match
            cost = int(one != other)
            if not cost:
                last_match = j
            swapped = rows[row_before][column_before] + (i - row_before - 1) + 1 + (j - column_before - 1)
            row.append(min(rows[i][j] + cost, row[j] + 1, rows[i][j + 1] + 1, swapped))
        rows.append(row)
        last_row[one] = i
    return rows[-1][-1]


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
    for i, one in enumerate(a):
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
