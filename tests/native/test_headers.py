"""Every header of the core compiles alone as C++, whoever includes it first."""

import subprocess
from pathlib import Path

import pytest

from tests.native.programs import CORE, WARNINGS, compiler


@pytest.mark.slow
@pytest.mark.parametrize("header", sorted(CORE.glob("*.hpp")), ids=lambda header: header.name)
def test_header_compiles_alone(header: Path, tmp_path: Path) -> None:
    source = tmp_path / "alone.cpp"
    source.write_text(f'#include "{header.name}"\n#include "{header.name}"\n')
    command = [compiler(), "-std=c++20", "-fsyntax-only", *WARNINGS, f"-I{CORE}", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
