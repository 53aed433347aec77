"""Arrays over namespaces of several controllers as one address space, against numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery._native import QueueMemory
from bamquery.driver.array import Array, PageCache, Striped
from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError

PAGE = 4096
WRITE_FAULT = 0x280
UNRECOVERED_READ = 0x281


@contextmanager
def controllers(
    blocks: Sequence[int], *, threads: int = 0, shared_pairs: int = 2
) -> Iterator[list[SoftwareController]]:
    """One for each of these LBA sizes."""
    with ExitStack() as stack:
        made = []
        for block in blocks:
            memory = QueueMemory(
                leased_pairs=0, shared_pairs=shared_pairs, depth=8, slot_bytes=PAGE, block_bytes=block
            )
            made.append(stack.enter_context(SoftwareController(memory, threads=threads)))
        yield made


def filled(drives: Sequence[SoftwareController], sizes: Sequence[int]) -> list[np.ndarray]:
    """Namespaces of so many bytes; their contents."""
    found = []
    for number, (drive, size) in enumerate(zip(drives, sizes, strict=True)):
        nsid = drive.add_memory(size, drive.memory.block_bytes)
        contents = np.frombuffer(drive.contents(nsid), np.uint8)
        contents[:] = np.random.default_rng(number).integers(0, 256, size, np.uint8)
        found.append(contents)
    return found


def joined(contents: Sequence[np.ndarray], order: Sequence[int], stripe: int) -> np.ndarray:
    """The address space, as its definition says, byte by byte."""
    rows = min(len(one) for one in contents) // stripe
    return np.concatenate(
        [contents[member][row * stripe : (row + 1) * stripe] for row in range(rows) for member in order]
    )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_address_space_of_several_drives_is_as_numpys(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 4))
    blocks = data.draw(st.lists(st.sampled_from([512, 4096]), min_size=count, max_size=count))
    pages = data.draw(st.lists(st.integers(5, 9), min_size=count, max_size=count))
    stripe = PAGE * data.draw(st.sampled_from([1, 2, 4]))
    order = data.draw(st.permutations(range(count)))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    with controllers(blocks) as drives:
        contents = filled(drives, [PAGE * size for size in pages])
        model = joined(contents, order, stripe).view(np.int64)
        offset = data.draw(st.integers(0, 40)) * 8
        model = model[offset // 8 :].copy()
        cache = PageCache(drives, pages=data.draw(st.integers(1, 6)), page_bytes=PAGE)
        space = Striped([(drive, 1) for drive in order], stripe)
        with Array(cache, space, "i8", len(model), offset=offset, writable=True) as array:
            assert (array[:] == model).all()
            for _ in range(4):
                places = random.integers(0, len(model), 300)
                assert (array.gather(places) == model[places]).all()
                values = random.integers(0, 1 << 60, 300)
                array.scatter(places, values)
                model[places] = values
                first = int(random.integers(0, len(model)))
                array[first : first + 700] = model[first : first + 700] + 1
                model[first : first + 700] += 1
            with pytest.raises(IndexError):
                array[len(model)]
        assert (joined(contents, order, stripe).view(np.int64)[offset // 8 :] == model).all()


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_drive_that_fails_is_named_and_the_others_are_written(broken: int, tmp_path: Path) -> None:
    with controllers([512, 512, 512]) as drives:
        paths = []
        for number, drive in enumerate(drives):
            paths.append(tmp_path / f"drive {number}")
            np.zeros(8 * PAGE, np.uint8).tofile(paths[-1])
            drive.add_file(paths[-1], writable=True)
        array = Array(
            PageCache(drives, pages=32, page_bytes=PAGE),
            Striped([(0, 1), (1, 1), (2, 1)], PAGE),
            "u1",
            24 * PAGE,
            writable=True,
        )
        array[:] = np.full(24 * PAGE, 7, np.uint8)
        drives[broken].set_faults([Fault("error", opcode=Opcode.WRITE, status=WRITE_FAULT)])
        with pytest.raises(NvmeError, match=f"drive {broken}, namespace 1") as caught:
            array.flush()
        assert (caught.value.drive, caught.value.sct, caught.value.path) == (broken, 2, paths[broken])
        for number, path in enumerate(paths):
            assert set(path.read_bytes()) == ({0} if number == broken else {7})
        # Nothing is lost: the pages are written once the drive takes them.
        drives[broken].set_faults([])
        array.close()
        assert all(set(path.read_bytes()) == {7} for path in paths)


def test_a_drive_that_does_not_answer_costs_its_deadline_only() -> None:
    with controllers([512, 512]) as drives:
        contents = filled(drives, [8 * PAGE, 8 * PAGE])
        drives[1].set_faults([Fault("lose")])
        cache = PageCache(drives, pages=4, page_bytes=PAGE)
        array = Array(cache, Striped([(0, 1), (1, 1)], PAGE), "u1", 16 * PAGE, timeout=0.05)
        with pytest.raises(NvmeError, match="drive 1") as caught:
            array[PAGE]
        assert caught.value.drive == 1
        for page in range(0, 16, 2):
            assert array[page * PAGE] == contents[0][page // 2 * PAGE]


def test_compiled_code_says_which_drive() -> None:
    numba = pytest.importorskip("numba")

    @numba.njit
    def element(array: Any, index: int) -> Any:
        return array[index]

    with controllers([512, 4096]) as drives:
        contents = filled(drives, [8 * PAGE, 8 * PAGE])
        array = Array(
            PageCache(drives, pages=4, page_bytes=PAGE), Striped([(1, 1), (0, 1)], PAGE), "u1", 16 * PAGE
        )
        assert element(array, 5) == contents[1][5]
        assert element(array, PAGE) == contents[0][0]
        drives[1].set_faults([Fault("error", status=UNRECOVERED_READ)])
        with pytest.raises(NvmeError, match="drive 1, namespace 1, LBA 3,"):
            element(array, 6 * PAGE)


def test_what_cannot_be_striped_is_refused() -> None:
    with controllers([512, 4096]) as drives, controllers([512], shared_pairs=2) as others:
        filled(drives, [8 * PAGE, 8 * PAGE])
        cache = PageCache(drives, pages=4, page_bytes=PAGE)
        for space, count, words in (
            (Striped([]), 1, "takes a namespace"),
            (Striped([(0, 1), (2, 1)], PAGE), 1, "no drive 2 among 2"),
            (Striped([(0, 1), (1, 9)], PAGE), 1, "no namespace 9"),
            (Striped([(0, 1), (1, 1), (0, 1)], PAGE), 1, "namespace 1 of drive 0 is there twice"),
            (Striped([(0, 1), (1, 1)], 3 * PAGE), 1, "a power of two of the cache's pages"),
            (Striped([(0, 1), (1, 1)], PAGE // 2), 1, "a power of two of the cache's pages"),
            (Striped([(0, 1), (1, 1)], 0), 1, "a power of two of the cache's pages"),
            (Striped([(0, 1), (1, 1)], PAGE), 16 * PAGE + 1, "do not lie within the namespaces' 65536"),
            # Not a whole stripe of each.
            (Striped([(0, 1), (1, 1)], 16 * PAGE), 1, "do not lie within the namespaces' 0"),
        ):
            with pytest.raises(ValueError, match=words):
                Array(cache, space, "u1", count)
        with pytest.raises(ValueError, match="1 to 256 drives"):
            PageCache([], pages=4)
        with pytest.raises(ValueError, match="whole blocks"):
            PageCache([others[0], drives[1]], pages=4, page_bytes=2048)
