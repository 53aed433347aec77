"""A process of the host drives queue pairs that a guest's drive serves, by memory that both see.

Nothing of ours serves here: QEMU's controller fetches entries that another process wrote, and lands data in
its memory. What drives the rings may be a GPU as well, since the memory is the host's.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.guests.boot import Boot, run
from tests.guests.checks import unavailable
from tests.guests.drives import drive
from tests.guests.machine import Machine
from tests.guests.packages import GuestsUnavailableError
from tests.guests.programs import FOLDER, Program, native
from tests.guests.results import parse
from tests.guests.steps import program
from tests.guests.verdicts import declared, verdict

READS = 1000
"""Of each of the host's threads."""
MEMORY_MB = 16
DRIVE = drive("64M", 512)
SOURCES = native("queues/queue_memory", "status_text")
SERVE = Program((FOLDER / "serve_rings.cpp", *native("nvme"), *SOURCES))
HOST = Program((FOLDER.parent / "host" / "drive_rings.cpp", *native("queues/cpu_queue_client"), *SOURCES))
SERVED = ("memory", "served", "done", "stopped")
DRIVEN = (
    "mapped",
    "served",
    "reads",
    "beyond-the-end",
    "no-such-namespace",
    "after-errors",
    "no-write",
    "rings",
)


def boot_of(memory: Path) -> Boot:
    """A guest with the memory as that of a PCI device."""
    shared = f"memory-backend-file,id=shared,mem-path={memory},size={MEMORY_MB}M,share=on"
    device = "ivshmem-plain,memdev=shared,addr=0x1e"
    machine = Machine(options=("-object", shared, "-device", device))
    step = program("serve", SERVE, DRIVE.address_at(0), "0000:00:1e.0", checks=SERVED, seconds=130)
    return Boot("shared-rings", (DRIVE,), (step,), machine=machine)


def test_the_host_drives_a_guests_drive(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    with memory.open("wb") as file:
        file.truncate(MEMORY_MB << 20)
    boot = boot_of(memory)
    try:
        host = subprocess.Popen([HOST.compiled(), memory, str(READS)], stdout=subprocess.PIPE, text=True)
        try:
            outcome = run(boot)
            said, _ = host.communicate(timeout=10)
        finally:
            host.kill()
    except GuestsUnavailableError as error:
        unavailable(str(error))
    for check in declared(boot):
        found = verdict(boot, outcome, check)
        assert found.kind == "ok", f"{check}: {found.words}\n{said}"
    results = parse(f"begin host 0\n{said}end host {host.returncode} 0\n")["host"].results
    assert {result.name: result.kind for result in results} == dict.fromkeys(DRIVEN, "ok"), said
