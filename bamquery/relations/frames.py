"""A relation's rows as other libraries' frames, arrays and tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bamquery.driver.toolchain import INSTALL
from bamquery.engine.device import Device
from bamquery.extras import require
from bamquery.python_values import require_polars_types
from bamquery.relations.base import RelationBase
from bamquery.relations.gpu_results import cudf_frame, device_arrays, require_gpu
from bamquery.result import Result

if TYPE_CHECKING:
    import cudf
    import cupy
    import pandas
    import polars
    import torch


class RelationFrames(RelationBase):
    """`to_arrow` and its like; each is a run of its own."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Batches as they come, none of them empty; the whole answer is never in memory.

        Closing the iterator, or leaving it to be garbage collected, stops the query.
        """
        return _batches(self.run())

    def to_arrow(self) -> pa.Table:
        """All rows."""
        with self.run() as result:
            return result.table()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows, in pandas' types.

        Raises:
            BamQueryError: pandas is not installed.
        """
        require("pandas", "to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows, in polars' types.

        Raises:
            BamQueryError: polars is not installed, or has no such type, or two columns have one name.
        """
        library = require("polars", "to_polars()")
        require_polars_types(self._plan.fields)
        frame: polars.DataFrame = library.from_arrow(self.to_arrow())
        return frame

    def to_cudf(self) -> cudf.DataFrame:
        """All rows as cuDF's frame, over the GPU memory that they were computed in.

        Raises:
            BamQueryError: the query does not run on a GPU, or cuDF is not installed or has no such type.
        """
        _, device, frame = self._on_gpu("cudf", "to_cudf()", INSTALL)
        return cudf_frame(device, frame, self._plan.fields)

    def to_cupy(self) -> dict[str, cupy.ndarray]:
        """Columns by name as CuPy's arrays, without a copy; dates and timestamps are their counts.

        Raises:
            BamQueryError: the query does not run on a GPU, CuPy is not installed, or a column has nulls or
                is no array.
        """
        cupy, device, frame = self._on_gpu("cupy", "to_cupy()", INSTALL)
        arrays = device_arrays(device, frame, self._plan.fields)
        return {name: cupy.asarray(array) for name, array in arrays.items()}

    def to_torch(self) -> dict[str, torch.Tensor]:
        """Columns by name as torch's tensors, without a copy; as `to_cupy`.

        Raises:
            BamQueryError: as for `to_cupy`, of torch.
        """
        torch, device, frame = self._on_gpu("torch", "to_torch()", "pip install torch")
        arrays = device_arrays(device, frame, self._plan.fields)
        return {name: torch.as_tensor(array, device=device.name) for name, array in arrays.items()}

    def _on_gpu(self, module: str, purpose: str, install: str) -> tuple[Any, Device[Any], Any]:
        """A library, the device, and all rows there."""
        with self.run() as result:
            require_gpu(result.profile.device, result.profile.notes, purpose)
            library = require(module, purpose, install)
            return library, *result.device_frame()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, for whatever takes Arrow streams: `polars.DataFrame(rel)`, `con.load("t", rel)`."""
        reader: Any = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)


# Not methods: generators that knew their relation would keep it, and the versions it holds, from being freed.


def _batches(result: Result) -> Iterator[pa.RecordBatch]:
    with result:
        yield from result
