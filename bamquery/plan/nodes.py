"""Logical plan nodes: what is asked for. How is decided by `bamquery.engine.lowering`.

A plan is a graph: a part that is wanted several times, such as a query that WITH names, is one node. What
is made of plans goes by nodes, not by ways to them, of which there may be any number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Protocol, TypeAlias

import pyarrow as pa

from bamquery.plan.expressions import AggregateCall, Expression
from bamquery.plan.expressions import SortKey as SortKey  # noqa: PLC0414 - plans speak of it, too
from bamquery.plan.windows import WindowCall
from bamquery.plan.working_table import WorkingTable

ROW_NUMBER: Final = "rowid"
"""What the column of a stored table's row numbers is called."""


class Source(Protocol):
    """What a scan reads: a stored table's version or files. The engine knows the kinds; plans do not."""

    @property
    def name(self) -> str:
        """As the statement calls it."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Columns it offers."""
        ...


@dataclass(frozen=True, slots=True)
class Field:
    """One output column of a node."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Scan:
    """Rows of a source for which all of `predicates` are true.

    `columns` are positions in the source's schema, in output order. `predicates` are a conjunction, and
    refer to positions in the *source's* schema, since a filter column need not be an output.
    """

    source: Source
    columns: tuple[int, ...]
    predicates: tuple[Expression, ...] = ()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The chosen columns."""
        schema = self.source.schema
        return tuple(Field(schema.field(i).name, schema.field(i).type) for i in self.columns)


@dataclass(frozen=True)
class SingleRow:
    """One row without columns: what `SELECT 1` reads."""

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """None."""
        return ()


@dataclass(frozen=True, eq=False)
class Values:
    """The rows of a batch that the statement itself contains: VALUES. Two are equal only if they are one."""

    batch: pa.RecordBatch

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The batch's columns."""
        return tuple(Field(f.name, f.type) for f in self.batch.schema)


@dataclass(frozen=True)
class Filter:
    """Rows of the child for which the predicate is true (not null, not false)."""

    child: Plan
    predicate: Expression

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The child's."""
        return self.child.fields


@dataclass(frozen=True)
class Project:
    """One column per expression."""

    child: Plan
    expressions: tuple[Expression, ...]
    names: tuple[str, ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Names with the expressions' types."""
        return tuple(Field(n, e.type) for n, e in zip(self.names, self.expressions, strict=True))


@dataclass(frozen=True)
class Aggregate:
    """One row per distinct value of `keys` (nulls are equal): the keys, then the aggregates.

    Without keys there is exactly one row, also of an empty child. With `sets`, positions of keys, there are
    the groups of each set in turn, in which the keys of other sets are null; a last column has the number of
    the set, and a set without keys has one row, also of an empty child.
    """

    child: Plan
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Keys, then aggregates, then the number of the set where there are sets."""
        types: list[pa.DataType] = [k.type for k in self.keys] + [a.type for a in self.aggregates]
        if self.sets:
            types.append(pa.int64())
        return tuple(Field(n, t) for n, t in zip(self.names, types, strict=True))


@dataclass(frozen=True)
class Sort:
    """The child's rows in order; only the first `limit` + `offset` are wanted where `limit` is set."""

    child: Plan
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The child's."""
        return self.child.fields


@dataclass(frozen=True)
class Limit:
    """At most `count` rows (all where None) after skipping `offset`."""

    child: Plan
    count: int | None
    offset: int = 0

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The child's."""
        return self.child.fields


JoinKind: TypeAlias = Literal[
    "inner", "left", "right", "full", "semi", "anti", "mark", "single", "asof", "asof_left"
]


@dataclass(frozen=True)
class Join:
    """Pairs of a row of `left` and one of `right` for which `condition`, over the columns of both, is true.

    Without a condition all pairs match. Kinds:

    - inner: the pairs.
    - left, right, full: also the rows of that side, or of both, without a partner, nulls in its place.
    - semi, anti: the rows of `left` with, and without, a partner.
    - mark: the rows of `left` and a boolean: true where the condition is true for some row of `right`, else
      null where it is null for some, else false.
    - single: as left; fails where a row has several partners.
    - asof, asof_left: of a row's partners the nearest only (`plan.asof_condition`); with asof_left
      also the rows of `left` without one.
    """

    left: Plan
    right: Plan
    kind: JoinKind
    condition: Expression | None = None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns of both sides; of the left one for semi and anti, and `mark` after them for mark."""
        if self.kind in ("semi", "anti"):
            return self.left.fields
        if self.kind == "mark":
            return (*self.left.fields, Field("mark", pa.bool_()))
        return (*self.left.fields, *self.right.fields)


@dataclass(frozen=True)
class Union:
    """The rows of two or more plans with columns of the same types, one plan's after the other's."""

    inputs: tuple[Plan, ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The first one's."""
        return self.inputs[0].fields


@dataclass(frozen=True)
class Repeat:
    """Each of the child's rows as often as its value of `count`, an int64, says; none for less than one."""

    child: Plan
    count: Expression

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The child's."""
        return self.child.fields


@dataclass(frozen=True)
class Sample:
    """Some of the child's rows, drawn at random: `percent` of them, or `count` where that is None.

    With a `seed` the same ones of the same rows each time; `by_run` draws runs of rows, which costs less.
    """

    child: Plan
    count: int = 0
    percent: float | None = None
    seed: int | None = None
    by_run: bool = False

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The child's."""
        return self.child.fields


@dataclass(frozen=True)
class Window:
    """The child's columns, then the calls' values for each row, in any order of rows.

    Each call looks at rows of the same partition (equal values of all of `partition`; nulls are equal), in
    the order of `order`.
    """

    child: Plan
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]
    names: tuple[str, ...]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The child's, then the calls'."""
        own = (Field(n, call.type) for n, call in zip(self.names, self.calls, strict=True))
        return (*self.child.fields, *own)


@dataclass(frozen=True)
class Recursion:
    """The rows of `first`, then those of `step` over them, then over those, until there are none.

    `step` scans `table`, whose rows are those of the step before. With `distinct` no row is given twice, and
    one that was given before is not part of a step's rows.
    """

    first: Plan
    step: Plan
    table: WorkingTable
    distinct: bool

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The first part's."""
        return self.first.fields


Plan: TypeAlias = (
    Scan
    | SingleRow
    | Values
    | Filter
    | Project
    | Aggregate
    | Sort
    | Limit
    | Join
    | Union
    | Repeat
    | Window
    | Sample
    | Recursion
)
