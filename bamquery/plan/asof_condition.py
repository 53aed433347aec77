"""What an ASOF join compares: keys that are equal, and one pair of values of which the nearest is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bamquery.plan.expressions import Call, Expression, referenced_columns
from bamquery.plan.rewriting import conjuncts

_TURNED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "less": "greater",
        "less_equal": "greater_equal",
        "greater": "less",
        "greater_equal": "less_equal",
    }
)


@dataclass(frozen=True, slots=True)
class AsofCondition:
    """A condition over the columns of both sides, taken apart.

    Attributes:
        keys: the left side's value, the right side's, and whether nulls are equal.
        inequality: what `left` is compared with `right` by; the right side's nearest value is wanted.
        left: over the left side's columns.
        right: over the columns of both sides.
    """

    keys: tuple[tuple[Expression, Expression, bool], ...]
    inequality: str
    left: Expression
    right: Expression


def asof_condition(condition: Expression, width: int) -> AsofCondition:
    """The condition of an ASOF join whose left side has `width` columns.

    Raises:
        ValueError: it is not made of equalities between the sides and one inequality.
    """
    keys: list[tuple[Expression, Expression, bool]] = []
    inequalities: list[tuple[str, Expression, Expression]] = []
    for conjunct in conjuncts(condition):
        sides = _sides(conjunct, width)
        if sides is None:
            raise ValueError("ASOF JOIN takes only comparisons of a value of one side with one of the other")
        function, left, right = sides
        if function in _TURNED:
            inequalities.append(sides)
        else:
            keys.append((left, right, function == "is_not_distinct_from"))
    if len(inequalities) != 1:
        raise ValueError(f"ASOF JOIN needs one of >=, >, <= and < in its condition, not {len(inequalities)}")
    return AsofCondition(tuple(keys), *inequalities[0])


def _sides(conjunct: Expression, width: int) -> tuple[str, Expression, Expression] | None:
    """The comparison with the left side's value on the left; None where it is something else."""
    if not isinstance(conjunct, Call) or conjunct.function not in {*_TURNED, "equal", "is_not_distinct_from"}:
        return None
    one, other = conjunct.arguments
    for function, left, right in (
        (conjunct.function, one, other),
        (_TURNED.get(conjunct.function, conjunct.function), other, one),
    ):
        of_left, of_right = referenced_columns(left), referenced_columns(right)
        if of_left and of_right and max(of_left) < width <= min(of_right):
            return function, left, right
    return None
