"""What `bamquery nvme test` finds: differences, wrong statuses, errors; and how Ctrl-C ends it."""

import numpy as np
import pytest

from bamquery import _native
from bamquery.driver.controller import NamespaceShape
from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.nvme.rates import LOADS
from bamquery.driver.nvme.reading import Way, compare, draw_places, read_blocks, two_ways
from bamquery.driver.nvme.trial import Findings, Trial, call_interruptibly
from bamquery.driver.nvme.trial_report import findings_lines
from bamquery.driver.software_controller import SoftwareController
from tests.unit.driver.nvme.fake_drive import BLOCKS, content, opener

ALL = 10 * BLOCKS


def shape_of(block_bytes: int = 512, blocks: int = BLOCKS) -> NamespaceShape:
    return NamespaceShape(1, block_bytes, blocks, block_bytes * blocks, False, False, "drive")


def quiet(text: str) -> None:
    """Show nothing."""


def trial(open_way: object, shape: NamespaceShape, blocks: int = ALL) -> Findings:
    findings = Findings()
    Trial(open_way, shape, quiet, rate_seconds=0.02).run(blocks, findings)  # type: ignore[arg-type]
    return findings


@pytest.mark.parametrize("block_bytes", [512, 4096])
@pytest.mark.parametrize("blocks", [1, 2, 9, 1000, BLOCKS])
def test_all_is_well(block_bytes: int, blocks: int) -> None:
    findings = trial(opener(content(block_bytes, blocks), block_bytes), shape_of(block_bytes, blocks))
    text = "\n".join(findings_lines(findings))
    assert findings.right, text
    assert findings.comparison is not None
    assert 0 < findings.comparison.blocks <= blocks
    assert "all the same" in text
    assert [refusal.as_expected for refusal in findings.refusals] == [True] * 4
    assert [(refusal.sct, refusal.sc) for refusal in findings.refusals] == [(0, 0x80)] * 3 + [(0, 0x0B)]
    assert all(figures.verified and figures.operations for figures in findings.rates)
    first, second = findings.ways
    assert not set(vars(first).values()) & set(vars(second).values())


def test_little_memory_is_locked() -> None:
    """Users who are not root may often lock 8 MiB."""
    ways = [
        *two_ways(shape_of(4096), 64),
        *(Way(one.pairs, one.in_flight + 1, one.transfer_bytes, 1) for one in LOADS),
    ]
    for way in ways:
        memory = _native.QueueMemory(
            leased_pairs=way.pairs, shared_pairs=0, depth=way.depth, slot_bytes=way.transfer_bytes
        )
        assert memory.size < 5 << 20, way


def test_a_block_that_is_not_the_same_is_found() -> None:
    def change(number: int, view: memoryview) -> None:
        if number == 1:
            view[-1] ^= 1

    findings = trial(opener(content(), change=change), shape_of())
    assert not findings.right
    assert findings.comparison is not None
    different = findings.comparison.first_different
    assert findings.comparison.different == len(different) > 0  # it may be drawn more than once
    assert all(lba == BLOCKS - 1 and before != after for lba, before, after in different)
    assert f"{len(different)} DIFFER" in "\n".join(findings_lines(findings))


def test_differences_of_runs_have_their_lba() -> None:
    places = draw_places(shape_of(), ALL, 1)
    checksums = np.zeros(places.blocks, np.uint32)
    other = checksums.copy()
    other[len(places.singles) + places.run_blocks + 5] = 7
    found = compare(places, checksums, other)
    assert found.first_different == ((int(places.runs[1]) + 5, 0, 7),)


@pytest.mark.parametrize("around", [1, 3, 8])
@pytest.mark.parametrize("pairs", [1, 2])
def test_checksums_are_those_of_the_blocks(around: int, pairs: int) -> None:
    data = content()
    places = draw_places(shape_of(), ALL, 3)
    way = Way(pairs, 16, 4096, around)
    with opener(data)(way) as controller:
        found = read_blocks(controller, shape_of(), places, way, lambda _: None)
    every = _native.strided_crcs(data, 512)
    assert (found == [every[places.lba(at)] for at in range(places.blocks)]).all()


def test_what_should_have_been_refused() -> None:
    """The namespace has more blocks than it says."""
    findings = trial(opener(content()), shape_of(blocks=BLOCKS - 8))
    assert [refusal.refused for refusal in findings.refusals] == [False, False, True, True]
    assert not findings.right
    assert "NOT REFUSED" in "\n".join(findings_lines(findings))


def test_an_error_ends_it_and_is_named() -> None:
    fault = Fault("error", opcode=Opcode.READ, first_lba=BLOCKS - 1, status=0x281)
    findings = trial(opener(content(), faults=(fault,)), shape_of())
    assert not findings.right
    assert f"LBA {BLOCKS - 1}, status 2h/81h" in findings.error
    assert findings.to_dict()["error"] == findings.error
    assert "ended before its end" in "\n".join(findings_lines(findings))


@pytest.mark.parametrize("word", ["way 1", "way 2", "measuring"])
def test_ctrl_c_leaves_no_controller(word: str) -> None:
    opened: list[SoftwareController] = []

    def say(text: str) -> None:
        if word in text:
            raise KeyboardInterrupt

    findings = Findings()
    with pytest.raises(KeyboardInterrupt):
        Trial(opener(content(), opened=opened), shape_of(), say).run(ALL, findings)
    assert findings.interrupted
    assert not findings.right
    assert opened
    assert not any(controller.native.running for controller in opened)


def test_calls_that_ctrl_c_does_not_wait_for() -> None:
    assert call_interruptibly(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_interruptibly(lambda: 1 // 0)
