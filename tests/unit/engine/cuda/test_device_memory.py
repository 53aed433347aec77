"""Errors of memory that a GPU has not: who asked, for how much, and what to change."""

from __future__ import annotations

import importlib

import pytest

from bamquery.errors import MemoryLimitError

RMM = "std::bad_alloc: out_of_memory: RMM failure: Exceeded memory limit (failed to allocate 16.0 GiB)"


def _reported(limit: int | None, nbytes: int | None, error: str) -> str:
    memory = importlib.import_module("bamquery.engine.cuda.device_memory")
    with pytest.raises(MemoryLimitError) as caught, memory.memory_errors("ORDER BY", limit, nbytes):
        raise MemoryError(error)
    return str(caught.value)


def test_beyond_the_limit(device: object) -> None:
    message = _reported(1 << 30, None, RMM)
    assert message.startswith("ORDER BY needs 16.0 GiB on the GPU, and gpu_memory_limit is 1.0 GiB.")
    assert "SET gpu_memory_limit" in message


def test_beyond_what_the_gpu_has(device: object) -> None:
    message = _reported(None, 3 << 20, "std::bad_alloc")
    assert message.startswith("ORDER BY needs 3.0 MiB on the GPU, which has not so much left")
    assert "SET device = 'cpu'" in message


def test_an_error_without_a_size(device: object) -> None:
    assert _reported(None, None, "cudaErrorMemoryAllocation").startswith("ORDER BY needs more memory")


def test_other_errors_stay_what_they_are(device: object) -> None:
    memory = importlib.import_module("bamquery.engine.cuda.device_memory")
    with pytest.raises(ValueError, match="something else"), memory.memory_errors("x", None):
        raise ValueError("something else")
