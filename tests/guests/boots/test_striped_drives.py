"""Arrays over 1, 2 and 4 drives as one address space, with blocks of 512 bytes and of 4 KiB."""

from __future__ import annotations

import pytest

from tests.guests.boot import Boot
from tests.guests.checks import checks_of
from tests.guests.drives import Drive, Fault, drive
from tests.guests.programs import FOLDER, Program, native
from tests.guests.steps import program

NATIVE = native("nvme", "page_cache", "queues/queue_memory", "status_text")
STRIPED = Program((FOLDER / "striped.cpp", *NATIVE))
IOPS = 500
SECTORS = range(2048, 4096, 8)
"""Of the second MiB: the first of each page."""


def addresses(drives: tuple[Drive, ...]) -> list[str]:
    return [each.address_at(index) for index, each in enumerate(drives)]


MIXED = (drive("16M", 512), drive("16M", 4096), drive("16M", 512), drive("16M", 4096))
test_whole = checks_of(
    Boot(
        "striped",
        MIXED,
        (
            program(
                "striped",
                STRIPED,
                "checks",
                *addresses(MIXED),
                checks=tuple(f"{what}-{count}" for count in (1, 2, 4) for what in ("gathers", "scatters")),
                seconds=150,
            ),
        ),
    )
)

FAILING = (
    drive("16M", 512),
    drive("16M", 512, faults=tuple(Fault(sector) for sector in SECTORS)),
    drive("16M", 512, faults=tuple(Fault(sector, "write") for sector in SECTORS)),
)
test_failing = checks_of(
    Boot(
        "striped-faults",
        FAILING,
        (program("striped", STRIPED, "faults", *addresses(FAILING), checks=("faults", "write-faults")),),
    )
)

THROTTLED = tuple(drive("16M", 512, iops=IOPS) for _ in range(4))
test_throttled = pytest.mark.long(
    checks_of(
        Boot(
            "striped-rates",
            THROTTLED,
            (program("striped", STRIPED, "rates", *addresses(THROTTLED), checks=("rate-2", "rate-4")),),
        )
    )
)
