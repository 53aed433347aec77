"""`array[i]` in compiled code: run by numba on the CPU, compiled for GPUs where there is none."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from bamquery._native import QueueMemory
from bamquery.driver.array import Array, PageCache
from bamquery.driver.faults import Fault
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError
from tests.selection.effort import spread

numba = pytest.importorskip("numba")

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


@contextmanager
def arrays(dtype: str, count: int, **options: Any) -> Iterator[tuple[SoftwareController, np.ndarray, Array]]:
    memory = QueueMemory(leased_pairs=0, shared_pairs=2, depth=4, slot_bytes=4096)
    with SoftwareController(memory, threads=0) as controller:
        nsid = controller.add_memory(16384)
        contents = np.frombuffer(controller.contents(nsid), dtype)
        contents[:] = np.arange(len(contents)).astype(dtype)
        cache = PageCache(controller, pages=3, page_bytes=512)
        yield controller, contents, Array(cache, nsid, dtype, count, **options)


@numba.njit
def element(array: Any, index: int) -> Any:
    return array[index]


@numba.njit
def double_all(array: Any) -> int:
    for i in range(len(array)):
        array[i] = array[i] + array[i]
    return len(array)


@pytest.mark.long
@pytest.mark.parametrize("dtype", spread(DTYPES, 2))
def test_every_type_is_read_and_written(dtype: str) -> None:
    with arrays(dtype, 1000, writable=True) as (_, contents, array):
        model = contents.copy()
        assert double_all(array) == 1000
        model[:1000] += model[:1000]
        assert (array[:] == model[:1000]).all()
        assert element(array, -1) == model[999]
        array.close()
        assert (contents == model).all()


def test_errors_come_out_of_compiled_code() -> None:
    with arrays("f8", 1000, timeout=1.0) as (controller, _, array):
        for index in (1000, -1001, 1 << 40):
            with pytest.raises(IndexError, match="no such element"):
                element(array, index)
        with pytest.raises(NvmeError, match="write failed"):
            double_all(array)
        controller.set_faults([Fault("error", first_lba=3, blocks=1, status=0x281)])
        with pytest.raises(NvmeError, match="read failed") as caught:
            element(array, 3 * 64)
        assert (caught.value.nsid, caught.value.lba, caught.value.sct, caught.value.sc) == (1, 3, 2, 0x81)
        assert element(array, 5) == 5


def test_closed_arrays_are_refused() -> None:
    with arrays("i4", 100) as (_, _, array):
        assert element(array, 1) == 1
        array.close()
        with pytest.raises(ValueError, match="closed"):
            element(array, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_compile_where_no_gpu_is(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = pytest.importorskip("numba.cuda")
    dispatcher = pytest.importorskip("numba.cuda.dispatcher")
    device = types.SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    from bamquery.driver.gpu.numba_array import gpu_array_type

    def double(array: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < len(array):
            out[i] = array[i]
            array[i] = out[i] + out[i]

    kind = gpu_array_type(np.dtype(dtype))
    assert gpu_array_type(np.dtype(dtype)) == kind
    ptx, _ = cuda.compile_ptx(double, cuda.types.void(kind, kind.element[::1]), cc=(9, 0))
    size = np.dtype(dtype).itemsize
    for function in ("bamquery_array_size", f"bamquery_array_read_{size}", f"bamquery_array_write_{size}"):
        assert f".extern .func  (.param .b64 func_retval0) {function}" in ptx


@pytest.mark.long
@pytest.mark.parametrize("capability", spread([(8, 0), (9, 0), (10, 0), (12, 0)], 3))
def test_device_functions_compile_as_numba_does_it(capability: tuple[int, int]) -> None:
    nvrtc = pytest.importorskip("numba.cuda.cudadrv.nvrtc")
    from bamquery.driver.gpu.numba_array import _source

    code, log = nvrtc.compile(_source().data, "array_functions.cu", capability, ltoir=True)
    assert len(code.code) > 0
    assert not log
