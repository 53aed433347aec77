"""A drive through iommufd, not a VFIO group. Where its modules cannot be made, it is skipped as untried."""

from __future__ import annotations

import pytest

from tests.guests.boot import Boot
from tests.guests.checks import checks_of
from tests.guests.drives import drive
from tests.guests.iommufd import iommufd_kernel
from tests.guests.programs import FOLDER, Program
from tests.guests.steps import program

DRIVES = (drive("64M"),)
BOOT = Boot(
    "iommufd",
    DRIVES,
    (
        program(
            "iommufd",
            Program((FOLDER / "iommufd.cpp",)),
            DRIVES[0].address_at(0),
            checks=("bound", "attached", "mapped", "registers"),
        ),
    ),
    kernel=iommufd_kernel,
)
test_check = pytest.mark.long(checks_of(BOOT))
