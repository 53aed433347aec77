"""The rings of any controller under a benchmark's clients, with content that is known, and that is not."""

import time
from typing import Any

import pytest

from bamquery import _native
from bamquery._native import QueueMemory
from bamquery.driver.faults import Fault
from bamquery.driver.software_controller import SoftwareController

BLOCK = 4096
BLOCKS = 8


def job(**changes: Any) -> _native.BlockJob:
    options = {
        "block_bytes": BLOCK,
        "blocks": BLOCKS,
        "clients": 1,
        "depth": 8,
        "pattern": "random",
        "theta": 1.0,
        "write_share": 0.0,
        "seed": 3,
        "verify": True,
    }
    return _native.BlockJob(**options | changes)


class Stand:
    """A controller over the content of a seed."""

    def __init__(self, threads: int = 1) -> None:
        self.memory = QueueMemory(leased_pairs=2, shared_pairs=0, depth=8, slot_bytes=BLOCK)
        self.controller = SoftwareController(self.memory, threads=threads)
        self.nsid = self.controller.add_memory(BLOCK * BLOCKS)
        self.contents = self.controller.contents(self.nsid)
        _native.fill_content(self.contents, 3)
        self.controller.start()

    def start(self, one: _native.BlockJob, *, known: bool) -> _native.RingsRun:
        return _native.start_controller_bench(
            self.memory, self.controller.native, one, nsid=self.nsid, known_content=known, deadline_seconds=5
        )


def wait_for(run: _native.RingsRun, operations: int) -> None:
    until = time.monotonic() + 60
    while run.operations < operations:
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("threads", [0, 1])
def test_bytes_that_change_meanwhile_are_found(known: bool, threads: int) -> None:
    """One byte of one block of eight, once all have been read."""
    stand = Stand(threads)
    with stand.controller:
        run = stand.start(job(clients=2), known=known)
        wait_for(run, 1000)
        stand.contents[5 * BLOCK + 7] ^= 1
        wait_for(run, run.operations + 1000)
        found = run.stop()
    assert found["mismatches"] > 0
    assert found["first_mismatch"] // BLOCK == 5
    assert found["errors"] == 0
    assert 0 < found["counters"]["doorbells"] <= found["operations"] + 16


@pytest.mark.parametrize("known", [False, True])
def test_all_is_well(known: bool) -> None:
    stand = Stand()
    with stand.controller:
        run = stand.start(job(), known=known)
        wait_for(run, 1000)
        found = run.stop()
    assert (found["mismatches"], found["errors"]) == (0, 0)


def test_content_that_nobody_filled_is_wrong_only_where_it_is_known() -> None:
    for known in (False, True):
        stand = Stand()
        stand.contents[:] = bytes(len(stand.contents))
        with stand.controller:
            run = stand.start(job(), known=known)
            wait_for(run, 100)
            found = run.stop()
        assert (found["mismatches"] > 0) == known


def test_errors_are_counted() -> None:
    stand = Stand()
    with stand.controller:
        stand.controller.set_faults([Fault("error", status=0x281, most=7)])
        run = stand.start(job(), known=False)
        wait_for(run, 100)
        found = run.stop()
    assert found["errors"] == 7
    assert "read at byte" in found["first_error"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"blocks": BLOCKS + 1}, "fewer blocks"),
        ({"block_bytes": 2 * BLOCK, "blocks": 1}, "do not take such blocks"),
        ({"clients": 3}, "fewer queue pairs"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], message: str) -> None:
    stand = Stand()
    with stand.controller, pytest.raises(ValueError, match=message):
        stand.start(job(**changes), known=False)


def test_a_namespace_that_is_not_there() -> None:
    stand = Stand()
    stand.nsid = 9
    with stand.controller, pytest.raises(ValueError, match="no namespace 9"):
        stand.start(job(), known=False)
