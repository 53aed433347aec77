"""Typed doors to libcudf on one session's stream and memory, which the rest of this folder goes through.

A datum is a column (one value a row of the frame) or a constant of Arrow's (the same value on every row).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, cast

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.aggregation import Aggregation
from pylibcudf.binaryop import BinaryOperator, binary_operation
from pylibcudf.copying import OutOfBoundsPolicy
from pylibcudf.types import TypeId
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.cache.late_columns import LateColumn, slice_rows, take_rows
from bamquery.engine.cuda.frames import CudaFrame, make_frame
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.cuda.transfer.upload import upload

Constant: TypeAlias = "pa.Scalar[Any]"
Datum: TypeAlias = "plc.Column | pa.Scalar[Any]"
Side: TypeAlias = "plc.Column | plc.Scalar"
"""One of a binary operation's two."""

BOOL: Final = plc.DataType(TypeId.BOOL8)
INT64: Final = plc.DataType(TypeId.INT64)
UINT64: Final = plc.DataType(TypeId.UINT64)
FLOAT64: Final = plc.DataType(TypeId.FLOAT64)
INT128: Final = plc.DataType(TypeId.DECIMAL128, 0)
"""libcudf's decimals without a fraction are its 128-bit integers."""

_MOST_SCALARS: Final = 4096
"""Constants that stay in the GPU's memory."""
_LONGEST_KEPT: Final = 64
"""Characters of such a constant."""

Known = TypeVar("Known")


@dataclass(frozen=True)
class Operand:
    """A function's argument.

    Attributes:
        kind: its Arrow type, a dictionary's values' for dictionaries.
        datum: its value.
    """

    kind: pa.DataType
    datum: Datum

    @property
    def is_constant(self) -> bool:
        """Whether it is the same on every row."""
        return not isinstance(self.datum, plc.Column)

    @property
    def literal(self) -> Any:
        """A constant's value for Python; None for null."""
        assert not isinstance(self.datum, plc.Column), "the binder passes literals only"
        return self.datum.as_py()


