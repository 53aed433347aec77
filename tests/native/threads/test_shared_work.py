"""Work that threads share, in a program of its own."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.native.programs import NATIVE, build, run, sanitizer, shared_work

PROGRAM = Path(__file__).with_name("shared_work_test.cpp")


@pytest.mark.parametrize("kinds", ["", pytest.param("thread", marks=pytest.mark.slow)])
def test_shared_work(kinds: str, tmp_path: Path) -> None:
    flags = sanitizer(kinds, tmp_path)
    program = build(tmp_path / "shared_work_test", [PROGRAM, *shared_work()], flags=flags)
    done = run(program, *(["alone"] if kinds == "thread" else []))
    assert done.returncode == 0, done.stderr
    assert "all tests of shared work passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("while (helping != kOver) {", "while (false) {"),
        ("if (failure_) std::rethrow_exception(failure_);", ""),
        ("budget->give_back(count);", ""),
    ],
    ids=["waits", "failure", "gives back"],
)
def test_a_planted_error_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    flags = sanitizer("address", tmp_path)
    folder = tmp_path / "driver" / "native" / "threads"
    shutil.copytree(NATIVE / "threads", folder)
    source = folder / "shared_work.cpp"
    assert source.read_text().count(right) == 1
    source.write_text(source.read_text().replace(right, wrong))
    sources = [PROGRAM, *sorted(folder.glob("*.cpp"))]
    program = build(tmp_path / "shared_work_test", sources, flags=flags, headers=tmp_path)
    with suppress(subprocess.TimeoutExpired):  # what nobody waits for may also never end
        assert run(program, timeout=20).returncode != 0
