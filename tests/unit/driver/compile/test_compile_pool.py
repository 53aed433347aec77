"""Compiling beside those who want the kernel: their waits, errors, and what ends or forks meanwhile."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from bamquery.driver.compile.compile_pool import Compilation, CompilePool
from bamquery.driver.compile.compiler import CompiledKernel
from bamquery.errors import CancelledError, KernelError

MADE = CompiledKernel(b"code", "", cached=False)
STORED = CompiledKernel(b"code", "", cached=True)
LONG_S = 60.0


class Held:
    """A compiler that has not come to an end before it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.ended = threading.Event()

    def __call__(self) -> CompiledKernel:
        self.begun.set()
        assert self.go_on.wait(LONG_S)
        self.ended.set()
        return MADE


@pytest.fixture
def held() -> Iterator[Held]:
    compiler = Held()
    yield compiler
    compiler.go_on.set()


@pytest.fixture
def pool() -> CompilePool:
    return CompilePool(threads=2)


def test_whoever_wants_the_same_gets_it(pool: CompilePool, held: Held) -> None:
    first = pool.start("a", "a", held)
    assert held.begun.wait(LONG_S)
    assert pool.start("a", "a", held) is first
    assert not first.has_ended
    held.go_on.set()
    assert first.wait() is MADE
    assert first.seconds > 0
    assert pool.settle(LONG_S)
    assert pool.start("a", "a", lambda: STORED) is not first, "what has ended is the cache's"


def test_what_was_stored_took_no_time(pool: CompilePool) -> None:
    found = pool.start("a", "a", lambda: STORED)
    assert (found.wait(), found.seconds) == (STORED, 0.0)
    assert Compilation.ended(STORED).has_ended


def test_kernels_are_compiled_beside_each_other(pool: CompilePool) -> None:
    """Each of two waits for the other one to begin."""
    both = threading.Barrier(2)

    def compile_it() -> CompiledKernel:
        both.wait(LONG_S)
        return MADE

    found = [pool.start(key, key, compile_it) for key in "ab"]
    assert [one.wait() for one in found] == [MADE] * 2


def test_more_than_threads_wait_their_turn(pool: CompilePool) -> None:
    helds = [Held() for _ in range(5)]
    found = [pool.start(number, "a", one) for number, one in enumerate(helds)]
    assert all(one.begun.wait(LONG_S) for one in helds[:2])
    assert not any(one.begun.is_set() for one in helds[2:])
    for one in helds:
        one.go_on.set()
    assert [one.wait() for one in found] == [MADE] * 5
    assert sum(thread.name == "bamquery-compile" for thread in threading.enumerate()) >= 2


def test_everybody_hears_of_an_error(pool: CompilePool) -> None:
    def fail() -> CompiledKernel:
        raise KernelError("does not compile", "a.cu", 3)

    found = pool.start("a", "a", fail)
    for _ in range(2):
        with pytest.raises(KernelError, match=r"a\.cu:3: does not compile"):
            found.wait()
    assert pool.start("b", "b", lambda: MADE).wait() is MADE, "its thread goes on"


def test_who_does_not_want_to_wait_does_not(pool: CompilePool, held: Held) -> None:
    """The kernel is made all the same."""
    found = pool.start("a", "a", held)

    def check() -> None:
        raise CancelledError("no")

    with pytest.raises(CancelledError):
        found.wait(check)
    held.go_on.set()
    assert found.wait() is MADE


def test_ctrl_c_ends_a_wait(pool: CompilePool, held: Held) -> None:
    found = pool.start("a", "a", held)
    asked = []

    def press_once() -> None:
        if not asked:
            asked.append(True)
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        found.wait(press_once)
    held.go_on.set()
    assert found.wait() is MADE


def test_what_never_ends_is_given_up(held: Held) -> None:
    """So is what never begins, behind it."""
    pool = CompilePool(threads=1, deadline_s=0.05)
    found = pool.start("a", "kernel a", held)
    behind = pool.start("b", "kernel b", lambda: MADE)
    with pytest.raises(KernelError, match=r"kernel a: compiling it did not end in 0\.05 s"):
        found.wait()
    with pytest.raises(KernelError, match=r"kernel b: compiling it did not begin in 0\.05 s"):
        behind.wait()
    held.go_on.set()
    assert pool.settle(LONG_S)
    with pytest.raises(KernelError, match="did not end"):
        found.wait()
    assert pool.start("a", "a", lambda: MADE).wait() is MADE


def test_the_end_waits_for_what_is_compiled_only(held: Held) -> None:
    pool = CompilePool(threads=1)
    found, behind = pool.start("a", "a", held), pool.start("b", "b", Held())
    assert held.begun.wait(LONG_S)
    pool.end(0.01)
    assert not found.has_ended
    with pytest.raises(KernelError, match="the process ends"):
        behind.wait()
    held.go_on.set()
    pool.end()
    assert found.kernel() is MADE


def _run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=LONG_S
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


_SCRIPT = """
import os, threading, time
from bamquery.driver.compile.compile_pool import POOL
from bamquery.driver.compile.compiler import CompiledKernel
from bamquery.errors import KernelError

begun, go_on = threading.Event(), threading.Event()

def compile_it():
    begun.set()
    go_on.wait()
    print("compiled", flush=True)
    return CompiledKernel(b"", "", cached=False)

found = POOL.start("a", "kernel a", compile_it)
begun.wait()
"""


def test_a_process_ends_behind_what_it_compiles() -> None:
    assert _run(f"{_SCRIPT}threading.Timer(0.2, go_on.set).start()\n") == "compiled\n"


def test_a_forked_process_compiles_anew() -> None:
    """It may have been forked while another thread had the pool."""
    script = f"""{_SCRIPT}
with POOL._changed:
    child = os.fork()
    if child == 0:
        try:
            found.wait()
        except KernelError as error:
            print(error, flush=True)
        again = POOL.start("a", "kernel a", lambda: CompiledKernel(b"child", "", cached=False))
        print(again.wait().code, flush=True)
        os._exit(0)
os.waitpid(child, 0)
go_on.set()
print(found.wait().code)
"""
    assert _run(script).splitlines() == [
        "kernel a was not compiled: the process was forked meanwhile",
        "b'child'",
        "compiled",
        "b''",
    ]


def test_keys_have_a_lock_only_while_it_is_wanted() -> None:
    from bamquery.driver.compile import compiler

    with compiler._LOCKS.for_key(b"key"):
        assert b"key" in compiler._LOCKS._of_key
    assert b"key" not in compiler._LOCKS._of_key
