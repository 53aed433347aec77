"""What a device's join table may do itself: rows put together where they are, without pairs for the host."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, cast, runtime_checkable

from bamquery.engine.device import Frame, JoinTable
from bamquery.engine.operators.join.pairs import JoinCondition, PairCondition
from bamquery.errors import ExecutionError
from bamquery.plan.nodes import JoinKind

NullMarks: TypeAlias = Literal["none", "null keys", "all"]
"""Rows without a partner whose mark is null, not false."""


@dataclass(frozen=True, slots=True)
class DeviceJoin(Generic[Frame]):
    """What becomes of probe rows and their partners among build rows.

    Attributes:
        kind: of the join; any but asof and asof_left.
        build: the rows that the table was made of the keys of, with the columns that are wanted.
        condition: what pairs of equal keys must fulfil, too; None: nothing.
        null_marks: for a mark without such a condition. With one, a mark is null where the condition is
            null for some pair of the row and true for none.
    """

    kind: JoinKind
    build: Frame
    condition: PairCondition | None
    null_marks: NullMarks = "none"


class DeviceProbe(Protocol):
    """One join on a device; thread-safe."""

    def probe(self, frame: Any, keys: Any) -> Iterator[Any]:
        """What the rows of a frame become, in portions of one frame each; at least one, maybe without rows.

        Columns are those of `frame`, for semi and anti no others, for a mark a boolean one, else those of
        the build rows. Rows are in the order of the probe rows, and for one of these in that of the build
        rows. Build rows without a partner are not among them: see `unmatched_rows`.

        Args:
            frame: the probe rows.
            keys: theirs, as for `JoinTable.matches`.

        Raises:
            ExecutionError: the condition cannot be computed; of the kind single, a row has several partners.
        """
        ...

    def unmatched_rows(self) -> Any:
        """For right and full: the build rows, in order, that no row had as a partner so far."""
        ...


@runtime_checkable
class DeviceJoinTable(Protocol):
    """A `bamquery.engine.device.JoinTable` that joins by itself."""

    def start_join(self, work: DeviceJoin[Any]) -> DeviceProbe:
        """A join with the table's rows; a table may have several."""
        ...


def as_device_join_table(table: JoinTable[Any], condition: JoinCondition) -> DeviceJoinTable | None:
    """The table, if it can join by itself: with keys, and not for marks of several columns."""
    able = condition.probe_keys and not condition.compared
    return cast(DeviceJoinTable, table) if able and _joins_itself(type(table)) else None


@functools.lru_cache(maxsize=16)
def _joins_itself(kind: type[Any]) -> bool:
    return issubclass(kind, DeviceJoinTable)


def several_rows_error() -> ExecutionError:
    """The failure of a subquery that must have one row at most."""
    return ExecutionError(
        "a subquery that stands for one value gave several rows: add LIMIT 1 or an aggregate to it"
    )
