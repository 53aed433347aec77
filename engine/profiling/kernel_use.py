"""What generated kernels did for an operator, told by who starts them, deep within a device."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bamquery.engine.profiling.operator_profile import OperatorProfile

_DETAIL = "kernels"


@dataclass
class KernelUse:
    """Of one operator.

    Attributes:
        chunks: that kernels could compute.
        by_kernels: that they did.
        meanwhile: that operators computed, because a kernel was still being compiled.
        compiled_s: what compiling those took that were ready in time.
        problem: why there is no kernel.
    """

    chunks: int = 0
    by_kernels: int = 0
    meanwhile: int = 0
    compiled_s: float = 0.0
    problem: str = ""

    def describe(self) -> str:
        """In one line."""
        parts = [f"{self.by_kernels} of {self.chunks} chunks"]
        if self.meanwhile:
            parts.append(f"{self.meanwhile} by operators meanwhile")
        if self.compiled_s:
            parts.append(f"compiled in {1e3 * self.compiled_s:.0f} ms")
        if self.problem:
            parts.append(self.problem)
        return ", ".join(parts)


class _Working(threading.local):
    profile: OperatorProfile | None = None


_working = _Working()


def begin_work(profile: OperatorProfile | None) -> OperatorProfile | None:
    """This thread works for an operator from now on; returns whom it did so far, to go on with afterwards."""
    before = _working.profile
    _working.profile = profile
    return before


def note_chunk(
    *, by_kernel: bool, meanwhile: bool = False, compiled_s: float = 0.0, problem: str = ""
) -> None:
    """This thread's operator has had a chunk computed: by a kernel, or while that was compiled, or neither.

    `compiled_s`: what compiling it took, for who hears of it first.
    """
    profile = _working.profile
    if profile is None:
        return
    use = profile.kernels or KernelUse()
    profile.kernels = use
    use.chunks += 1
    use.by_kernels += by_kernel
    use.meanwhile += meanwhile
    use.compiled_s += compiled_s
    use.problem = problem or use.problem
    profile.details[_DETAIL] = use.describe()
