"""Numbers that stand for values where only their order counts: of 8 bytes, however long the values are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order

from bamquery.engine.cuda.comparisons import is_distinct_from
from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.vectors import Mask, Vector
from bamquery.engine.windows.partitions import running_numbers


@dataclass(frozen=True)
class Ranks:
    """Values by their order.

    Attributes:
        numbers: of each value, from 0 on, equal for equal ones; nulls have the last one.
        values: the different values in order.
    """

    numbers: Vector
    values: plc.Column


def rank_values(kernels: Kernels, operand: Operand) -> Ranks:
    """The ranks of a column of at least one value."""
    column = operand.datum
    assert isinstance(column, plc.Column)
    order = plc.sorting.stable_sorted_order(
        plc.Table([column]), [Order.ASCENDING], [NullOrder.AFTER], stream=kernels.stream, mr=kernels.memory
    )
    (in_order,) = kernels.gather([column], order)
    begins = changes_of(kernels, [Operand(operand.kind, in_order)], column.size())
    steps = running_numbers(begins)
    numbers = kernels.scatter(steps.column, order, steps.column)
    return Ranks(Vector(kernels, numbers), kernels.gather([in_order], begins.places().column)[0])


def changes_of(kernels: Kernels, columns: Sequence[Operand], rows: int) -> Mask:
    """Whether each of at least one row differs from the one before, where nulls are equal; the first does."""
    first = kernels.repeat_scalar(kernels.truth(True), 1)
    if rows == 1:
        return Mask(kernels, first)
    found = Mask.full(kernels, False, rows - 1)
    for operand in columns:
        column = operand.datum
        assert isinstance(column, plc.Column)
        sides = (kernels.slice_column(column, 0, rows - 1), kernels.slice_column(column, 1, rows))
        before, here = (Operand(operand.kind, side) for side in sides)
        found |= Mask(kernels, is_distinct_from(kernels, before, here))
    return Mask(kernels, kernels.concatenate([first, found.column]))
