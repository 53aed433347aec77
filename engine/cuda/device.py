"""A GPU as a device: frames are pylibcudf columns, kernels are libcudf's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from numpy.typing import NDArray
from pylibcudf.types import TypeId

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.aggregates.aggregation import CudaAggregation
from bamquery.engine.cuda.cache.cached_scan import scan_columns
from bamquery.engine.cuda.cache.late_columns import concatenate_rows, take_rows
from bamquery.engine.cuda.capabilities import CUDA
from bamquery.engine.cuda.device_memory import memory_errors
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame, CudaPositions, held_bytes, make_frame
from bamquery.engine.cuda.kernels import INT64, kernels_of
from bamquery.engine.cuda.keys.join_table import CudaJoinTable, comparable
from bamquery.engine.cuda.keys.late_keys import LateKeys, make_late_keys
from bamquery.engine.cuda.keys.portions import row_width
from bamquery.engine.cuda.keys.sorting import sort_frame
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.pipeline.compiled_aggregates import compile_aggregates
from bamquery.engine.cuda.pipeline.compiled_expressions import compiled_columns, start_compiling
from bamquery.engine.cuda.pipeline.row_selection import select_rows, start_compiling_selection
from bamquery.engine.cuda.session import CudaSession, open_session
from bamquery.engine.cuda.transfer import record_batches as transfer
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.engine.cuda.windows.call_values import portion_ends
from bamquery.engine.cuda.windows.compute import window_call_values, window_columns
from bamquery.engine.device import HostPositions, Positions, RestOfPartition
from bamquery.engine.operators.join.distinct_values import distinct_values
from bamquery.engine.profiling.cache_use import CacheUse
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression
from bamquery.plan.nodes import Field, SortKey, Window
from bamquery.statement_context.cancellation import check_cancelled

if TYPE_CHECKING:
    from bamquery.engine.operators.scan.device_scan import ScanWork
    from bamquery.storage.encodings.packed.selection import PackedSelection

Answer = TypeVar("Answer")

_MOST_ROWS: Final = 2**31 - 1
_MOST_LENGTH: Final = 2**32 - 1


@functools.cache
def open_cuda_device(ordinal: int, gpu_memory_limit: int | None, *, programs: bool = True) -> CudaDevice:
    """The device of a GPU under a limit in bytes; made once.

    `programs`: expressions and aggregates are computed by programs, as far as these go.

    Raises:
        GpuError: there is no such GPU, or something on the way to it is missing.
    """
    return CudaDevice(open_session(ordinal, gpu_memory_limit), programs=programs)


class CudaDevice:
    """See `bamquery.engine.device.Device`; all queries on a GPU share its session.

    Attributes:
        session: the GPU's, under a memory limit.
        kernels: libcudf's functions there.
    """

    capabilities: Final = CUDA

    def __init__(self, session: CudaSession, *, programs: bool = True) -> None:
        """See `open_cuda_device`."""
        self._programs = programs
        self.session: Final = session
        self.kernels: Final = kernels_of(session)

    @property
    def name(self) -> str:
        """`cuda:<n>`."""
        return self.session.name

    @property
    def task_size(self) -> int:
        """A chunk of a million rows costs little more than one of a thousand."""
        return 16

    def scan(self, work: ScanWork[CudaFrame]) -> Generator[CudaFrame, None, None]:
        """Read a stored table itself: see `bamquery.engine.operators.scan.device_scan`."""
        return scan_columns(self.session, self.kernels, self, work)

    def cache_use(self) -> CacheUse:
        """Columns that stay in the GPU's memory."""
        return self.session.column_cache.use()

    def from_arrow(self, batch: pa.RecordBatch) -> CudaFrame:
        """The batch's columns, copied."""
        return self._run_on_gpu("a table in memory", lambda: transfer.from_arrow(self.session, batch))

    def from_columns(self, columns: Sequence[pa.Array[Any] | PackedSelection]) -> CudaFrame:
        """The columns, copied."""
        values = [column for column in columns if isinstance(column, pa.Array)]
        assert len(values) == len(columns), "it takes none that is packed"
        size = sum(column.nbytes for column in values)
        return self._run_on_gpu(
            "a scan's columns", lambda: transfer.from_columns(self.session, values, len(values[0])), size
        )

    def to_arrow(self, frame: CudaFrame, fields: Sequence[Field]) -> pa.RecordBatch:
        """The frame's columns, copied, with the fields' names and types."""
        return self._run_on_gpu("a copy to the host", lambda: transfer.to_arrow(self.session, frame, fields))

    def empty(self, fields: Sequence[Field]) -> CudaFrame:
        """No rows."""
        return self._run_on_gpu(
            "a frame",
            lambda: make_frame([self.kernels.nulls(0, value_type(field.type)) for field in fields], 0),
        )

    def single_row(self) -> CudaFrame:
        """One row without columns."""
        return make_frame((), 1)

    def row_count(self, frame: CudaFrame) -> int:
        """Rows."""
        return frame.rows

    def nbytes(self, frame: CudaFrame) -> int:
        """Memory that its rows occupy."""
        return sum(map(held_bytes, frame.held))

    def string_bytes(self, frame: CudaFrame) -> int:
        """Bytes of strings and binaries; those of a dictionary's too, which are looked up here."""
        strings = [column for column in frame.columns if column.type().id() == TypeId.STRING and frame.rows]
        if not strings:
            return 0
        return self._run_on_gpu("the size of strings", lambda: sum(map(self._string_bytes, strings)))

    def row_width(self, frame: CudaFrame) -> int:
        """Bytes of values and offsets; libcudf's are of 8 bytes where strings are many.

        Of strings that are late columns also the mean of their source.
        """
        return row_width(frame.held)

    def longest_string(self, frame: CudaFrame) -> int:
        """Those of each column's longest, found on the GPU."""
        strings = _strings_now(frame)
        if not strings:
            return 0
        return self._run_on_gpu("the size of strings", lambda: sum(map(self._longest_string, strings)))

    def string_lengths(self, frame: CudaFrame) -> NDArray[np.uint32]:
        """Bytes of each row's strings, counted on the GPU and copied."""
        strings = _strings_now(frame)
        return self._run_on_gpu("the sizes of strings", lambda: self._string_lengths(strings, frame.rows))

    def select(self, frame: CudaFrame, columns: Sequence[int]) -> CudaFrame:
        """Those columns."""
        return make_frame([frame.held[i] for i in columns], frame.rows)

    def join_columns(self, frames: Sequence[CudaFrame]) -> CudaFrame:
        """Columns side by side."""
        assert len({frame.rows for frame in frames}) == 1
        return make_frame([column for frame in frames for column in frame.held], frames[0].rows)

    def concatenate(self, frames: Sequence[CudaFrame]) -> CudaFrame:
        """Rows of all, in order.

        Raises:
            ExecutionError: there are more than libcudf's columns have room for.
        """
        frames = [frame for frame in frames if frame.rows] or frames[:1]
        if len(frames) == 1:
            return frames[0]
        rows = sum(frame.rows for frame in frames)
        if rows > _MOST_ROWS:
            raise ExecutionError(
                f"{rows:,} rows do not fit one column on a GPU, which has up to {_MOST_ROWS:,}: "
                "take the answer in batches, add a LIMIT, or SET device = 'cpu'"
            )
        columns = [frame.held for frame in frames]
        return self._run_on_gpu(
            "joining rows", lambda: make_frame(concatenate_rows(self.kernels, columns), rows)
        )

    def slice(self, frame: CudaFrame, offset: int, length: int) -> CudaFrame:
        """Some rows, without a copy."""
        start = min(offset, frame.rows)
        end = min(start + length, frame.rows)
        if (start, end) == (0, frame.rows):
            return frame
        return self._run_on_gpu("a slice", lambda: self.kernels.slice_frame(frame, start, end))

    def take(self, frame: CudaFrame, positions: Positions) -> CudaFrame:
        """The rows at those positions."""
        return self._run_on_gpu("chosen rows", lambda: self._take(frame, positions))

    def take_or_null(self, frame: CudaFrame, positions: HostPositions) -> CudaFrame:
        """The rows at those positions, nulls for -1."""
        return self._run_on_gpu("chosen rows", lambda: self._take_or_null(frame, positions))

    def evaluate(self, expressions: Sequence[Expression], frame: CudaFrame) -> CudaFrame:
        """One column per expression."""
        return self._run_on_gpu("an expression", lambda: self._evaluate(expressions, frame))

    def start_compiling(self, expressions: Sequence[Expression], nullable: Sequence[bool | None]) -> None:
        """Their program's kernel."""
        if self._programs:
            start_compiling(self.session, expressions, nullable)

    def start_compiling_filter(self, predicate: Expression, nullable: Sequence[bool | None]) -> None:
        """Its selection's kernel, or its program's."""
        if self._programs and not start_compiling_selection(self.session, predicate, nullable):
            start_compiling(self.session, [predicate], nullable)

    def start_compiling_aggregates(
        self, calls: Sequence[AggregateCall], nullable: Sequence[bool | None], *, by_keys: bool
    ) -> None:
        """Their program's kernels."""
        compiled = compile_aggregates(tuple(calls)) if self._programs else None
        if compiled is not None:
            compiled.start_compiling(self.session, nullable, by_keys=by_keys)

    def dictionary_encode(self, frame: CudaFrame) -> CudaFrame:
        """The frame itself: libcudf groups by strings as they are."""
        return frame

    def filter(self, frame: CudaFrame, predicate: Expression) -> CudaFrame:
        """Rows for which the predicate is true."""
        if not frame.rows:
            return frame
        return self._run_on_gpu("a filter", lambda: self._filter(frame, predicate))

    def matching_positions(self, predicate: Expression, frame: CudaFrame) -> Positions:
        """Positions of the rows for which the predicate is true, where they are found."""
        if not frame.rows:
            return np.zeros(0, np.int64)
        return self._run_on_gpu("a filter", lambda: self._matching_positions(predicate, frame))

    def late_values(
        self, keys: Sequence[CudaFrame], least: pa.Scalar[Any], greatest: pa.Scalar[Any]
    ) -> LateKeys | None:
        """See `bamquery.engine.key_keeping_device`."""

        def copy(column: plc.Column) -> pa.Array[Any]:
            key = Field("key", least.type)
            return distinct_values([self.to_arrow(make_frame([column], column.size()), [key]).column(0)])

        columns = [frame.columns[0] for frame in keys]
        make = partial(make_late_keys, self.kernels, columns, (least, greatest), copy)
        return self._run_on_gpu("a join's keys", make)

    def as_positions(self, frame: CudaFrame) -> CudaPositions:
        """The values of the one column; libcudf's places have 32 bits."""
        keys = [SortKey(ColumnRef(0, "position", pa.int64()))]
        (column,) = self.sort(frame, keys).columns
        narrow = device_type(pa.int32())
        return self._run_on_gpu("positions", lambda: CudaPositions(self.kernels.convert(column, narrow)))

    def read_positions(self, positions: Positions) -> HostPositions:
        """The positions, copied where they are the GPU's."""
        if isinstance(positions, np.ndarray):
            return positions
        assert isinstance(positions, CudaPositions)
        frame = make_frame([positions.column], len(positions))
        batch = self.to_arrow(frame, [Field("position", pa.int32())])
        return np.asarray(batch.column(0)).astype(np.int64)

    def sort(self, frame: CudaFrame, keys: Sequence[SortKey], limit: int | None = None) -> CudaFrame:
        """The rows, or the first `limit` of them, in stable order."""
        return self._run_on_gpu("ORDER BY", lambda: sort_frame(self.kernels, frame, keys, limit))

    def gathers_in_one_pass(self, aggregates: Sequence[AggregateCall]) -> bool:
        """Whether a program computes all of them."""
        return self._programs and compile_aggregates(tuple(aggregates)) is not None

    def aggregation(self, keys: Sequence[Expression], aggregates: Sequence[AggregateCall]) -> CudaAggregation:
        """Keys and aggregates, prepared."""
        return CudaAggregation(self.kernels, keys, aggregates, programs=self._programs)

    def join_table(self, keys: CudaFrame, nulls_equal: Sequence[bool]) -> CudaJoinTable:
        """Rows prepared to be found by their keys."""
        return CudaJoinTable(self.kernels, self._run_on_gpu, self._rows_that_fulfil, keys, nulls_equal)

    def partition(self, frame: CudaFrame, keys: CudaFrame, count: int, level: int) -> list[CudaFrame]:
        """The rows by libcudf's hash of their keys, seeded by the level."""
        return self._run_on_gpu("rows by key", lambda: self._partition(frame, keys, count, level))

    def window(
        self,
        window: Window,
        frame: CudaFrame,
        rest: RestOfPartition | None = None,
    ) -> CudaFrame:
        """The values of a window's calls."""
        kernels = self.kernels

        def compute() -> CudaFrame:
            values = window_call_values(kernels, window, frame, rest)
            return make_frame(window_columns(window, values, 0, frame.rows), frame.rows)

        return self._run_on_gpu("a window", compute)

    def window_portions(
        self,
        window: Window,
        frame: CudaFrame,
        rest: RestOfPartition | None = None,
        first: int = 0,
        count: int | None = None,
    ) -> Iterator[CudaFrame]:
        """The values of a window's calls for some rows, by as many as are copied at once."""
        kernels, stop = self.kernels, frame.rows if count is None else first + count
        values = self._run_on_gpu("a window", lambda: window_call_values(kernels, window, frame, rest))

        def portion(start: int, end: int) -> CudaFrame:
            return make_frame(window_columns(window, values, start, end), end - start)

        ends = self._run_on_gpu("a window", lambda: portion_ends(kernels, values, first, stop))
        for start, end in zip([first, *ends], ends, strict=False):
            check_cancelled()
            yield self._run_on_gpu("a window", partial(portion, start, end))

    def _run_on_gpu(self, what: str, compute: Callable[[], Answer], nbytes: int | None = None) -> Answer:
        self.session.enter()
        with memory_errors(what, self.session.limit, nbytes):
            return compute()

    def _evaluate(self, expressions: Sequence[Expression], frame: CudaFrame) -> CudaFrame:
        computed = [one for one in expressions if not isinstance(one, ColumnRef)]
        columns = iter(self._columns(computed, frame) if computed else ())
        held = [frame.held[one.index] if isinstance(one, ColumnRef) else next(columns) for one in expressions]
        return make_frame(held, frame.rows)

    def _columns(self, expressions: Sequence[Expression], frame: CudaFrame) -> list[plc.Column]:
        compute = compiled_columns if self._programs else evaluate_columns
        return compute(self.kernels, expressions, frame)

    def _mask(self, predicate: Expression, frame: CudaFrame) -> plc.Column:
        (mask,) = self._columns([predicate], frame)
        return mask

    def _filter(self, frame: CudaFrame, predicate: Expression) -> CudaFrame:
        found = select_rows(self.kernels, predicate, frame) if self._programs else None
        if found is None:
            return self.kernels.filter_frame(frame, self._mask(predicate, frame))
        return frame if len(found) == frame.rows else self._take(frame, found)

    def _rows_that_fulfil(self, predicate: Expression, frame: CudaFrame) -> CudaPositions:
        if not frame.rows:
            return CudaPositions(self.kernels.nulls(0, pa.int32()))
        return self._matching_positions(predicate, frame)

    def _matching_positions(self, predicate: Expression, frame: CudaFrame) -> CudaPositions:
        found = select_rows(self.kernels, predicate, frame) if self._programs else None
        if found is not None:
            return found
        mask = self._mask(predicate, frame)
        return CudaPositions(self.kernels.keep([self.kernels.positions(frame.rows)], mask)[0])

    def _take(self, frame: CudaFrame, positions: Positions) -> CudaFrame:
        if not frame.held:
            return make_frame((), len(positions))
        if isinstance(positions, CudaPositions):
            return make_frame(take_rows(self.kernels, frame.held, positions.column), len(positions))
        narrow = pa.array(np.asarray(positions, np.int32))
        places = upload(self.session, narrow)
        self.session.synchronize()  # before the array is let go of
        return make_frame(take_rows(self.kernels, frame.held, places), len(positions))

    def _take_or_null(self, frame: CudaFrame, positions: HostPositions) -> CudaFrame:
        if not frame.columns:
            return make_frame((), len(positions))
        kernels = self.kernels
        if not frame.rows:
            columns = [
                plc.Column.all_null_like(c, len(positions), stream=kernels.stream, mr=kernels.memory)
                for c in frame.columns
            ]
            return make_frame(columns, len(positions))
        # libcudf counts negative positions from the end; what is past the end is null.
        narrow = pa.array(np.where(positions < 0, frame.rows, positions).astype(np.int32))
        places = upload(self.session, narrow)
        self.session.synchronize()  # before the array is let go of
        return make_frame(take_rows(kernels, frame.held, places, nullify=True), len(positions))

    def _partition(self, frame: CudaFrame, keys: CudaFrame, count: int, level: int) -> list[CudaFrame]:
        if not frame.rows or not frame.columns:
            return [frame, *(self.slice(frame, 0, 0) for _ in range(count - 1))]
        kernels = self.kernels
        table, starts = plc.partitioning.hash_partition(
            frame.table(),
            plc.Table([comparable(kernels, column) for column in keys.columns]),
            count,
            seed=level,
            stream=kernels.stream,
            mr=kernels.memory,
        )
        starts, parted = list(starts)[:count], make_frame(table.columns(), frame.rows)
        return [
            kernels.slice_frame(parted, start, end)
            for start, end in zip(starts, [*starts[1:], frame.rows], strict=True)
        ]

    def _string_lengths(self, strings: Sequence[plc.Column], rows: int) -> NDArray[np.uint32]:
        kernels = self.kernels
        found = np.zeros(rows, np.int64)
        for column in strings:
            sizes = plc.strings.attributes.count_bytes(column, stream=kernels.stream, mr=kernels.memory)
            batch = transfer.to_arrow(self.session, make_frame([sizes], rows), [Field("bytes", pa.int32())])
            lengths: Any = batch.column(0)
            found += lengths.fill_null(0).to_numpy(zero_copy_only=False)
        return np.minimum(found, _MOST_LENGTH).astype(np.uint32)

    def _string_bytes(self, column: plc.Column) -> int:
        return self._reduce_sizes(column, plc.aggregation.sum())

    def _longest_string(self, column: plc.Column) -> int:
        return self._reduce_sizes(column, plc.aggregation.max())

    def _reduce_sizes(self, column: plc.Column, aggregation: plc.aggregation.Aggregation) -> int:
        """What is asked of the strings' bytes; 0 where all are null."""
        kernels = self.kernels
        sizes = plc.strings.attributes.count_bytes(column, stream=kernels.stream, mr=kernels.memory)
        found = kernels.reduce(kernels.convert(sizes, INT64), aggregation, INT64)
        return int(found.to_py(stream=kernels.stream) or 0)


def _strings_now(frame: CudaFrame) -> list[plc.Column]:
    """Strings of rows that a copy of the frame's rows copies; late ones are not."""
    now = [column for column in frame.held if isinstance(column, plc.Column)]
    return [column for column in now if frame.rows and column.type().id() == TypeId.STRING]
