"""Builds the C++ test programs."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CORE = REPOSITORY / "driver" / "core"
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


def build(program: Path, sources: Sequence[Path], *, flags: Sequence[str] = (), core: Path = CORE) -> Path:
    """Compiles and links ``sources`` with the headers of the core into ``program``."""
    includes = [f"-I{folder}" for folder in (core, NATIVE, TESTS)]
    subprocess.run([compiler(), *FLAGS, *WARNINGS, *flags, *includes, *sources, "-o", program], check=True)
    return program


def run(program: Path, *arguments: str | Path, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=timeout)
