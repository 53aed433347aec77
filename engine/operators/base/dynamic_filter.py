"""Conditions that are known only while a query runs: what one operator learns, another one reads less by.

A join knows the keys of its build side before the probe side is read; the first rows of an order tell what
later rows must beat. `Operator.push_dynamic_filter` takes such a filter down to the scans that can use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.plan.expressions import Call, Cast, ColumnRef, Expression, Literal, Members
from bamquery.plan.format import format_expression
from bamquery.plan.rules.narrow_comparisons import narrow_comparison

_SHOWN_VALUES: Final = 3


@dataclass(frozen=True, slots=True)
class DynamicCondition:
    """`value function literals`, a comparison or `in`; `or_null`: rows whose value is null are wanted, too.

    Without a function only those are. With `members`, `value IN members`, whose bounds the literals are.
    """

    function: str | None
    literals: tuple[Literal, ...] = ()
    or_null: bool = False
    members: Members | None = None

    def as_expression(self, value: Expression) -> Expression:
        """The condition on a value, which is compared in the type of its column where that is possible."""
        is_null = Call("is_null", (value,), pa.bool_())
        if self.function is None:
            return is_null
        if self.members is not None:
            narrowed = _cast_to_column_type(value, self.members)
            if narrowed is None:
                low, high = self.literals
                bounds = DynamicCondition("greater_equal", (low,)), DynamicCondition("less_equal", (high,))
                both = Call("and", tuple(bound.as_expression(value) for bound in bounds), pa.bool_())
                return Call("or", (both, is_null), pa.bool_()) if self.or_null else both
            found: Expression = Call("in", narrowed, pa.bool_())
        else:
            found = narrow_comparison(Call(self.function, (value, *self.literals), pa.bool_()))
        if not self.or_null:
            return found
        return Call(
            "or", (found, Call("is_null", (column_under_casts(value) or value,), pa.bool_())), pa.bool_()
        )

    def text(self, column: str) -> str:
        """For people."""
        suffix = f" OR {column} IS NULL" if self.or_null else ""
        if self.function is None:
            return f"{column} IS NULL"
        if self.members is not None:
            return f"{column} IN ({self.members.text}){suffix}"
        if self.function == "in" and len(self.literals) > _SHOWN_VALUES:
            return f"{column} IN ({len(self.literals):,} values){suffix}"
        reference = ColumnRef(0, column, self.literals[0].type)
        return format_expression(Call(self.function, (reference, *self.literals), pa.bool_())) + suffix


def _cast_to_column_type(value: Expression, members: Members) -> tuple[Expression, Members] | None:
    """Both in the type of the value's column; None where it has no values for them, or other ones."""
    if not isinstance(value, Cast) or value.try_:
        return value, members
    kind: Any = value.argument.type
    if pa.types.is_dictionary(kind) and kind.value_type == members.type:
        return value, members
    if not (pa.types.is_integer(kind) and pa.types.is_integer(members.type)):
        return None
    import pyarrow.compute as pc  # noqa: PLC0415 (not before there are members)

    from bamquery.storage.statistics.late_values import plain_values  # noqa: PLC0415 (as above)

    found: Any = plain_values(members.values)
    wrapped = pc.cast(found, kind, safe=False)
    same = pc.equal(pc.cast(wrapped, members.type, safe=False), found)
    signed = pc.equal(pc.less(wrapped, pa.scalar(0, kind)), pc.less(found, pa.scalar(0, members.type)))
    return value.argument, Members(pc.filter(wrapped, pc.and_(same, signed)))


class DynamicFilter:
    """A conjunction on one value, empty until who makes it knows more.

    Attributes:
        source: who makes it, for people.
        moves: whether it becomes narrower while rows are read; else it is final before the first one is.
        joins: how many it was taken down through. One of each of many joins, through all below it, would cost
            more than the scans could save.
    """

    def __init__(self, source: str, *, moves: bool = False) -> None:
        self.source: Final = source
        self.moves: Final = moves
        self.joins = 0
        self._conditions: tuple[DynamicCondition, ...] = ()

    @property
    def conditions(self) -> tuple[DynamicCondition, ...]:
        """All must be true of the value. One that has other conditions later is another tuple then."""
        return self._conditions

    def set_conditions(self, conditions: Sequence[DynamicCondition]) -> None:
        """Rows for which these are not all true are not wanted any more. Seen by other threads at once."""
        self._conditions = tuple(conditions)


def column_under_casts(expression: Expression) -> ColumnRef | None:
    """The column that the expression is, or that it is a cast of; None for anything else."""
    while isinstance(expression, Cast) and not expression.try_:
        expression = expression.argument
    return expression if isinstance(expression, ColumnRef) else None


def has_ordered_bounds(kind: pa.DataType) -> bool:
    """Whether zone maps have bounds of the type, in the order that min and max have."""
    if types.is_interval(kind):
        return False
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )
