"""cuDF over whole columns in pinned host memory: the RAPIDS baseline of the BaM paper.

The columns that questions need are read once into pinned memory. Each question copies its columns to the GPU,
whole, and cuDF filters and averages there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cudf
import cupy
import numpy as np
import pyarrow.parquet
import pylibcudf as plc
import rmm
from numpy.typing import NDArray

from bamquery.errors import MemoryLimitError
from bamquery.queries.baselines.cudf_frames import long_trips, mean_of, prepare, synchronise
from bamquery.queries.questions import Question
from bamquery.queries.systems import Answer
from bamquery.queries.trips.parquet_files import parquet_files

_LABEL: Final = "cuDF, pinned memory"
_MASK_BYTES: Final = 64
"""libcudf reads bitmaps in units of this size."""
_parquet: Final[Any] = pyarrow.parquet


@dataclass(frozen=True)
class PinnedColumn:
    """One whole column of float64 in pinned memory; `validity` is Arrow's bitmap, None without nulls."""

    values: NDArray[np.float64]
    validity: NDArray[np.uint8] | None
    null_count: int

    @property
    def nbytes(self) -> int:
        """Bytes that a copy to the GPU moves."""
        return self.values.nbytes + (0 if self.validity is None else self.validity.nbytes)

    def to_gpu(self) -> Any:
        """A pylibcudf column over fresh copies of the buffers; the copies are done when this returns."""
        rows = len(self.values)
        kind = plc.DataType(plc.TypeId.FLOAT64)
        mask = None if self.validity is None else _copy_to_device(self.validity)
        return plc.Column(kind, rows, _copy_to_device(self.values), mask, self.null_count, 0, [])


def _copy_to_device(array: NDArray[Any]) -> Any:
    # On the default stream the copy is over when the buffer is there.
    return plc.gpumemoryview(rmm.DeviceBuffer(ptr=array.ctypes.data, size=array.nbytes))


class System:
    """Whole columns from host memory, then a filter and a mean on the GPU."""

    name = _LABEL

    def __init__(self, parquet: Path) -> None:
        """Nothing is read yet."""
        self.files = [parquet]
        self._columns: dict[str, PinnedColumn] = {}

    def open(self) -> None:
        """Find the GPU. A column is read into pinned memory for the first question that needs it."""
        prepare(self.name)

    def ask(self, question: Question) -> Answer:
        """Copy the question's columns, filter, average."""
        columns = self._pinned_columns(question.columns)
        with synchronise(self.name, f"{question.name.upper()}'s columns"):
            value = mean_of(long_trips(_frame(columns)), question)
        return Answer(value)

    def bytes_moved(self, question: Question) -> int:
        """Bytes that are copied to the GPU: whole columns and their null bitmaps."""
        return sum(column.nbytes for column in self._pinned_columns(question.columns).values())

    def count(self) -> int:
        """Long trips."""
        with synchronise(self.name, "its distances"):
            return len(long_trips(_frame(self._pinned_columns(("trip_distance",)))))

    def close(self) -> None:
        """Unpin and free."""
        self._columns = {}
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def _pinned_columns(self, names: tuple[str, ...]) -> dict[str, PinnedColumn]:
        files = parquet_files(self.files[0])
        for name in names:
            if name not in self._columns:
                self._columns[name] = read_pinned(files, name)
        return {name: self._columns[name] for name in names}


def _frame(columns: dict[str, PinnedColumn]) -> Any:
    table = plc.Table([column.to_gpu() for column in columns.values()])
    return cudf.DataFrame.from_pylibcudf(table, {"columns": list(columns)})


def read_pinned(files: list[Path], name: str) -> PinnedColumn:
    """Read a column of float64 from Parquet files into pinned memory, several files at a time.

    Raises:
        MemoryLimitError: so much memory cannot be pinned.
    """
    counts = [_parquet.read_metadata(file).num_rows for file in files]
    starts = np.concatenate(([0], np.cumsum(counts)))
    rows = int(starts[-1])
    values = _allocate_pinned(8 * rows, name).view(np.float64)

    def read(place: int) -> NDArray[np.bool_] | None:
        column = _parquet.read_table(files[place], columns=[name], use_threads=False)[name]
        part = slice(int(starts[place]), int(starts[place + 1]))
        np.copyto(values[part], column.fill_null(0.0).to_numpy())
        return column.is_valid().to_numpy() if column.null_count else None

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(read, range(len(files))))
    if all(part is None for part in found):
        return PinnedColumn(values, None, 0)
    valid = np.concatenate(
        [np.ones(n, np.bool_) if part is None else part for n, part in zip(counts, found, strict=True)]
    )
    validity = _allocate_pinned(-(-rows // (8 * _MASK_BYTES)) * _MASK_BYTES, name)
    validity[:] = 0
    packed = np.packbits(valid, bitorder="little")
    validity[: len(packed)] = packed
    return PinnedColumn(values, validity, rows - int(np.count_nonzero(valid)))


def _allocate_pinned(nbytes: int, name: str) -> NDArray[np.uint8]:
    try:
        memory = cupy.cuda.alloc_pinned_memory(max(nbytes, 1))
    except Exception as error:  # CuPy's own classes, which depend on its version
        raise MemoryLimitError(
            f"{_LABEL}: {nbytes:,} bytes of host memory for {name} cannot be pinned ({error}): their "
            "limit is the memory there is, and in containers memlock (ulimit -l)"
        ) from error
    return np.frombuffer(memory, np.uint8, nbytes)
