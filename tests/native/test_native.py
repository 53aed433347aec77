"""The native code under the sanitizers, in a program of its own."""

from pathlib import Path

import pytest

from tests.native.programs import NATIVE, REPOSITORY, build, run, sanitizer

FOLDERS = [NATIVE, REPOSITORY / "storage" / "native"]


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_native_code_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    sources = [path for folder in FOLDERS for path in folder.rglob("*.cpp") if "binding" not in path.stem]
    test = Path(__file__).with_name("native_test.cpp")
    program = build(tmp_path / "native_test", [test, *sources], flags=sanitizer(sanitizers, tmp_path))
    done = run(program, tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "all native tests passed" in done.stdout
