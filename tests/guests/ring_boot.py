"""A guest whose drive serves rings in memory that the host has too, and the process that drives them there.

`python -m tests.guests.ring_boot --device cuda:0 --commands 1000000` is for a machine with a GPU; what that
needs of Debian's packages comes by apt, or from what `carry.py` packed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.guests.boot import Boot, Outcome, run
from tests.guests.drives import Drive, drive
from tests.guests.host import drive_rings
from tests.guests.host.shared_rings import RingShape, make_file
from tests.guests.machine import Machine
from tests.guests.packages import REPOSITORY
from tests.guests.programs import FOLDER, Program, native
from tests.guests.results import Result, parse
from tests.guests.steps import program
from tests.guests.verdicts import declared, verdict

SERVE: Final = Program(
    (FOLDER / "serve_rings.cpp", *native("nvme"), *native("queues/queue_memory", "status_text"))
)
SERVED: Final = ("memory", "served", "done", "stopped")
MEMORY_FOLDER: Final = Path("/dev/shm")
"""A GPU can write to pages of files that are in memory only."""
_SLOT: Final = "1e"
_END_S: Final = 50
_HOST_END_S: Final = 30


def ring_boot(name: str, memory: Path, shape: RingShape, served: Drive, seconds: int) -> Boot:
    """A guest with the file as memory of a PCI device; it serves for so many seconds at most."""
    size = make_file(memory, shape)
    shared = f"memory-backend-file,id=shared,mem-path={memory},size={size},share=on"
    machine = Machine(options=("-object", shared, "-device", f"ivshmem-plain,memdev=shared,addr=0x{_SLOT}"))
    words = (served.address_at(0), f"0000:00:{_SLOT}.0", *shape.arguments(), str(seconds))
    step = program("serve", SERVE, *words, checks=SERVED, seconds=seconds + 10)
    return Boot(name, (served,), (step,), machine=machine, seconds=seconds + _END_S)


def run_beside(boot: Boot, command: Sequence[str | Path]) -> tuple[Outcome, dict[str, Result], str]:
    """The boot beside a process of the host: what came of it, the process's results, and all that it said.

    Raises:
        GuestsUnavailableError: guests cannot run here.
    """
    host = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        outcome = run(boot)
        if outcome.why_not_finished():
            host.kill()
        said, _ = host.communicate(timeout=_HOST_END_S)
    finally:
        host.kill()
    results = parse(f"begin host 0\n{said}end host {abs(host.returncode)} 0\n")["host"].results
    return outcome, {result.name: result for result in results}, said


def faults(
    boot: Boot, outcome: Outcome, results: dict[str, Result], checks: Sequence[str] = drive_rings.CHECKS
) -> list[str]:
    """What was not as it must be, in the guest and beside it."""
    found = [(str(check), verdict(boot, outcome, check)) for check in declared(boot)]
    wrong = [f"guest {name}: {each.words}" for name, each in found if each.kind != "ok"]
    missing = [f"host {name}: it gave no result" for name in checks if name not in results]
    failed = [
        f"host {result.name}: {result.kind} {result.detail}"
        for result in results.values()
        if result.kind != "ok"
    ]
    return wrong + missing + failed


def python_command(memory: Path, commands: int, device: str, seed: int) -> list[str | Path]:
    """That of `drive_rings.py`."""
    module = [sys.executable, "-m", "tests.guests.host.drive_rings"]
    return [*module, memory, str(commands), "--device", device, "--seed", str(seed)]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where all was as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.guests.ring_boot", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--commands", type=int, default=20_000, help="reads, at least (default: %(default)s)")
    parser.add_argument("--leased", type=int, default=16, help="pairs to lease (default: %(default)s)")
    parser.add_argument("--shared", type=int, default=8, help="pairs for all (default: %(default)s)")
    parser.add_argument("--depth", type=int, default=64, help="of each (default: %(default)s)")
    parser.add_argument("--slot-bytes", type=int, default=16384, help="(default: %(default)s)")
    parser.add_argument(
        "--seconds", type=int, default=300, help="that the guest serves (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=7, help="of the drive's content (default: %(default)s)")
    parser.add_argument(
        "--expected-seed", type=int, help="of the content that reads are held against; another one must fail"
    )
    parser.add_argument("--memory-folder", type=Path, default=MEMORY_FOLDER, help="(default: %(default)s)")
    given = parser.parse_args(arguments)
    shape = RingShape(given.leased, given.shared, given.depth, given.slot_bytes)
    expected = given.seed if given.expected_seed is None else given.expected_seed
    with tempfile.TemporaryDirectory(dir=given.memory_folder) as folder:
        memory = Path(folder) / "memory"
        boot = ring_boot("driven-rings", memory, shape, drive("64M", 512, seed=given.seed), given.seconds)
        outcome, results, said = run_beside(
            boot, python_command(memory, given.commands, given.device, expected)
        )
    print(said, end="")
    print((outcome.folder / "output.log").read_text("utf-8", "replace"), end="")
    wrong = faults(boot, outcome, results)
    print("\n".join(wrong) if wrong else "all was as it must be")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
