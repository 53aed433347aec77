"""Just enough of cudf, cupy, pylibcudf and rmm, over numpy and pandas, to run the baselines without a GPU.

Buffers are really copied from the addresses and sizes that are passed, bitmaps are really read.
"""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq


class DeviceBuffer:
    def __init__(self, *, ptr: int, size: int) -> None:
        self.bytes = np.frombuffer(ctypes.string_at(ptr, size), np.uint8)


class Column:
    def __init__(
        self, kind: str, size: int, data: DeviceBuffer, mask: DeviceBuffer | None, null_count: int, *rest: Any
    ) -> None:
        assert (kind, rest) == ("float64", (0, []))
        assert len(data.bytes) == 8 * size
        self.values = data.bytes.view(np.float64).copy()
        if mask is None:
            assert null_count == 0
            return
        assert len(mask.bytes) % 64 == 0
        valid = np.unpackbits(mask.bytes, bitorder="little")[:size].astype(bool)
        assert null_count == size - valid.sum()
        self.values[~valid] = np.nan


class CudaMemoryResource:
    pass


class CudaAsyncMemoryResource:
    pass


def _from_pylibcudf(columns: list[Column], metadata: dict[str, list[str]]) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(metadata["columns"], (column.values for column in columns), strict=True)))


def _read_parquet(files: list[str], columns: list[str], filters: Any = None, **_: Any) -> pd.DataFrame:
    return pd.concat([pq.read_table(file, columns=columns, filters=filters).to_pandas() for file in files])


def fake_modules() -> dict[str, Any]:
    """By name, fresh ones each time."""
    current: list[Any] = [CudaMemoryResource()]
    mr = SimpleNamespace(
        CudaMemoryResource=CudaMemoryResource,
        CudaAsyncMemoryResource=CudaAsyncMemoryResource,
        get_current_device_resource=lambda: current[0],
        set_current_device_resource=lambda resource: current.__setitem__(0, resource),
    )
    runtime = SimpleNamespace(getDeviceCount=lambda: 1, deviceSynchronize=lambda: None)
    return {
        "rmm": SimpleNamespace(DeviceBuffer=DeviceBuffer, mr=mr),
        "cupy": SimpleNamespace(
            cuda=SimpleNamespace(runtime=runtime, alloc_pinned_memory=bytearray),
            get_default_pinned_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
        ),
        "pylibcudf": SimpleNamespace(
            Column=Column,
            DataType=lambda kind: kind,
            TypeId=SimpleNamespace(FLOAT64="float64"),
            Table=list,
            gpumemoryview=lambda buffer: buffer,
        ),
        "cudf": SimpleNamespace(
            DataFrame=SimpleNamespace(from_pylibcudf=_from_pylibcudf), read_parquet=_read_parquet
        ),
    }
