"""The software controller under the sanitizers: statuses, faults, namespaces, its end; and a stress."""

import os
from pathlib import Path

import pytest

from tests.native.programs import build, joined, run, sanitizer, software_controller


@pytest.fixture(
    scope="module",
    params=["address", *(pytest.param(kinds, marks=pytest.mark.slow) for kinds in ("undefined", "thread"))],
)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("controller")
    flags = [*sanitizer(request.param, folder), "-O0"]  # compilers take a third less time
    tests = [Path(__file__).with_name(f"controller_{name}.cpp") for name in ("test", "load", "stress")]
    return build(folder / "controller_test", [joined([*tests, *software_controller()], folder)], flags=flags)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    try:
        (tmp_path / "probe").touch()
        os.close(os.open(tmp_path / "probe", os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"no direct reads here: {error}")
    return tmp_path


def test_controller(program: Path, folder: Path) -> None:
    done = run(program, folder)
    assert done.returncode == 0, done.stderr
    assert "all controller tests passed" in done.stdout
    # Here, so that no other process builds the program once more.
    done = run(program, folder, "1", "2")
    assert done.returncode == 0, done.stderr
    assert "rounds passed" in done.stdout


@pytest.mark.slow
def test_random_faults_for_long(program: Path, folder: Path) -> None:
    seed = str(int.from_bytes(os.urandom(4)))
    done = run(program, folder, seed, "180", timeout=900)
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
