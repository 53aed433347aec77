"""Numbers that stand for values where only their order counts: of 8 bytes, however long the values are."""

from __future__ import annotations

from dataclasses import dataclass

import pylibcudf as plc
from pylibcudf.types import NullOrder, Order

from bamquery.engine.cuda.kernels import Kernels, Operand
from bamquery.engine.cuda.vectors import Vector
from bamquery.engine.cuda.windows.partitions import changes


@dataclass(frozen=True)
class Ranks:
    """Values by their order.

    Attributes:
        numbers: of each value, from 0 on, equal for equal ones; nulls have the last one.
        values: the different values in order.
    """

    numbers: Vector
    values: plc.Column


def ranked(kernels: Kernels, operand: Operand) -> Ranks:
    """The ranks of a column of at least one value."""
    column = operand.datum
    assert isinstance(column, plc.Column)
    order = plc.sorting.stable_sorted_order(
        plc.Table([column]), [Order.ASCENDING], [NullOrder.AFTER], stream=kernels.stream, mr=kernels.memory
    )
    (in_order,) = kernels.gather([column], order)
    begins = changes(kernels, [Operand(operand.kind, in_order)], column.size())
    steps = begins.numbers().totals().slice(1, column.size() + 1) - 1
    numbers = kernels.scatter(steps.column, order, steps.column)
    return Ranks(Vector(kernels, numbers), kernels.gather([in_order], begins.places().column)[0])
