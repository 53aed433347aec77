"""The driver of NVMe drives against a controller in a thread, under the sanitizers."""

from pathlib import Path

import pytest

from tests.native.programs import NATIVE, build, native, run, sanitizer

HERE = Path(__file__).parent
SOURCES = [
    *sorted(HERE.glob("*.cpp")),
    *sorted((NATIVE / "nvme").rglob("*.cpp")),
    *native("queues/queue_memory", "queues/cpu_queue_client", "status_text"),
]


# All in one test, so that the program is built once.
@pytest.mark.parametrize("sanitizers", ["thread", pytest.param("address,undefined", marks=pytest.mark.slow)])
def test_nvme(sanitizers: str, tmp_path: Path) -> None:
    program = build(tmp_path / "nvme_test", [*SOURCES], flags=sanitizer(sanitizers, tmp_path))
    done = run(program, tmp_path, "1")
    assert done.returncode == 0, done.stderr
    assert "all tests of the NVMe driver passed" in done.stdout
