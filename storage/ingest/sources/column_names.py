"""Columns of one name in a source get names of their own, by DuckDB's two rules."""

from __future__ import annotations

from collections.abc import Sequence

from bamquery.text.identifiers import fold_case, unique_names


def names_in_object(names: Sequence[str]) -> list[str]:
    """Columns of a frame, table or stream: a second `a` becomes the first of a_1, a_2, … that is free."""
    return unique_names(names)


def names_in_file(names: Sequence[str]) -> list[str]:
    """Columns of a file: a second `a` becomes a_1, but a_1_1 where there was an `a_1` before it."""
    copies: dict[str, int] = {}
    result = []
    for name in names:
        unique = name
        while (folded := fold_case(unique)) in copies:
            copies[folded] += 1
            unique = f"{unique}_{copies[folded]}"
        copies[folded] = 0
        result.append(unique)
    return result
