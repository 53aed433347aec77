"""Kernels of generated texts: compiled beside the queries that want them; those used last are kept."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bamquery.driver.compile.compile_pool import Compilation
from bamquery.driver.compile.compiler import KernelText
from bamquery.driver.gpu.device import Gpu, GpuKernel
from bamquery.engine.profiling.kernel_use import note_chunk
from bamquery.errors import GpuError

KEPT: Final = 256
"""Kernels: each has some 30 KB of code, on the GPU and on the host, and a text of some kilobytes."""
_NAME: Final = "program"
"""What all of them are called."""


@dataclass(frozen=True, slots=True)
class ReadyProgram:
    """A kernel, and the seconds that compiling it took if this is the first to hear of it; else 0."""

    kernel: GpuKernel
    compiled_s: float


@dataclass(slots=True)
class _Program:
    """A text on its way to be a kernel."""

    compilation: Compilation
    kernel: GpuKernel | None = None


class ProgramKernels:
    """The kernel of each text, for launches on one stream; thread-safe.

    Of more than `kept`, those go that were used longest ago. CUDA unloads code without waiting for what was
    launched of it. So code stays when the last reference to its kernel goes, until an event is over that is
    recorded behind all that the stream has been given then.
    """

    def __init__(self, gpu: Gpu, lock: threading.RLock, stream: Any, kept: int = KEPT) -> None:
        """`lock` is held while kernels are loaded; `stream` is where they are started."""
        self._gpu = gpu
        self._lock = lock
        self._stream = stream
        self._kept = kept
        self._programs: OrderedDict[str, _Program] = OrderedDict()
        self._unused: deque[object] = deque()
        """Code of kernels that nobody has any more."""
        self._leaving: list[tuple[object, Any]] = []
        """Such code, and the event behind its launches."""

    def compilation(self, text: str) -> Compilation:
        """What a kernel waits for: begun now, where nobody has begun.

        Raises:
            GpuError: the compiler or the headers it needs are not installed.
        """
        with self._lock:
            return self._program(text).compilation

    def ready(self, text: str) -> ReadyProgram | None:
        """The kernel of a text; None while it is compiled, which begins now where nobody has begun.

        An error is told once: whoever asks again has it compiled again.

        Raises:
            KernelError: it does not compile.
            GpuError: it cannot be loaded.
        """
        with self._lock:
            program = self._program(text)
            if program.compilation.has_failed:
                del self._programs[text]
            return self._load(program)

    def peek(self, text: str) -> ReadyProgram | None:
        """The kernel of a text if it is there; nothing begins."""
        with self._lock:
            program = self._programs.get(text)
            if program is not None and not program.compilation.has_failed:
                with suppress(GpuError):  # who asks for this very one hears of it
                    return self._load(program)
        return None

    def _program(self, text: str) -> _Program:
        found = self._programs.get(text)
        if found is None:
            found = _Program(self._gpu.compile_text(KernelText(_NAME, text)))
            self._programs[text] = found
            while len(self._programs) > self._kept:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(text)
        return found

    def _load(self, program: _Program) -> ReadyProgram | None:
        if program.kernel is not None:
            return ReadyProgram(program.kernel, 0.0)
        if not program.compilation.has_ended:
            return None
        self._gpu.enter()
        self._let_go()
        kernel = program.kernel = self._gpu.load_compiled(program.compilation.kernel(), _NAME)
        weakref.finalize(kernel, self._unused.append, kernel.code).atexit = False
        return ReadyProgram(kernel, program.compilation.seconds)

    def _let_go(self) -> None:
        """Of code that nobody has and no launch needs any more."""
        while self._unused:
            event = self._gpu.events.record(self._stream)
            self._leaving.append((self._unused.popleft(), event))
        query = self._gpu.cuda.api.cuEventQuery
        waiting = []
        for code, event in self._leaving:
            if int(query(event)[0]):  # not over, or the GPU has failed
                waiting.append((code, event))
            else:
                self._gpu.events.give_back(event)
        self._leaving = waiting


def tell_problem(error: GpuError) -> None:
    """There is no kernel: the operators compute the same, and a warning says why."""
    note_chunk(by_kernel=False, problem=first_line(error))
    warnings.warn(
        f"a program is computed by operators, since it has no kernel: {error}", RuntimeWarning, stacklevel=2
    )


def first_line(error: GpuError) -> str:
    """What it says, without a compiler's log."""
    return str(error).partition("\n")[0]
