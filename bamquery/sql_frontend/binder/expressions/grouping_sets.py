"""GROUP BY terms to grouping sets: which expressions make groups, and which of them in which set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product
from typing import Final

import pyarrow as pa
from sqlglot import exp

from bamquery.plan.expressions import Call, ColumnRef, Expression
from bamquery.sql_frontend.functions.operators import BOOLEAN, literal
from bamquery.statement_context.limits import statement_limits

KEY_PLACE: Final = 1 << 39
"""Columns from here on stand for keys of grouping sets: no plan has so many columns."""

INTEGER: Final = pa.int64()
_MOST_BITS: Final = 63
_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)

Terms = tuple[exp.Expr, ...]


def has_sets(group: exp.Group) -> bool:
    """Whether GROUP BY names more than one set of keys."""
    return any(isinstance(term, _SETS) for term in group.expressions)


def terms_of_sets(group: exp.Group) -> list[Terms]:
    """The terms of each grouping set, in the order written; sets of several constructs are combined.

    Raises:
        ValueError: there are too many sets.
    """
    sets: list[Terms] = [()]
    for term in group.expressions:
        own = _sets(term)
        _check_number(len(sets) * len(own))
        sets = [tuple(chain(*pair)) for pair in product(sets, own)]
    return sets


def _check_number(sets: int) -> None:
    most = statement_limits().max_grouping_sets
    if sets > most:
        raise ValueError(
            f"GROUP BY makes more than max_grouping_sets, {most:,}, grouping sets: name those that "
            "are wanted by GROUPING SETS, or SET max_grouping_sets to more"
        )


def terms_in_order(group: exp.Group) -> list[exp.Expr]:
    """All terms as they are written, each as often as it is."""

    def leaves(term: exp.Expr) -> list[exp.Expr]:
        if isinstance(term, _SETS):
            return [leaf for member in term.expressions for leaf in leaves(member)]
        return list(_members(term))

    return [leaf for term in group.expressions for leaf in leaves(term)]


def plain_terms(group: exp.Group) -> list[exp.Expr]:
    """The terms of a GROUP BY without sets; () stands for none."""
    return [term for term in group.expressions if not (isinstance(term, exp.Tuple) and not term.expressions)]


def grouping_number(
    arguments: Sequence[Expression],
    keys: Sequence[Expression],
    sets: Sequence[Sequence[int]],
    place: ColumnRef,
) -> Expression:
    """GROUPING(arguments): a bit for each, the last the lowest, set where a row's set is without it.

    Without arguments it is about all keys. `place` is the column with the number of the row's set.

    Raises:
        ValueError: an argument is not grouped by, nothing is, or there are more bits than the number holds.
    """
    if not keys:
        raise ValueError("GROUPING() needs something to group by")
    positions = [] if arguments else list(range(len(keys)))
    for argument in arguments:
        position = key_position(argument, keys)
        if position is None:
            raise ValueError("GROUPING() takes what is grouped by")
        positions.append(position)
    if len(positions) > _MOST_BITS:
        raise ValueError(f"GROUPING() of {len(positions)} terms: its number holds {_MOST_BITS}")
    values = [_bits(positions, members) for members in sets]
    if not values:
        return literal(0, INTEGER)
    branches: list[Expression] = []
    for number, value in enumerate(values[:-1]):
        is_set = Call("equal", (place, literal(number, INTEGER)), BOOLEAN)
        branches += [is_set, literal(value, INTEGER)]
    if not branches:
        return literal(values[0], INTEGER)
    return Call("case", (*branches, literal(values[-1], INTEGER)), INTEGER)


def key_position(expression: Expression, keys: Sequence[Expression]) -> int | None:
    """Which key an expression is, or stands for; the last of equal ones, as in DuckDB; None if it is none."""
    if isinstance(expression, ColumnRef) and KEY_PLACE <= expression.index < KEY_PLACE + len(keys):
        return expression.index - KEY_PLACE
    found = [place for place, key in enumerate(keys) if key == expression]
    return found[-1] if found else None


def _bits(positions: Sequence[int], members: Sequence[int]) -> int:
    bits = 0
    for position in positions:
        bits = bits << 1 | (position not in members)
    return bits


def _sets(term: exp.Expr) -> list[Terms]:
    if isinstance(term, exp.GroupingSets):
        return [terms for member in term.expressions for terms in _sets(member)]
    members = [_members(member) for member in term.expressions] if isinstance(term, _SETS) else []
    if isinstance(term, exp.Rollup):
        return [tuple(chain(*members[:count])) for count in range(len(members), -1, -1)]
    if isinstance(term, exp.Cube):
        _check_number(2 ** len(members))
        counts = range(len(members), -1, -1)
        return [tuple(chain(*some)) for count in counts for some in combinations(members, count)]
    return [_members(term)]


def _members(term: exp.Expr) -> Terms:
    """What a term in parentheses stands for."""
    if isinstance(term, exp.Tuple):
        return tuple(term.expressions)
    return (term.this,) if isinstance(term, exp.Paren) else (term,)
