"""What every controller must do, done by drives: the suite of tests/native/conformance, over two of them.

The first has two namespaces with blocks of 512 bytes, the second one with blocks of 4 KiB.
"""

from __future__ import annotations

from tests.guests.boot import Boot
from tests.guests.checks import checks_of
from tests.guests.drives import Drive, Namespace
from tests.guests.packages import REPOSITORY
from tests.guests.programs import Program, native
from tests.guests.steps import program

SUITE = REPOSITORY / "tests" / "native" / "conformance"
CHECKS = (
    *(f"array/model-{width}" for width in (1, 2, 4, 8)),
    *("array/threads", "array/torn", "array/pattern", "array/last-page"),
    *("cache/pages", "cache/pinned", "cache/failures", "cache/same-pages"),
    *("client/sizes", "client/read-back", "client/deadlines", "client/interrupts", "client/whole-blocks"),
    *("namespaces/shapes", "namespaces/reads", "namespaces/writes", "namespaces/stripes"),
    *("rings/depths", "rings/tags", "rings/doorbells", "rings/leased-threads", "rings/shared-threads"),
    *("rings/transfers", "rings/slot-sizes", "rings/writes"),
    *("statuses/lba-range", "statuses/namespace", "statuses/opcode", "statuses/fields", "statuses/core"),
    *("statuses/read-only", "statuses/counted", "statuses/client"),
    *("stop/reads", "stop/writes", "stop/calls", "stop/sessions"),
)
PATTERNED = 16 << 20
SPACE = {"size": 24 << 20, "patterned": PATTERNED}
DRIVES = (
    Drive((Namespace(lba_bytes=512, **SPACE), Namespace(lba_bytes=512, **SPACE))),
    Drive((Namespace(lba_bytes=4096, **SPACE),)),
)
ADDRESSES = [each.address_at(index) for index, each in enumerate(DRIVES)]
SOURCES = (
    *(SUITE / f"{name}.cpp" for name in ("nvme_main", "nvme_backend", "runner")),
    *sorted(SUITE.glob("*_checks.cpp")),
)
DRIVER = native("queues/queue_memory", "queues/cpu_queue_client", "page_cache", "nvme", "status_text")
BOOT = Boot(
    "conformance",
    DRIVES,
    (
        program(
            "suite",
            Program((*SOURCES, *DRIVER)),
            *("--writable", "--patterned", str(PATTERNED), "--rounds", "10", *ADDRESSES),
            checks=tuple(f"drive{number}/{name}" for number in (0, 1) for name in CHECKS),
            seconds=150,
        ),
    ),
)
test_check = checks_of(BOOT)
