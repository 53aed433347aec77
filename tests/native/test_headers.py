"""Every header that kernels include compiles alone as C++, whoever includes it first."""

import subprocess
from pathlib import Path

import pytest

from tests.native.programs import CORE, REPOSITORY, WARNINGS, compiler

HEADERS = sorted(
    str(path.relative_to(REPOSITORY))
    for folder in (CORE, Path("storage", "core"), Path("engine", "kernels"))
    for path in (REPOSITORY / folder).rglob("*.hpp")
)


@pytest.mark.slow
@pytest.mark.parametrize("header", HEADERS)
def test_header_compiles_alone(header: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(f'#include "{header}"\n#include "{header}"\n')
    command = [compiler(), "-std=c++20", "-fsyntax-only", *WARNINGS, f"-iquote{REPOSITORY}", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
