"""How fast a guest's drive is read by its kernel, and by the project's own driver: recorded, not judged."""

from __future__ import annotations

import pytest

from tests.guests.boot import Boot
from tests.guests.boots.test_driver import DRIVE, KINDS
from tests.guests.checks import checks_of
from tests.guests.drives import drive
from tests.guests.programs import FOLDER, Program, native
from tests.guests.steps import shell

KERNEL = Program((FOLDER / "kernel_rate.cpp", *native("executors/io_uring")))
DRIVES = (drive("64M", 512), drive("64M", 4096))
PROGRAMS = {"guest/programs/drive": DRIVE, "guest/programs/kernel_rate": KERNEL}


def measured(index: int) -> str:
    """The kernel has the drive, then the driver."""
    address = DRIVES[index].address_at(index)
    return f"""
bind {address} nvme
device=/dev/$(basename /sys/bus/pci/devices/{address}/nvme/nvme*)n1
tries=100
until [ -b "$device" ] || [ $tries = 0 ]; do usleep 50000; tries=$((tries - 1)); done
/guest/programs/kernel_rate $device
bind {address} vfio-pci
/guest/programs/drive {index} {address} rates
"""


CHECKS = ("opened", "kernel-rate", *(f"{kind}-rate" for kind in KINDS))
test_rates = pytest.mark.long(
    checks_of(
        Boot(
            "rates",
            DRIVES,
            tuple(
                shell(f"of-{size}", measured(index), checks=CHECKS, files={} if index else PROGRAMS)
                for index, size in enumerate((512, 4096))
            ),
        )
    )
)
