"""Memory of a GPU: one pool per GPU, limits on top of it, and errors that name who asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import rmm

from bamquery.engine.human_units import human_bytes
from bamquery.errors import MemoryLimitError

_pools: dict[int, rmm.mr.DeviceMemoryResource] = {}

_ASKED: Final = re.compile(r"failed to allocate ([\d.]+ ?\w+)")


def device_pool(ordinal: int) -> rmm.mr.DeviceMemoryResource:
    """The GPU's pool of stream-ordered memory; the caller's thread is on that GPU.

    libcudf takes its scratch memory from the current resource of the GPU: it becomes this pool, unless the
    program has set one of its own.
    """
    pool = _pools.get(ordinal)
    if pool is None:
        pool = _pools[ordinal] = rmm.mr.CudaAsyncMemoryResource()
        if type(rmm.mr.get_per_device_resource(ordinal)) is rmm.mr.CudaMemoryResource:
            rmm.mr.set_per_device_resource(ordinal, pool)
    return pool


@contextmanager
def memory_errors(what: str, limit: int | None, nbytes: int | None = None) -> Iterator[None]:
    """Turn memory that cannot be had into an error that says who asked for how much.

    Raises:
        MemoryLimitError: names `what`, the bytes where they are known, and the setting to change.
    """
    try:
        yield
    except MemoryError as error:
        raise memory_limit_error(what, limit, nbytes, error) from None


def memory_limit_error(
    what: str, limit: int | None, nbytes: int | None, error: MemoryError
) -> MemoryLimitError:
    """The same as an error to raise."""
    return MemoryLimitError(_message(what, limit, nbytes, str(error)))


def _message(what: str, limit: int | None, nbytes: int | None, error: str) -> str:
    found = _ASKED.search(error)
    size = human_bytes(nbytes) if nbytes is not None else found.group(1) if found else "more memory"
    if limit is None:
        return (
            f"{what} needs {size} on the GPU, which has not so much left: close what else uses it, "
            "make the query hold less, or run it on the CPU (SET device = 'cpu')"
        )
    return (
        f"{what} needs {size} on the GPU, and gpu_memory_limit is {human_bytes(limit)}. "
        "Raise it with SET gpu_memory_limit = '...', or make the query hold less"
    )
