"""Grouping sets: every row once for each set."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Final, Generic

import pyarrow as pa

from bamquery.engine.device import Frame
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.plan.expressions import ColumnRef, Expression, Literal
from bamquery.plan.nodes import Field

SET_NUMBER: Final = Field("grouping set", pa.int64())


class ExpandGroupingSets(Operator[Frame], Generic[Frame]):
    """The child's columns, then the keys, null where a set is without them, then the set's number.

    A grouping by those keys and the number makes the groups of all sets, with whatever aggregates.
    """

    def __init__(
        self,
        child: Operator[Frame],
        keys: Sequence[Expression],
        key_fields: Sequence[Field],
        sets: Sequence[Sequence[int]],
    ) -> None:
        fields = (*child.fields, *key_fields, SET_NUMBER)
        super().__init__(fields, (child,), OperatorProfile("Expand sets", {"sets": len(sets)}))
        self._keys = tuple(keys)
        self._sets = tuple(tuple(members) for members in sets)

    def produce(self, context: ExecutionContext[Frame]) -> Generator[Frame, None, None]:
        """Each frame once for each set."""
        device = context.device
        given = self.children[0].fields
        columns = [ColumnRef(i, field.name, field.type) for i, field in enumerate(self.fields[:-1])]
        with closing(self.children[0].frames(context)) as frames:
            for frame in frames:
                computed = device.join_columns([frame, device.evaluate(self._keys, frame)])
                for number, members in enumerate(self._sets):
                    keys = [
                        column if i in members else Literal(pa.scalar(None, column.type))
                        for i, column in enumerate(columns[len(given) :])
                    ]
                    own = Literal(pa.scalar(number, SET_NUMBER.type))
                    yield device.evaluate([*columns[: len(given)], *keys, own], computed)
