"""Kernels compiled by threads of their own: who wants one goes on meanwhile, or waits, interruptibly."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from bamquery.driver.compile.compiler import CompiledKernel
from bamquery.errors import KernelError

DEADLINE_S: Final = 120.0
"""Until a compilation begins, and again until it ends: the longest takes 13 s where nothing else runs."""
_THREADS: Final = 4
"""A query has two to six kernels; each keeps a processor busy."""
_PATIENCE_S: Final = 0.02
_EXIT_S: Final = 10.0
"""For compilations to end before the interpreter goes away under them."""


class Compilation:
    """One kernel that is being compiled, or was; thread-safe.

    Attributes:
        seconds: that compiling took, once it has ended; 0 where nobody had to.
    """

    def __init__(self, name: str, deadline_s: float = DEADLINE_S) -> None:
        """Of a kernel of that name, which nobody has begun with."""
        self.seconds = 0.0
        self._name = name
        self._deadline_s = deadline_s
        self._last_sign = time.monotonic()
        self._begun = False
        self._ended = threading.Event()
        self._outcome: CompiledKernel | BaseException | None = None

    @staticmethod
    def ended(kernel: CompiledKernel) -> Compilation:
        """One that there was no need for."""
        found = Compilation("")
        found._settle(kernel)
        return found

    @property
    def has_ended(self) -> bool:
        """Whether `kernel` answers: it is there, or there will be none."""
        if self._ended.is_set():
            return True
        if time.monotonic() - self._last_sign > self._deadline_s:
            what = "end" if self._begun else "begin"
            self._settle(KernelError(f"{self._name}: compiling it did not {what} in {self._deadline_s:g} s"))
        return self._ended.is_set()

    @property
    def has_failed(self) -> bool:
        """Whether there will be no kernel."""
        return isinstance(self._outcome, BaseException)

    def kernel(self) -> CompiledKernel:
        """What was made, once it has ended.

        Raises:
            KernelError: it does not compile, or not in time.
            GpuError: the compiler or the headers it needs are not installed.
        """
        outcome = self._outcome
        assert outcome is not None, "it has not ended"
        if isinstance(outcome, BaseException):
            raise outcome.with_traceback(None)
        return outcome

    def wait(self, check: Callable[[], None] | None = None) -> CompiledKernel:
        """What is made, once it has ended; `check` raises where nobody waits any longer. Ctrl-C works.

        Who stops waiting stops nothing: the kernel is compiled, and kept for whoever asks next.

        Raises:
            KernelError: it does not compile, or not in time.
            GpuError: the compiler or the headers it needs are not installed.
        """
        while not self.has_ended:
            if check is not None:
                check()
            self._ended.wait(_PATIENCE_S)
        return self.kernel()

    def run(self, compile_it: Callable[[], CompiledKernel]) -> None:
        """Compile, and say what came of it."""
        self._last_sign, self._begun = time.monotonic(), True
        begun = time.perf_counter()
        try:
            outcome: CompiledKernel | BaseException = compile_it()
        except BaseException as error:  # whoever asks for the kernel hears of it
            outcome = error
        self._settle(outcome, time.perf_counter() - begun)

    def lose(self, reason: str) -> None:
        """Nobody goes on with it; in a forked process nobody gives back a lock, either."""
        self._ended = threading.Event()
        self._settle(KernelError(f"{self._name} was not compiled: {reason}"))

    def _settle(self, outcome: CompiledKernel | BaseException, seconds: float = 0.0) -> None:
        if self._outcome is None:  # the first word counts: where two come at once, either may
            self.seconds = 0.0 if isinstance(outcome, CompiledKernel) and outcome.cached else seconds
            self._outcome = outcome
        self._ended.set()


class CompilePool:
    """A few threads that compile, made when first needed and kept.

    NVRTC has no way to be stopped: a thread whose kernel is late stays with it, and others do the rest. The
    threads are daemons, so that nothing that hangs keeps a process from ending; at its end it waits for those
    that compile, since they would be at work in a library that is being torn down.
    """

    def __init__(self, threads: int = _THREADS, deadline_s: float = DEADLINE_S) -> None:
        self._threads = threads
        self._deadline_s = deadline_s
        self._known: dict[Hashable, Compilation] = {}
        self.renew()

    def renew(self) -> None:
        """Begin anew: in a forked process there are no threads, and what they did is lost."""
        lost, self._known = self._known, {}
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Hashable, Callable[[], CompiledKernel]]] = deque()
        self._alive = 0
        self._idle = 0
        for compilation in lost.values():
            compilation.lose("the process was forked meanwhile")

    def start(self, key: Hashable, name: str, compile_it: Callable[[], CompiledKernel]) -> Compilation:
        """Let a thread call `compile_it` soon; the compilation of the same key, where that has not ended.

        `name` is for errors.
        """
        with self._changed:
            found = self._known.get(key)
            if found is not None:
                return found
            made = self._known[key] = Compilation(name, self._deadline_s)
            self._waiting.append((key, compile_it))
            if self._idle >= len(self._waiting):
                self._changed.notify_all()
            elif self._alive < self._threads:
                self._begin_thread()
            return made

    def _begin_thread(self) -> None:
        if not self._alive:
            atexit.unregister(self.end)
            atexit.register(self.end)
        threading.Thread(target=self._work, name="bamquery-compile", daemon=True).start()
        self._alive += 1

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._waiting:
                    self._changed.wait()
                self._idle -= 1
                key, compile_it = self._waiting.popleft()
                compilation = self._known[key]
            if not compilation.has_ended:
                compilation.run(compile_it)
            del compile_it
            with self._changed:
                del self._known[key]
                self._changed.notify_all()

    @property
    def busy(self) -> bool:
        """Something is compiled, or waits for that."""
        return bool(self._known)

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is compiled; False: something still is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._known, timeout_s)

    def end(self, timeout_s: float = _EXIT_S) -> None:
        """Begin with nothing more, and wait for what is being compiled."""
        with self._changed:
            for key, _ in self._waiting:
                self._known.pop(key).lose("the process ends")
            self._waiting.clear()
        self.settle(timeout_s)


POOL: Final = CompilePool()
"""Of this process."""
os.register_at_fork(after_in_child=POOL.renew)
