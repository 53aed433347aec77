"""Kernels of programs in tests of what they compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bamquery.statement_context.cancellation import check_cancelled


@contextmanager
def waiting_for_kernels() -> Iterator[None]:
    """All chunks are the programs', as far as these go: whoever wants a kernel waits for it."""
    from bamquery.engine.cuda.pipeline.program_kernels import ProgramKernels

    ready = ProgramKernels.ready

    def wait(self: ProgramKernels, text: str) -> Any:
        self.compilation(text).wait(check_cancelled)
        return ready(self, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramKernels, "ready", wait)
        yield
