"""What the baselines with cuDF share: memory of the GPU, errors, and the questions asked of a frame.

cuDF leaves nulls out of a mean, as SQL does, and NaN too, which SQL does not; TLC's files and generated
trips have no NaN, and an answer that differed would be reported as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import cupy
import rmm

from bamquery.errors import BamQueryError, MemoryLimitError
from bamquery.queries.questions import LONG_MILES, Question


def prepare(label: str) -> None:
    """Let cuDF take its memory from a pool: cudaMalloc and cudaFree would cost more than the work.

    Raises:
        BamQueryError: there is no GPU that CUDA can use.
    """
    try:
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own classes, which depend on its version
        raise BamQueryError(
            f"comparing with {label} needs an NVIDIA GPU, and CUDA finds none: {error}"
        ) from error
    if type(rmm.mr.get_current_device_resource()) is rmm.mr.CudaMemoryResource:
        rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())


@contextmanager
def synchronise(label: str, what: str) -> Iterator[None]:
    """Around work on the GPU: it is done when this ends.

    Raises:
        MemoryLimitError: the GPU's memory is too small for it; says for what.
    """
    try:
        yield
        cupy.cuda.runtime.deviceSynchronize()
    except MemoryError as error:
        raise MemoryLimitError(
            f"{label}: {what} do not fit into the GPU's memory ({error}): ask it about fewer rows, "
            "or leave it out of --against"
        ) from error


def long_trips(frame: Any, at_least: float = LONG_MILES) -> Any:
    """Rows of long trips, nulls left out."""
    return frame[frame["trip_distance"] >= at_least]


def mean_of(long: Any, question: Question) -> float | None:
    """The average quotient of some trips, None where no trip counts."""
    first, *others = (long[name] for name in question.amounts)
    amount = reduce(lambda left, right: left - right, others, first)
    value = (amount / long["trip_distance"]).mean()
    # Of no values, cuDF's mean is NaN or (in some versions) its null.
    return float(value) if isinstance(value, float) and not math.isnan(value) else None
