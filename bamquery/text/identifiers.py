"""Names as SQL sees them: compared without regard to case, shown as written."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def fold_case(name: str) -> str:
    """The form in which two spellings of one name are equal (DuckDB: case-insensitive)."""
    return name.casefold()


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` is most likely a misspelling of, or None where none is close."""
    by_folded = {fold_case(candidate): candidate for candidate in candidates}
    matches = difflib.get_close_matches(fold_case(name), by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """`` Did you mean "x"?`` for an error message, or an empty string."""
    found = nearest(name, candidates)
    return f' Did you mean "{found}"?' if found is not None else ""


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with `_1`, `_2`, ... after those that are there already, as DuckDB does."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    result = []
    for name in names:
        unique, number = name, numbers.get(fold_case(name), 0)  # those up to it are taken
        while fold_case(unique) in taken:
            number += 1
            unique = f"{name}_{number}"
        numbers[fold_case(name)] = number
        taken.add(fold_case(unique))
        result.append(unique)
    return result
