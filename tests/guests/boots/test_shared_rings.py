"""A process of the host drives queue pairs that a guest's drive serves, by memory that both see.

Nothing of ours serves here: QEMU's controller fetches entries that another process wrote, and lands data in
its memory. What drives the rings may be threads of C++ or Python, or a GPU's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bamquery.driver.gpu.device import Gpu
from bamquery.errors import GpuError
from tests.guests.boot import Boot
from tests.guests.checks import unavailable
from tests.guests.drives import drive
from tests.guests.host.drive_rings import CHECKS
from tests.guests.host.shared_rings import RingShape
from tests.guests.packages import GuestsUnavailableError
from tests.guests.programs import FOLDER, Program, native
from tests.guests.ring_boot import MEMORY_FOLDER, faults, python_command, ring_boot, run_beside

READS = 1000
"""Of each of the threads of C++."""
READS_OF_PYTHON = 12_000
READS_OF_A_GPU = 1_000_000
SEED = 7
HOST = Program(
    (
        FOLDER.parent / "host" / "drive_rings.cpp",
        *native("queues/cpu_queue_client", "queues/queue_memory", "status_text"),
    )
)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A place for the file that both see, on no disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        yield Path(folder) / "memory"


def require(boot: Boot, command: list[str | Path], record: object) -> None:
    """The guest and the process beside it give all results that they have to, and all are good."""
    try:
        outcome, results, said = run_beside(boot, command)
    except GuestsUnavailableError as error:
        unavailable(str(error))
    wrong = faults(boot, outcome, results, CHECKS)
    assert not wrong, "\n".join([*wrong, said])
    record("guest", f"{boot.name}: {results['reads'].detail}")


def test_threads_of_cxx(memory: Path, record_property: object) -> None:
    boot = ring_boot("shared-rings", memory, RingShape(), drive("64M", 512), 120)
    require(boot, [compiled(HOST), memory, str(READS)], record_property)


def test_threads_of_python(memory: Path, record_property: object) -> None:
    boot = ring_boot("shared-rings-python", memory, RingShape(), drive("64M", 512, seed=SEED), 120)
    require(boot, python_command(memory, READS_OF_PYTHON, "cpu", SEED), record_property)


@pytest.mark.gpu
def test_threads_of_a_gpu(memory: Path, record_property: object) -> None:
    try:
        Gpu().close()
    except GpuError as error:
        pytest.skip(str(error))
    shape = RingShape(leased_pairs=16, shared_pairs=8)
    boot = ring_boot("shared-rings-gpu", memory, shape, drive("64M", 512, seed=SEED), 400)
    require(boot, python_command(memory, READS_OF_A_GPU, "cuda:0", SEED), record_property)


def compiled(program: Program) -> Path:
    try:
        return program.compiled()
    except GuestsUnavailableError as error:
        unavailable(str(error))
