"""Packed columns under the sanitizers, at every level of instructions that the processor has."""

from pathlib import Path

import pytest

from tests.native.programs import REPOSITORY, build, native, run, sanitizer

PACKED = REPOSITORY / "storage" / "native" / "packed"


@pytest.mark.slow
def test_packed_columns_under_sanitizers(tmp_path: Path) -> None:
    flags = ["-ffp-contract=off", *sanitizer("address,undefined", tmp_path)]
    sources = [path for path in sorted(PACKED.glob("*.cpp")) if "binding" not in path.stem]
    test = Path(__file__).with_name("packed_test.cpp")
    program = build(tmp_path / "packed_test", [test, *sources, *native("crc32c")], flags=flags)
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert "all packed tests passed" in done.stdout
