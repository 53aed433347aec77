"""What the operators ask of a device: the seam between physical plans and the machines that run them.

A frame is a number of rows with columns in the order of an operator's `fields`, addressed by position. It
lives in the device's memory and means nothing to operators: Arrow record batches on the CPU, pylibcudf
columns on a GPU. Types are Arrow types; Arrow *values* cross the seam in `from_arrow`, `from_columns` and
`to_arrow` only, row positions that a device has found in `read_positions`.

Every method may be called from several threads at once and leaves its arguments unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.plan.expressions import AggregateCall, Expression, Members
from bamquery.plan.nodes import Field, SortKey, Window

if TYPE_CHECKING:
    from bamquery.engine.capabilities import Capabilities
    from bamquery.storage.encodings.packed.selection import PackedSelection

Frame = TypeVar("Frame")
Frame_contra = TypeVar("Frame_contra", contravariant=True)


HostPositions: TypeAlias = NDArray[np.int64]
"""Row positions in the host's memory: what operators compute with."""


class Positions(Protocol):
    """Row positions where a device has them, to be handed on. Those of the host are positions, too."""

    def __len__(self) -> int: ...


class GroupState(Protocol):
    """Aggregates in the making: opaque to operators, which merge states and account for their memory."""

    @property
    def groups(self) -> int:
        """Groups held."""
        ...

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        ...


State = TypeVar("State", bound=GroupState)


@dataclass(frozen=True, slots=True)
class RestOfPartition:
    """What calls over a window have to know of a partition of which a frame has only some rows, in a row.

    Positions count from the frame's first row, so the partition begins at `-rows_before`.

    Attributes:
        groups_before: groups of peers before the first row's.
        peers_before: of `rows_before`, the peers of the frame's first row.
        peers_after: of `rows_after`, the peers of the frame's last row.
        before: for each call the state that `aggregation([], [call])` makes of all rows before, where a frame
            reaches there.
        after: likewise of all rows after.
    """

    rows_before: int = 0
    rows_after: int = 0
    groups_before: int = 0
    peers_before: int = 0
    peers_after: int = 0
    before: Sequence[Any] = ()
    after: Sequence[Any] = ()


class Aggregation(Protocol[Frame, State]):
    """Keys and aggregate calls, prepared for a device.

    Rows become states (`partial`), states become fewer states (`merge`), and the last one becomes the
    answer (`final`). `merge` is associative in the order given, so `first` and `last` follow the rows'
    order where states are merged in that order.
    """

    @property
    def keys(self) -> tuple[Expression, ...]:
        """What rows are grouped by."""
        ...

    @property
    def calls(self) -> tuple[AggregateCall, ...]:
        """The aggregate calls."""
        ...

    @property
    def program(self) -> str | None:
        """For profiles: how much of it a program computes; None where the device has none."""
        ...

    def partial(self, frame: Frame) -> State:
        """The state of one frame's rows; of a frame without rows too.

        Raises:
            ExecutionError: a key, argument or filter cannot be computed.
            MemoryLimitError: they are too large for so many rows at once.
        """
        ...

    def merge(self, states: Sequence[State], *, repeated: bool = False) -> State:
        """One state for one or more, in the rows' order; `repeated`: even one may have a key more than once.

        Raises:
            ExecutionError: an exact sum does not fit its type.
        """
        ...

    def split(self, state: State, count: int, level: int, *, apart: bool = False) -> Sequence[State]:
        """The groups in `count` (a power of two, 256 at most) states, by their keys.

        Equal keys of any two states of one query go to the same place, so that places can be merged and
        finished each on its own. At another `level`, from 0 to 5, groups that were in one place go to
        different ones. `apart`: each state should have memory of its own where that is not slow, since the
        others will be let go of before it.
        """
        ...

    def rollup(self, state: State, keys: Sequence[int], number: int) -> State:
        """The groups by some of the keys; the other keys are null, and the number is one key more, the last.

        The state may be one that this has made, with those keys at least.
        """
        ...

    def to_arrow(self, state: State) -> pa.RecordBatch:
        """The state of at least one group, one row a group, for `from_arrow` of the same aggregation."""
        ...

    def from_arrow(self, batch: pa.RecordBatch) -> State:
        """The state that a batch was made from; from those of several states one that has keys repeatedly."""
        ...

    def value_count(self, state: State, call: int) -> int:
        """Values in the state of a call that gathers them (`plan.functions` says which do)."""
        ...

    def values(self, state: State, call: int, start: int, length: int) -> Frame:
        """At most `length` of a call's gathered values, from number `start` on, group by group, as rows.

        Columns are the keys, then the call's arguments and sort keys, none with a dictionary. A group's
        rows come in the order in which they came; those that no answer of the call needs are left out.
        """
        ...

    def drop_values(self, state: State, calls: Sequence[int]) -> State:
        """The same groups, those calls' gathered values left out, as of groups of which no row counts.

        Calls of the same arguments, filter and order may share their values: all or none of them are given.
        """
        ...

    def final(self, state: State) -> Frame:
        """Keys, then aggregates, one row a group; one row where there are no keys.

        Raises:
            ExecutionError: an exact sum does not fit its type.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ConditionProgram:
    """A condition as a program of the native interpreter.

    Attributes:
        native: the program.
        columns: those of the condition's frame that are its inputs.
        types: of the inputs.
        note_failure: to be called where it could not compute some rows.
    """

    native: Any
    columns: tuple[int, ...]
    types: tuple[pa.DataType, ...]
    note_failure: Callable[[], None]


@runtime_checkable
class ProgramDevice(Protocol):
    """A device whose programs run in the host's native interpreter."""

    def condition_program(self, condition: Expression) -> ConditionProgram | None:
        """The condition's program; None where it has none that reads nothing but columns."""
        ...

    def number_set(self, members: Members) -> Any:
        """A native set of them; None where they are no whole numbers."""
        ...


