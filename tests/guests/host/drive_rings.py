"""Rings that a guest's drive serves, driven from Python by a CPU's threads or a GPU's.

Prints results as a guest does; `drive_rings.cpp` does it in C++. `tests/guests/ring_boot.py` runs it beside
the guest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from bamquery.driver.gpu.device import Gpu
from bamquery.errors import BamQueryError
from tests.guests.guest.check import check
from tests.guests.host.cpu_rings import CpuRings
from tests.guests.host.gpu_rings import KERNELS, GpuRings
from tests.guests.host.reads import Rings
from tests.guests.host.shared_rings import SharedMemory

CHECKS: Final = (
    "mapped",
    "served",
    "reads",
    "beyond-the-end",
    "no-such-namespace",
    "after-errors",
    "no-write",
    "rings",
)
SIZES: Final = (1, 8, 32)
"""Blocks of a command: of 512 bytes they are part of a page, a page, and a PRP list."""
_BEYOND_THE_END: Final = 0x080
_NO_SUCH_NAMESPACE: Final = 0x00B
_READ_ONLY: Final = 0x7C7


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where all was as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.guests.host.drive_rings", description=__doc__)
    parser.add_argument("memory", type=Path, help="the file that the guest has as a device's memory")
    parser.add_argument("commands", type=int, help="reads, at least")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the drive's content (default: %(default)s)")
    parser.add_argument(
        "--patience", type=float, default=100.0, help="seconds that the guest may take to start"
    )
    given = parser.parse_args(arguments)
    memory = SharedMemory(given.memory)
    check(memory.size > 0, "mapped", f"{memory.size} bytes")
    try:
        with opened(given.device) as gpu:
            if not check(memory.await_served(given.patience), "served", "by the guest"):
                return 1
            queues = memory.queues()
            what = (queues, memory.nsid, memory.blocks, given.seed)
            if gpu is None:
                return drive(CpuRings(*what), given.commands)
            with closing(GpuRings(gpu, *what)) as rings:
                return drive(rings, given.commands)
    except (BamQueryError, ValueError) as error:
        check(False, "driven", str(error))
        return 1
    finally:
        memory.say_done()


@contextmanager
def opened(device: str) -> Iterator[Gpu | None]:
    """The GPU, its kernels loaded: compiling takes longer than a guest waits. None for `cpu`."""
    if device == "cpu":
        yield None
        return
    with Gpu(int(device.partition(":")[2] or 0)) as gpu:
        for kernel in KERNELS:
            gpu.load("ring_test", kernel)
        yield gpu


def drive(rings: Rings, commands: int) -> int:
    """Read, and try what cannot be; 0 where all was as it must be."""
    done = wrong = failed = 0
    begin = last = time.monotonic()
    for reads in rings.read(commands, SIZES):
        now = time.monotonic()
        print(f"{reads.kind}: {reads.commands:,} commands in {now - last:.2f} s", flush=True)
        done, wrong, failed, last = (
            done + reads.commands,
            wrong + reads.wrong,
            failed + reads.failed,
            now,
        )
    rate = done / (last - begin)
    holds = check(
        done >= commands and wrong == failed == 0,
        "reads",
        f"{done:,} by {rings.name}, {rate:,.0f} a second: {wrong} words wrong, {failed} commands failed",
    )
    found = rings.refusals()
    for name, status, wanted in (
        ("beyond-the-end", found.beyond, _BEYOND_THE_END),
        ("no-such-namespace", found.missing, _NO_SUCH_NAMESPACE),
        ("after-errors", found.after, 0),
        ("no-write", found.write, _READ_ONLY),
    ):
        holds = check(status == wanted, name, f"status {status:03x}h") and holds
    lost = rings.lost()
    return int(not (check(lost == 0, "rings", f"{lost} commands or pairs lost") and holds))


if __name__ == "__main__":
    raise SystemExit(main())
