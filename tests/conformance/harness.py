"""Operators over rows in memory: random tables in awkward chunks, and runs that come back as tables."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import cycle
from typing import Any

import pyarrow as pa

from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.operator import Operator
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import ColumnRef
from bamquery.plan.nodes import Field
from tests.forced_forms import through_a_fragment
from tests.strategies import CHUNK_SIZES, array, scaled, specials
from tests.values import plain, same


class Rows(Operator[Any]):
    """A table's rows in chunks of the sizes given, over and over."""

    def __init__(self, table: pa.Table, sizes: Sequence[int] = CHUNK_SIZES) -> None:
        fields = tuple(Field(f.name, f.type) for f in table.schema)
        super().__init__(fields, (), OperatorProfile("Rows"))
        table = through_a_fragment(table)
        self._batch = table.combine_chunks().to_batches()[0] if table.num_rows else None
        self._sizes = sizes
        self.frames_given = 0
        self.closed = False

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        """The chunks."""
        try:
            start = 0
            for size in cycle(self._sizes) if self._batch is not None else ():
                if start >= self._batch.num_rows:
                    return
                self.frames_given += 1
                yield context.device.from_arrow(self._batch.slice(start, size))
                start += size
        finally:
            self.closed = True


class Forever(Operator[Any]):
    """The same batch without end, until somebody closes it."""

    def __init__(
        self, batch: pa.RecordBatch, before_each: Callable[[int], None] = lambda given: None
    ) -> None:
        super().__init__(tuple(Field(f.name, f.type) for f in batch.schema), (), OperatorProfile("Forever"))
        self._batch = batch
        self._before_each = before_each
        self.frames_given = 0
        self.closed = False

    def produce(self, context: ExecutionContext[Any]) -> Generator[Any, None, None]:
        """The batch."""
        try:
            while True:
                self._before_each(self.frames_given)
                self.frames_given += 1
                yield context.device.from_arrow(self._batch)
        finally:
            self.closed = True


def run(operator: Operator[Any], device: Device[Any], **settings: object) -> pa.Table:
    """All rows of an operator."""
    with ExecutionContext(device, Settings().with_values({"threads": 2, **settings})) as context:
        batches = [device.to_arrow(frame, operator.fields) for frame in operator.frames(context)]
    schema = pa.schema([(field.name, field.type) for field in operator.fields])
    return pa.Table.from_batches(batches, schema)


def pool(kind: pa.DataType, generator: random.Random) -> list[Any]:
    """Values to draw from: special ones, and a few random ones that come again."""
    plain_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    chosen = specials(plain_kind)
    if pa.types.is_integer(plain_kind):
        low = 0 if pa.types.is_unsigned_integer(plain_kind) else -100
        chosen += [generator.randint(low, 100) for _ in range(8)]
    elif pa.types.is_decimal(plain_kind):
        chosen += [scaled(generator.randint(-9, 9), plain_kind.scale) for _ in range(8)]
    elif pa.types.is_floating(plain_kind):
        chosen += [generator.randint(-1000, 1000) / 8 for _ in range(8)]
    return chosen


def random_column(kind: pa.DataType, rows: int, seed: int, values: Sequence[Any] | None = None) -> pa.Array:
    """A column with nulls, drawn from a pool."""
    generator = random.Random(f"{kind} {seed}")
    chosen = [*(values if values is not None else pool(kind, generator)), None]
    return array(generator.choices(chosen, k=rows), kind)


def random_table(kinds: Iterable[pa.DataType], rows: int, seed: int = 0) -> pa.Table:
    """Columns a, b, c, ... of the types, and `row`, their position."""
    columns = [random_column(kind, rows, seed + i) for i, kind in enumerate(kinds)]
    names = [chr(ord("a") + i) for i in range(len(columns))]
    return pa.table([*columns, pa.array(range(rows), pa.int64())], names=[*names, "row"])


def reference(table: pa.Table, name: str) -> ColumnRef:
    """A column of the table."""
    index = table.column_names.index(name)
    return ColumnRef(index, name, table.schema.field(index).type)


def assert_same(ours: pa.Table, theirs: pa.Table, tolerance: float = 0.0) -> None:
    """Equal values, row by row."""
    assert ours.num_rows == theirs.num_rows
    assert ours.num_columns == theirs.num_columns
    for name, mine, other in zip(ours.column_names, ours.columns, theirs.columns, strict=True):
        pairs = zip(plain(mine), plain(other), strict=True)
        for row, (a, b) in enumerate(pairs):
            assert same(a, b, tolerance), f"{name}, row {row}: {a!r}, DuckDB gives {b!r}"