def has_programs(device: Device[Any]) -> TypeGuard[ProgramDevice]:
    """Whether it is a `ProgramDevice`."""
    return _has_programs(type(device))


@functools.lru_cache(maxsize=16)
def _has_programs(kind: type[Any]) -> bool:
    return issubclass(kind, ProgramDevice)  # to look for methods takes longer than to plan a chunk


class JoinTable(Protocol[Frame_contra]):
    """Rows of one side of a join, prepared to be found by their keys. Thread-safe."""

    @property
    def nbytes(self) -> int:
        """Device memory held, the keys left out."""
        ...

    def matches(self, keys: Frame_contra) -> Iterator[tuple[int, HostPositions, HostPositions]]:
        """Pairs of equal keys, in portions that can be dealt with at once.

        Each portion is `(stop, positions, found)`: all pairs of the rows of `keys` before `stop` that were
        not in an earlier one, as ascending positions in `keys` and positions of prepared rows. The last
        `stop` is the number of rows of `keys`.
        """
        ...


class Device(Protocol[Frame]):
    """One place where frames live and expressions are computed."""

    @property
    def name(self) -> str:
        """`cpu` or `cuda:0`, as settings, plans and profiles spell it."""
        ...

    @property
    def task_size(self) -> int:
        """How many times as many rows as on a processor make a chunk worth what starting costs."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do: asked once a plan, before the first read."""
        ...

    # Frames in and out.

    def from_arrow(self, batch: pa.RecordBatch) -> Frame:
        """The batch's columns in the device's memory."""
        ...

    def from_columns(self, columns: Sequence[pa.Array[Any] | PackedSelection]) -> Frame:
        """What a scan has read: one or more columns of one length, in the device's memory.

        Columns are packed only where `Capabilities.takes_encoded` says that the device takes such.
        """
        ...

    def to_arrow(self, frame: Frame, fields: Sequence[Field]) -> pa.RecordBatch:
        """A batch with the fields' names and types."""
        ...

    def empty(self, fields: Sequence[Field]) -> Frame:
        """No rows, columns of the fields' types."""
        ...

    def single_row(self) -> Frame:
        """One row without columns."""
        ...

    def row_count(self, frame: Frame) -> int:
        """Rows, also of a frame without columns."""
        ...

    def nbytes(self, frame: Frame) -> int:
        """Device memory that the frame's rows occupy; a slice counts its own rows only."""
        ...

    def string_bytes(self, frame: Frame) -> int:
        """Bytes of the strings and binaries themselves in all columns, offsets left out; nulls have none.

        Of a dictionary column on a CPU each as often as it stands. Profiles count with it.
        """
        ...

    def row_width(self, frame: Frame) -> int:
        """Bytes of a copy of any of its rows, the strings and binaries themselves left out."""
        ...

    def longest_string(self, frame: Frame) -> int:
        """Bytes of the strings and binaries of any of its rows at most; 0 where it has none.

        A dictionary column has none, as in `string_bytes`: copies of rows share it.
        """
        ...

    def string_lengths(self, frame: Frame) -> NDArray[np.uint32]:
        """For each row the bytes of its strings and binaries together, 4 GiB at most."""
        ...

    # Shape.

    def select(self, frame: Frame, columns: Sequence[int]) -> Frame:
        """Those columns, in that order; one may come twice, and none keeps the row count."""
        ...

    def join_columns(self, frames: Sequence[Frame]) -> Frame:
        """Columns of one or more frames with equal row counts, side by side."""
        ...

    def concatenate(self, frames: Sequence[Frame]) -> Frame:
        """Rows of one or more frames with equal columns, in order."""
        ...

    def slice(self, frame: Frame, offset: int, length: int) -> Frame:
        """At most `length` rows from row `offset` on, without a copy."""
        ...

    def take(self, frame: Frame, positions: Positions) -> Frame:
        """The rows at those positions, in that order."""
        ...

    def take_or_null(self, frame: Frame, positions: HostPositions) -> Frame:
        """As `take`; a row of nulls for each position that is -1."""
        ...

    # Computation. Expressions' column references are positions in the frame.

    def evaluate(self, expressions: Sequence[Expression], frame: Frame) -> Frame:
        """One column per expression, of exactly its type.

        Raises:
            ExecutionError: a value overflows or does not fit a cast; names the operation and the types.
        """
        ...

    def dictionary_encode(self, frame: Frame) -> Frame:
        """The rows with strings as places in a few different ones, where the device groups by those faster.

        Expressions and aggregations take such columns, and `to_arrow` gives the strings.
        """
        ...

    def filter(self, frame: Frame, predicate: Expression) -> Frame:
        """Rows for which the predicate is true (not null, not false).

        Raises:
            ExecutionError: as for `evaluate`.
        """
        ...

    def matching_positions(self, predicate: Expression, frame: Frame) -> Positions:
        """Ascending positions of the rows for which the predicate is true; the host waits for their number.

        Raises:
            ExecutionError: as for `evaluate`.
        """
        ...

    def as_positions(self, frame: Frame) -> Positions:
        """The values of a frame of one column, int64 and never null, as ascending positions of other rows."""
        ...

    def read_positions(self, positions: Positions) -> HostPositions:
        """The positions in the host's memory, which waits for them."""
        ...

    def sort(self, frame: Frame, keys: Sequence[SortKey], limit: int | None = None) -> Frame:
        """The rows, or the first `limit` of them, in stable order; NaN is the greatest number.

        Raises:
            ExecutionError: as for `evaluate`.
        """
        ...

    def gathers_in_one_pass(self, aggregates: Sequence[AggregateCall]) -> bool:
        """Whether `aggregation` of these computes what they are of while it gathers, each part once."""
        ...

    def aggregation(
        self, keys: Sequence[Expression], aggregates: Sequence[AggregateCall]
    ) -> Aggregation[Frame, Any]:
        """Keys and aggregates, prepared. No aggregate is DISTINCT: operators see to that."""
        ...

    def join_table(self, keys: Frame, nulls_equal: Sequence[bool]) -> JoinTable[Frame]:
        """Rows prepared to be found by their keys, columns of values without dictionaries.

        A key that is null is equal to nothing, or where `nulls_equal` says so for its column, to null. NaN
        equals NaN, -0.0 equals 0.0.
        """
        ...

    def partition(self, frame: Frame, keys: Frame, count: int, level: int) -> Sequence[Frame]:
        """The rows in `count` (a power of two, 256 at most) frames, by the hash of their keys.

        Equal keys of any two frames of one query go to the same place. At another `level`, from 0 to 5,
        rows that were in one place go to different ones, but for those of equal keys.
        """
        ...

    def window(
        self,
        window: Window,
        frame: Frame,
        rest: RestOfPartition | None = None,
    ) -> Frame:
        """The values of a window's calls, one column for each, for whole partitions of rows in its order.

        It asks `check_cancelled` now and then. With `rest` the rows are some of one partition: aggregates
        that take in rows which are not there need these rows' state, other calls must not reach there, or
        their values are anything.

        Raises:
            ExecutionError: as for `evaluate`; an aggregate's value does not fit its type.
        """
        ...

    def window_portions(
        self,
        window: Window,
        frame: Frame,
        rest: RestOfPartition | None = None,
        first: int = 0,
        count: int | None = None,
    ) -> Iterator[Frame]:
        """The same of `count` (None: all) rows from `first` on, by as many rows at once as its strings allow.

        Raises:
            ExecutionError: as for `window`.
            MemoryLimitError: a text of a single row takes too much; says how much, and names the limit.
        """
        ...
