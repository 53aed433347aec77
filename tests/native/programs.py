"""Builds the C++ test programs."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compiled_programs import compile_program

REPOSITORY = Path(__file__).parents[2]
CORE = Path("driver", "core")
NATIVE = REPOSITORY / "driver" / "native"
TESTS = Path(__file__).parent
FLAGS = ["-std=c++20", "-O1", "-g1", "-pthread"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def compiler() -> str:
    """The C++ compiler; skips the test if there is none."""
    name = os.environ.get("CXX") or "g++"
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not there to build with")
    return name


def sanitizer(kinds: str, tmp_path: Path) -> list[str]:
    """Flags for these sanitizers; skips the test if the compiler has no runtime for them."""
    flags = [f"-fsanitize={kinds}", "-fno-sanitize-recover=all"]
    if not kinds:
        return []
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}")
    if subprocess.run([compiler(), *flags, probe, "-o", tmp_path / "probe"]).returncode:
        pytest.skip(f"{compiler()} has no runtime for -fsanitize={kinds}")
    return flags


def native(*names: str) -> list[Path]:
    """Sources of driver/native: their paths there, without the suffix."""
    return [NATIVE / f"{name}.cpp" for name in names]


def software_controller() -> list[Path]:
    """Sources of the controller that this process is, and of queue pairs' memory."""
    return native(
        "queues/queue_memory",  # before those that use names of io_uring as theirs
        "status_text",
        "controller/async_commands",
        "controller/copy_batch",
        "controller/drive_profile",
        "controller/faults",
        "controller/namespace",
        "controller/software_controller",
        "controller/worker",
        "executors/direct_executor",
        "executors/file_transfer",
        "executors/io_uring",
        "executors/thread_executor",
        "threads/thread_pool",
        "files/bus_guard",
        "files/direct_io",
    )


def large_memory() -> list[Path]:
    """Sources of memory that vectors are in."""
    return native("memory/large_memory")


def shared_work() -> list[Path]:
    """Sources of what shares work among threads, which decoding does."""
    return native("threads/shared_work", "threads/thread_budget", "threads/thread_pool")


def build(
    program: Path, sources: Sequence[Path], *, flags: Sequence[str] = (), headers: Path = REPOSITORY
) -> Path:
    """Compiles and links ``sources`` into ``program``; headers are those of ``headers`` where it has them."""
    includes = [f"-iquote{folder}" for folder in (headers, REPOSITORY)]
    return compile_program(compiler(), [*FLAGS, *WARNINGS, *flags, *includes], sources, program)


def joined(sources: Sequence[Path], folder: Path) -> Path:
    """A source in ``folder`` that is all of these in their order.

    Standard headers, which are most of what compiling each of them takes, are read once.
    """
    unit = folder / "joined.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    return unit


def mutated(folder: Path, header: str, right: str, wrong: str) -> Path:
    """A root for headers in ``folder``: the core, but one of its headers says ``wrong`` for ``right``."""
    shutil.copytree(REPOSITORY / CORE, folder / CORE)
    path = folder / CORE / header
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))
    return folder


def run(program: Path, *arguments: str | Path, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=timeout)
