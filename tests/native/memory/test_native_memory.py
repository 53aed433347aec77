"""Memory that is kept for the next large arrays, in a program of its own."""

from pathlib import Path

import pytest

from tests.native.programs import build, large_memory, run, sanitizer

PROGRAM = Path(__file__).with_name("large_memory_test.cpp")


@pytest.mark.parametrize(
    "kinds",
    [
        "",
        pytest.param("thread", marks=pytest.mark.slow),
        pytest.param("address,undefined", marks=pytest.mark.slow),
    ],
)
def test_large_memory(kinds: str, tmp_path: Path) -> None:
    flags = sanitizer(kinds, tmp_path)
    done = run(build(tmp_path / "large_memory_test", [PROGRAM, *large_memory()], flags=flags))
    assert done.returncode == 0, done.stderr
    assert "all tests of large memory passed" in done.stdout
