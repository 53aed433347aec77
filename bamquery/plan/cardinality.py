"""How many rows a plan is likely to give: enough to tell the large side of a join from the small one."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias, cast

from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, referenced_columns
from bamquery.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Recursion,
    Scan,
    SingleRow,
    Sort,
    Source,
    Union,
    Values,
)
from bamquery.plan.rewriting import conjunction, conjuncts, renumber

UNKNOWN_ROWS: Final = 1_000_000.0
_EQUALITY: Final = 0.05
_CONDITION: Final = 0.3
_STEPS: Final = 10.0
_BOUNDS: Final = frozenset({"less", "less_equal", "greater", "greater_equal"})
_MOST_ROWS: Final = 1e100
"""More are not told apart. Infinitely many could not be compared: joins would be ordered anew each time."""
_GROUPS: Final = 0.1
"""Share of the rows that are the first of their group."""


class CountedSource(Protocol):
    """A source that knows how many rows it has."""

    @property
    def rows(self) -> int | None:
        """Rows; None where that is not known before they are read."""
        ...


class DescribedSource(Protocol):
    """A source that knows something of its values."""

    def share(self, predicate: Expression) -> float | None:
        """About which share of the rows fulfils a condition; None where that is not known."""
        ...

    def span(self, column: int) -> float | None:
        """How many values there are from a column's least to its greatest; None where that is not known."""
        ...


def _as_described_source(source: Source) -> DescribedSource | None:
    # What isinstance asks of a protocol takes as long as the rest of a guess.
    told = hasattr(source, "share") and hasattr(source, "span")
    return cast(DescribedSource, source) if told else None


def _source_rows(source: Source) -> int | None:
    return cast(CountedSource, source).rows if hasattr(source, "rows") else None


@dataclass(frozen=True, slots=True)
class Domain:
    """Where the values of a column come from.

    Attributes:
        span: how many values there are from the least to the greatest.
        rows: of the table, without any condition.
    """

    span: float
    rows: float

    @property
    def values(self) -> float:
        """How many different ones there are at most."""
        return max(min(self.span, self.rows), 1.0)

    @property
    def is_dense(self) -> bool:
        """Whether there are enough rows for nearly every value to be there."""
        return 2 * self.span <= self.rows


def _common(domains: Sequence[Domain]) -> float:
    """How many values the two sides of an equality come from.

    Where neither has them all, they are keys of the smaller table, to which rows of the other one refer.
    """
    values = [domain.values for domain in domains]
    return max(values) if any(domain.is_dense for domain in domains) else min(values)


_SHARED: Final = f"{__name__}.shared"
"""Of a node: its guess, once somebody has asked."""


class _Estimates(threading.local):
    """What a thread guessed within `remember_estimates`, by the identity of plans, which are kept alive."""

    rows: dict[int, tuple[Plan, float]] | None = None
    domains: dict[tuple[int, int], Domain | None] | None = None


_guesses = _Estimates()


@contextmanager
def remember_estimates() -> Iterator[None]:
    """Guess the rows of each plan once: who looks at all joins of a plan asks again and again."""
    if _guesses.rows is not None:
        yield
        return
    _guesses.rows, _guesses.domains = {}, {}
    try:
        yield
    finally:
        _guesses.rows = _guesses.domains = None


def share_estimates(plan: Plan, made: Plan) -> None:
    """Let two nodes have one guess: of the same constants, over the same versions of the same tables."""
    made.__dict__[_SHARED] = plan.__dict__.setdefault(_SHARED, [])


def estimated_rows(plan: Plan) -> float:
    """A guess of the number of rows, at least 1 but for plans that give none for certain."""
    shared: list[float] | None = plan.__dict__.get(_SHARED)
    if shared:
        return shared[0]
    known = _guesses.rows
    if known is None:
        return min(_estimate_rows(plan), _MOST_ROWS)
    found = known.get(id(plan))
    if found is None:
        found = known[id(plan)] = (plan, min(_estimate_rows(plan), _MOST_ROWS))
    if shared is not None:
        shared.append(found[1])
    return found[1]


