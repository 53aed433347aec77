"""Queue pairs on CPU threads, under the sanitizers: unit tests, and random commands with faults."""

from pathlib import Path

import pytest

from tests.native.programs import build, joined, native, run, sanitizer

SOURCES = [
    *(
        Path(__file__).with_name(f"{name}.cpp")
        for name in (
            "rings_test",
            "queue_memory_test",
            "queue_pair_test",
            "queue_pool_test",
            "ring_stress",
            "serviced_pair_test",
        )
    ),
    *native("queues/queue_memory"),
]


def built(sanitizers: str, folder: Path) -> Path:
    return build(folder / "rings_test", [joined(SOURCES, folder)], flags=sanitizer(sanitizers, folder))


# All in one test, so that the program is built once.
@pytest.mark.parametrize("sanitizers", ["thread", pytest.param("address,undefined", marks=pytest.mark.slow)])
def test_rings(sanitizers: str, tmp_path: Path) -> None:
    program = built(sanitizers, tmp_path)
    for arguments in [(), ("stress", "4", "1")]:
        done = run(program, *arguments)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["", "thread", "address,undefined"])
def test_many_random_commands(sanitizers: str, tmp_path: Path) -> None:
    done = run(built(sanitizers, tmp_path), "stress", "120", "100000")
    assert done.returncode == 0, done.stderr
