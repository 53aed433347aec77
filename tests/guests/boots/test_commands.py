"""What people call: drives are listed, handed over, tested, measured and given back, for real."""

from __future__ import annotations

from tests.guests.boot import Boot
from tests.guests.checks import checks_of
from tests.guests.drives import drive
from tests.guests.programs import FOLDER
from tests.guests.steps import python

DRIVES = (drive("64M", 512), drive("64M", 4096))
ADDRESSES = [each.address_at(index) for index, each in enumerate(DRIVES)]
EACH = ("bound", "tested", "report", "measured", "written")
CHECKS = (
    *("listed", "swapped", "open", "claimed", "nowhere", "dry-run"),
    *(f"{what}-{number}" for number in (0, 1) for what in EACH),
    *("interrupted", "in-use", "given-back", "as-before", "no-faults"),
)
BOOT = Boot(
    "commands",
    DRIVES,
    (python("commands", str(FOLDER / "commands.py"), *ADDRESSES, checks=CHECKS, seconds=240),),
    driver="nvme",
    seconds=280,  # a dozen commands, each of which starts Python or reads a drive
)
test_check = checks_of(BOOT)