def _estimate_rows(plan: Plan) -> float:
    match plan:
        case Scan():
            return _estimate_scan(plan)
        case SingleRow():
            return 1.0
        case Values(batch=batch):
            return float(batch.num_rows)
        case Filter(child=child, predicate=predicate):
            return _filtered_rows(estimated_rows(child), conjuncts(predicate))
        case Aggregate(child=child, keys=keys):
            return _groups(child, keys)
        case Sort(child=child, limit=limit) | Limit(child=child, count=limit):
            rows = estimated_rows(child)
            return rows if limit is None else min(rows, float(limit))
        case Recursion(first=first):
            return _STEPS * estimated_rows(first)
        case Union(inputs=inputs):
            return sum(map(estimated_rows, inputs))
        case Join():
            return _estimate_join(plan)
        case _:  # nodes that give about as many rows as they take
            return estimated_rows(plan.child)


def _estimate_join(plan: Join) -> float:
    left = estimated_rows(plan.left)
    if plan.kind in ("mark", "single", "asof", "asof_left"):
        return left
    right = estimated_rows(plan.right)
    conditions = [] if plan.condition is None else conjuncts(plan.condition)
    width = len(plan.left.fields)

    def domains(side: Expression) -> Domain | None:
        read = referenced_columns(side)
        if read and all(index >= width for index in read):
            return domain_of(plan.right, renumber(side, {i: i - width for i in read}))
        return domain_of(plan.left, side)

    if plan.kind in ("semi", "anti"):
        share = _matched_share(right, conditions, domains)
        return max(left * (share if plan.kind == "semi" else 1.0 - share), 1.0)
    pairs = joined_rows(left, right, conditions, domains)
    return max(pairs, {"left": left, "right": right, "full": left + right}.get(plan.kind, 1.0))


Domains: TypeAlias = Callable[[Expression], Domain | None]


def joined_rows(
    left: float, right: float, conditions: Sequence[Expression], domains: Domains = lambda _: None
) -> float:
    """Pairs of an inner join whose keys are spread evenly, those of one side being among those of the other.

    `domains` tells of one side of an equality where its values come from. Where nobody knows, each row of the
    larger side has one partner.
    """
    return paired_rows(left, right, [compared_values(conjunct, domains) for conjunct in conditions])


def compared_values(conjunct: Expression, domains: Domains) -> float | None:
    """How many values the sides of an equality come from, 0 where nobody knows; None for other conditions."""
    if not is_equality(conjunct):
        return None
    found = _domains(conjunct, domains)
    return _common(found) if found else 0.0


def paired_rows(left: float, right: float, compared: Sequence[float | None]) -> float:
    """As `joined_rows`, of what `compared_values` says of the conditions."""
    keyed = [values for values in compared if values is not None]
    share = _CONDITION ** (len(compared) - len(keyed))
    counts = [values for values in keyed if values]
    if not counts:
        pairs = max(left, right) if keyed else min(left * right, _MOST_ROWS)
    else:
        pairs = left * right / max(counts)
        if len(keyed) > 1:  # keys of several columns depend on each other: most often they are one side's own
            pairs = min(pairs, max(left, right))
        pairs = min(max(pairs, 1.0), _MOST_ROWS)
    return max(pairs * share, 1.0)


def _domains(equality: Expression, domains: Domains) -> list[Domain]:
    assert isinstance(equality, Call)
    return [found for side in equality.arguments if (found := domains(side)) is not None]


def _matched_share(right: float, conditions: Sequence[Expression], domains: Domains) -> float:
    """The share of rows that have a partner among `right` ones."""
    shares = []
    for conjunct in conditions:
        if isinstance(conjunct, Call) and is_equality(conjunct):
            found = _domains(conjunct, domains)
            if found:
                shares.append(min(right / max(domain.values for domain in found), 1.0))
    return min(shares, default=_CONDITION)