class Kernels:
    """libcudf's functions, as this folder calls them; thread-safe, as its session is."""

    def __init__(self, session: CudaSession) -> None:
        self.session: Final = session
        self.stream: Final = session.stream
        self.memory: Final = session.memory
        self._scalars: dict[tuple[pa.DataType, str], plc.Scalar] = {}
        self._empty: dict[pa.DataType, plc.Column] = {}
        self._known = threading.local()

    # Constants.

    def scalar(self, constant: Constant) -> plc.Scalar:
        """A constant in the GPU's memory."""
        kind = constant.type
        # Equal floats may differ in their sign, or be no numbers and so equal nothing: their text tells them.
        value = constant.as_py() if constant.is_valid and _is_kept(kind) else None
        known = not constant.is_valid or (value is not None and len(str(value)) <= _LONGEST_KEPT)
        key = (kind, repr(value))
        found = self._scalars.get(key) if known else None
        if found is None:
            values: Any = pa.array([constant]) if constant.is_valid else pa.nulls(1, kind)
            found = upload(self.session, values).to_scalar(stream=self.stream, mr=self.memory)
            self.session.synchronize()  # the array's copy is done
            if known and len(self._scalars) < _MOST_SCALARS:
                self._scalars[key] = found
        return found

    def number(self, value: float, kind: pa.DataType | None = None) -> plc.Scalar:
        """A number of a type, int64 if none is given."""
        constant: Constant = pa.scalar(value, kind or pa.int64())
        return self.scalar(constant)

    def truth(self, value: bool) -> plc.Scalar:
        """True or false."""
        constant: Constant = pa.scalar(value, pa.bool_())
        return self.scalar(constant)

    def null(self, kind: pa.DataType) -> plc.Scalar:
        """A null of a type."""
        constant: Any = pa.scalar(None, kind)
        return self.scalar(constant)

    def side(self, datum: Datum) -> Side:
        """A datum as binary operations take it."""
        return datum if isinstance(datum, plc.Column) else self.scalar(datum)

    def repeat_scalar(self, scalar: plc.Scalar, rows: int) -> plc.Column:
        """A column of one value."""
        return plc.Column.from_scalar(scalar, rows, stream=self.stream, mr=self.memory)

    def column(self, datum: Datum, rows: int) -> plc.Column:
        """The datum as a column of `rows` values."""
        return datum if isinstance(datum, plc.Column) else self.repeat_scalar(self.scalar(datum), rows)

    def nulls(self, rows: int, kind: pa.DataType) -> plc.Column:
        """`rows` nulls."""
        if not rows:
            found = self._empty.get(kind)
            if found is None:
                kept = device_type(kind)
                found = plc.column_factories.make_empty_column(kept, stream=self.stream, mr=self.memory)
                if len(self._empty) < _MOST_SCALARS:
                    self._empty[kind] = found
            return found
        return self.repeat_scalar(self.null(kind), rows)

    def positions(self, rows: int, start: int = 0, step: int = 1) -> plc.Column:
        """Start, start + step, ... as int32."""
        first, width = self.number(start, pa.int32()), self.number(step, pa.int32())
        return plc.filling.sequence(rows, first, width, stream=self.stream)

    # Arithmetic and tests.

    def binary(self, operator: BinaryOperator, a: Side, b: Side, kind: plc.DataType) -> plc.Column:
        """`a operator b`; null where either is null. One of them is a column."""
        return binary_operation(a, b, operator, kind, stream=self.stream, mr=self.memory)

    def test(self, operator: BinaryOperator, a: Side, b: Side) -> plc.Column:
        """As `binary`, for what gives booleans."""
        return self.binary(operator, a, b, BOOL)

    def unary(self, operator: UnaryOperator, column: plc.Column) -> plc.Column:
        """`operator column`; null where it is null."""
        return plc.unary.unary_operation(column, operator, stream=self.stream, mr=self.memory)

    def convert(self, column: plc.Column, kind: plc.DataType) -> plc.Column:
        """A cast of libcudf's own, which wraps and truncates what does not fit."""
        same = column.type().id() == kind.id() and column.type().scale() == kind.scale()
        return column if same else plc.unary.cast(column, kind, stream=self.stream, mr=self.memory)

    def invert(self, mask: plc.Column) -> plc.Column:
        """True for false."""
        return self.unary(UnaryOperator.NOT, mask)

    def logical_and(self, a: Side, b: Side) -> plc.Column:
        """Kleene's and."""
        return self.test(BinaryOperator.NULL_LOGICAL_AND, a, b)

    def logical_or(self, a: Side, b: Side) -> plc.Column:
        """Kleene's or."""
        return self.test(BinaryOperator.NULL_LOGICAL_OR, a, b)

    def is_null(self, column: plc.Column) -> plc.Column:
        """Whether each value is null."""
        return plc.unary.is_null(column, stream=self.stream, mr=self.memory)

    def is_valid(self, column: plc.Column) -> plc.Column:
        """Whether each value is not null."""
        return plc.unary.is_valid(column, stream=self.stream, mr=self.memory)

    def is_nan(self, column: plc.Column) -> plc.Column:
        """Whether each float is not a number; false for nulls."""
        return self.fill_null(plc.unary.is_nan(column, stream=self.stream, mr=self.memory))

    def fill_null(self, column: plc.Column, value: plc.Scalar | None = None) -> plc.Column:
        """The values, with one (false, if none is given) for nulls."""
        if not column.null_count():
            return column
        other = self.truth(False) if value is None else value
        return plc.replace.replace_nulls(column, other, stream=self.stream, mr=self.memory)

    def where(self, mask: plc.Column, chosen: Side, otherwise: Side) -> plc.Column:
        """`chosen` where the mask is true, `otherwise` where it is false or null."""
        a, b = self._branch(chosen, mask.size()), self._branch(otherwise, mask.size())
        return plc.copying.copy_if_else(a, b, mask, stream=self.stream, mr=self.memory)

    def _branch(self, side: Side, rows: int) -> Side:
        """What libcudf chooses from: of decimals columns only."""
        if isinstance(side, plc.Scalar) and side.type().id() == TypeId.DECIMAL128:
            return self.repeat_scalar(side, rows)
        return side

    def null_where(self, mask: plc.Column, column: plc.Column, kind: pa.DataType) -> plc.Column:
        """The values of a type, null where the mask is true."""
        return self.where(mask, self.null(kind), column)

    def any_true(self, mask: plc.Column) -> bool:
        """Whether any value is true; the host waits."""
        if not mask.size():
            return False
        found = self.reduce(mask, plc.aggregation.any(), BOOL)
        return bool(found.to_py(stream=self.stream))

    def reduce(self, column: plc.Column, aggregation: Aggregation, kind: plc.DataType) -> plc.Scalar:
        """One value of all."""
        return plc.reduce.reduce(column, aggregation, kind, stream=self.stream, mr=self.memory)

    def extremes(self, column: plc.Column) -> tuple[int, int]:
        """The least and the greatest of integers, of 0 and 0 where there is none; the host waits.

        One pass over a column tells of most arithmetic that it cannot overflow, where tests of each row take
        five to ten.
        """

        def find() -> tuple[int, int]:
            ends = plc.reduce.minmax(column, stream=self.stream, mr=self.memory)
            low, high = (cast("int | None", end.to_py(stream=self.stream)) for end in ends)
            return (0, 0) if low is None or high is None else (int(low), int(high))

        return (0, 0) if not column.size() else self.remembered(column, "extremes", find)

    # What is known of columns.

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """What is asked of a column meanwhile, by this thread, is found once; columns are kept as long."""
        before = getattr(self._known, "of", None)
        self._known.of = {}
        try:
            yield
        finally:
            self._known.of = before

    def remembered(self, column: plc.Column | None, what: str, find: Callable[[], Known]) -> Known:
        """What `find` says of a column, which does not change."""
        known: dict[tuple[int, str], tuple[object, Any]] | None = getattr(self._known, "of", None)
        if known is None:
            return find()
        key = (id(column), what)
        found = known.get(key)
        if found is None:
            found = known[key] = (column, find())  # with the column: another one may come to have its id
        return cast("Known", found[1])

    # Rows.

    def gather(
        self, columns: Sequence[plc.Column], positions: plc.Column, *, nullify: bool = False
    ) -> list[plc.Column]:
        """Values at positions (not null); null for positions out of bounds, if `nullify`."""
        policy = OutOfBoundsPolicy.NULLIFY if nullify else OutOfBoundsPolicy.DONT_CHECK
        table = plc.Table(list(columns))
        return list(
            plc.copying.gather(table, positions, policy, stream=self.stream, mr=self.memory).columns()
        )

    def scatter(self, values: plc.Column, positions: plc.Column, over: plc.Column) -> plc.Column:
        """A copy of `over` that has each of the values, at least one, at its position."""
        table = plc.copying.scatter(
            plc.Table([values]), positions, plc.Table([over]), stream=self.stream, mr=self.memory
        )
        return table.columns()[0]

    def keep(self, columns: Sequence[plc.Column], mask: plc.Column) -> list[plc.Column]:
        """The rows where the mask is true."""
        table = plc.Table(list(columns))
        kept = plc.stream_compaction.apply_retention_mask(table, mask, stream=self.stream, mr=self.memory)
        return list(kept.columns())

    def filter_frame(self, frame: CudaFrame, mask: plc.Column) -> CudaFrame:
        """The frame's rows where the mask is true, also of a frame without columns."""
        if any(isinstance(column, LateColumn) for column in frame.held):
            (places,) = self.keep([self.positions(frame.rows)], mask)
            return make_frame(take_rows(self, frame.held, places), places.size())
        columns = self.keep(frame.columns or [mask], mask)
        return make_frame(columns if frame.held else (), columns[0].size())

    def slice_column(self, column: plc.Column, start: int, end: int) -> plc.Column:
        """Rows from `start` to before `end`, without a copy."""
        if start == 0 and end == column.size():
            return column
        return plc.copying.slice(column, [start, end], stream=self.stream)[0]

    def slice_frame(self, frame: CudaFrame, start: int, end: int) -> CudaFrame:
        """A frame's rows from `start` to before `end`, without a copy."""
        return make_frame(slice_rows(self, frame.held, start, end), end - start)

    def concatenate(self, columns: Sequence[plc.Column]) -> plc.Column:
        """Values of one or more columns of one type."""
        if len(columns) == 1:
            return columns[0]
        return plc.concatenate.concatenate(list(columns), stream=self.stream, mr=self.memory)


@functools.cache
def kernels_of(session: CudaSession) -> Kernels:
    """Those of a session; made once."""
    return Kernels(session)


Implementation: TypeAlias = Callable[[Kernels, Sequence[Operand], pa.DataType], plc.Column]
"""A scalar function: arguments (at least one a column) and the result's type."""


def _is_kept(kind: pa.DataType) -> bool:
    """Whether constants of a type are told apart by how Python writes them: it has no dates beyond 9999."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_large_string(kind)
        or types.is_string(kind)
    )


def view_as(column: plc.Column, kind: plc.DataType) -> plc.Column:
    """The column's stored values as a type of the same width, without a copy."""
    return plc.Column(
        kind, column.size(), column.data(), column.null_mask(), column.null_count(), column.offset(), []
    )


def argument_rows(arguments: Sequence[Operand]) -> int:
    """Rows of the first argument that is a column."""
    return next(a.datum.size() for a in arguments if isinstance(a.datum, plc.Column))