def domain_of(plan: Plan, value: Expression) -> Domain | None:
    """Where the values of an expression over a plan's rows come from; None where that is not known."""
    while isinstance(value, Cast):
        value = value.argument
    if not isinstance(value, ColumnRef):
        return None
    known = _guesses.domains
    if known is None or _guesses.rows is None:
        return _domain_of(plan, value)
    key = id(plan), value.index
    if key not in known:
        estimated_rows(plan)  # holds the plan, so that no other one has its number
        known[key] = _domain_of(plan, value)
    return known[key]


def _domain_of(plan: Plan, value: ColumnRef) -> Domain | None:
    match plan:
        case Scan(source=source, columns=columns):
            described, rows = _as_described_source(source), _source_rows(source)
            span = None if described is None else described.span(columns[value.index])
            return None if span is None or rows is None else Domain(span, float(rows))
        case Filter(child=child) | Sort(child=child) | Limit(child=child):
            return domain_of(child, value)
        case Project(child=child, expressions=expressions):
            return domain_of(child, expressions[value.index])
        case Aggregate(child=child, keys=keys) if value.index < len(keys):
            return domain_of(child, keys[value.index])
        case Join(left=left, right=right):
            width = len(left.fields)
            if value.index < width:
                return domain_of(left, value)
            if value.index < len(plan.fields) and plan.kind not in ("mark", "semi", "anti"):
                return domain_of(right, replace(value, index=value.index - width))
            return None
        case _:
            return None


def _estimate_scan(plan: Scan) -> float:
    source = plan.source
    counted = _source_rows(source)
    rows = UNKNOWN_ROWS if counted is None else float(counted)
    for predicate in _merge_bounds(plan.predicates):
        rows *= _selectivity(predicate, source)
    return max(rows, 1.0)


def _merge_bounds(predicates: Sequence[Expression]) -> list[Expression]:
    """A conjunction's conjuncts; bounds of one column as one, since they are not independent."""
    found: list[Expression] = []
    bounds: dict[int, list[Expression]] = {}
    for conjunct in (conjunct for predicate in predicates for conjunct in conjuncts(predicate)):
        match conjunct:
            case Call(function=function, arguments=(ColumnRef(index=index), Literal())) if (
                function in _BOUNDS
            ):
                bounds.setdefault(index, []).append(conjunct)
            case _:
                found.append(conjunct)
    return found + [conjunction(those) for those in bounds.values()]


def _selectivity(predicate: Expression, source: Source) -> float:
    """The share of a source's rows that fulfil a condition, its conjuncts being independent of each other."""
    described = _as_described_source(source)
    found = None if described is None else described.share(predicate)
    if found is not None:
        return found
    if described is not None and isinstance(predicate, Call):
        match predicate.function:
            case "and":
                return math.prod(_selectivity(argument, source) for argument in predicate.arguments)
            case "or":
                return min(sum(_selectivity(argument, source) for argument in predicate.arguments), 1.0)
    return _EQUALITY if is_equality(predicate) else _CONDITION


def _groups(child: Plan, keys: Sequence[Expression]) -> float:
    rows = estimated_rows(child)
    if not keys:
        return 1.0
    known = [found.values for key in keys if (found := domain_of(child, key)) is not None]
    if len(known) < len(keys):
        return max(rows * _GROUPS, 1.0)
    return max(min(math.prod(known), rows), 1.0)


def _filtered_rows(rows: float, predicates: list[Expression]) -> float:
    for predicate in predicates:
        rows *= _EQUALITY if is_equality(predicate) else _CONDITION
    return max(rows, 1.0)


def is_equality(predicate: Expression) -> bool:
    """Whether it says that two values are equal."""
    return isinstance(predicate, Call) and predicate.function in ("equal", "is_not_distinct_from")
