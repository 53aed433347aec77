"""Arrays over a controller's namespaces, against numpy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery._native import QueueMemory
from bamquery.driver.array import Array, PageCache
from bamquery.driver.faults import Fault, Opcode
from bamquery.driver.software_controller import SoftwareController
from bamquery.errors import NvmeError

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
UNRECOVERED_READ = 0x281
WRITE_FAULT = 0x280


@contextmanager
def controller(threads: int = 0, depth: int = 8) -> Iterator[SoftwareController]:
    memory = QueueMemory(leased_pairs=0, shared_pairs=2, depth=depth, slot_bytes=4096)
    with SoftwareController(memory, threads=threads) as made:
        yield made


def filled(made: SoftwareController, size: int) -> tuple[int, np.ndarray]:
    nsid = made.add_memory(size)
    contents = np.frombuffer(made.contents(nsid), np.uint8)
    contents[:] = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    return nsid, contents


@st.composite
def _programs(draw: st.DrawFn) -> tuple[str, int, int, list[tuple[str, int, int, int]]]:
    dtype = draw(st.sampled_from(DTYPES))
    count = draw(st.integers(1, 700))
    index = st.integers(-count, count - 1)
    steps = st.tuples(
        st.sampled_from(["get", "set", "slice", "fill", "gather", "scatter", "flush"]),
        index,
        index,
        st.sampled_from([1, 1, 2, -1, -3]),
    )
    return dtype, count, draw(st.integers(1, 5)), draw(st.lists(steps, max_size=25))


@settings(max_examples=120, deadline=None)
@given(_programs(), st.integers(0, 40), st.booleans())
def test_array_is_as_numpys(
    program: tuple[str, int, int, list[tuple[str, int, int, int]]], place: int, faults: bool
) -> None:
    dtype, count, pages, steps = program
    item = np.dtype(dtype).itemsize
    with controller() as made:
        nsid, contents = filled(made, 8192)
        offset = place * item
        model = contents[offset : offset + count * item].view(dtype).copy()
        before, after = contents[:offset].copy(), contents[offset + count * item :].copy()
        if faults:
            made.set_faults(
                [Fault("delay", probability=0.1, delay=0.0001), Fault("reorder", probability=0.2)]
            )
        cache = PageCache(made, pages=pages, page_bytes=512)
        values = np.random.default_rng(count).integers(0, 100, count + 64).astype(dtype)
        with Array(cache, nsid, dtype, count, offset=offset, writable=True) as array:
            assert len(array) == count
            for step, (kind, first, second, stride) in enumerate(steps):
                some = np.array([first, second, first])
                part = slice(first, second, stride)
                length = len(model[part])
                if kind == "get":
                    assert array[first].tobytes() == model[first].tobytes()
                elif kind == "set":
                    array[first] = model[first] = values[step]
                elif kind == "slice":
                    assert array[part].tobytes() == model[part].tobytes()
                elif kind == "fill":
                    array[part] = model[part] = values[step : step + length]
                elif kind == "gather":
                    assert array.gather(some).tobytes() == model[some].tobytes()
                elif kind == "scatter":
                    array.scatter(some, values[:3])
                    model[some] = values[:3]
                else:
                    array.flush()
                    assert contents[offset : offset + count * item].tobytes() == model.tobytes()
            assert array[:].tobytes() == model.tobytes()
        assert contents[offset : offset + count * item].tobytes() == model.tobytes()
        assert (contents[:offset] == before).all()
        assert (contents[offset + count * item :] == after).all()


def test_indices_that_are_not_there() -> None:
    with controller() as made:
        nsid, _ = filled(made, 4096)
        array = Array(PageCache(made, pages=2, page_bytes=512), nsid, "i4", 100)
        for index in (100, -101, 1 << 40, -(1 << 62)):
            with pytest.raises(IndexError):
                array[index]
            with pytest.raises(IndexError):
                array.gather([0, index])
        with pytest.raises(IndexError, match="out of bounds"):
            array.gather(np.array([1 << 63], np.uint64))
        with pytest.raises(IndexError, match="integers"):
            array.gather(np.array([0.5]))
        with pytest.raises(NvmeError, match="write failed"):
            array[0] = 1
        with pytest.raises(NvmeError):
            array[0:2] = 1


@pytest.mark.parametrize(
    ("nsid", "dtype", "count", "offset", "what"),
    [
        (2, "i4", 1, 0, "no namespace 2"),
        (1, "i4", 1025, 0, "do not lie within"),
        (1, "i4", 1024, 4, "do not lie within"),
        (1, "i4", 1, 1 << 62, "do not lie within"),
        (1, "i4", 1 << 62, 0, "do not lie within"),
        (1, "i4", 1, 2, "no multiple"),
        (1, "f2", 1, 0, "8 to 64 bits"),
        (1, "S4", 1, 0, "8 to 64 bits"),
        (1, ">i4", 1, 0, "8 to 64 bits"),
        (1, "?", 1, 0, "8 to 64 bits"),
    ],
)
def test_arrays_that_cannot_be(nsid: int, dtype: str, count: int, offset: int, what: str) -> None:
    with controller() as made:
        filled(made, 4096)
        cache = PageCache(made, pages=1)
        with pytest.raises(ValueError, match=what):
            Array(cache, nsid, dtype, count, offset=offset)


@pytest.mark.parametrize(("pages", "page_bytes"), [(0, 512), (1, 256), (1, 1000), (1, 8192)])
def test_caches_that_cannot_be(pages: int, page_bytes: int) -> None:
    with controller() as made, pytest.raises(ValueError, match="page cache"):
        PageCache(made, pages=pages, page_bytes=page_bytes)


def test_a_failing_read_names_its_place_and_the_next_is_good() -> None:
    with controller() as made:
        nsid, contents = filled(made, 8192)
        made.set_faults([Fault("error", opcode=Opcode.READ, first_lba=5, blocks=1, status=UNRECOVERED_READ)])
        array = Array(PageCache(made, pages=4, page_bytes=1024), nsid, "u1", 8192)
        for _ in range(3):
            with pytest.raises(NvmeError, match="read failed") as caught:
                array.gather([0, 5 * 512])
            assert (caught.value.nsid, caught.value.lba) == (nsid, 4)  # the page's first block
            assert (caught.value.sct, caught.value.sc) == (2, 0x81)
            assert array[0] == contents[0]
        assert array.statistics()["failures"] == 3
        made.set_faults([])
        assert array[5 * 512] == contents[5 * 512]


def test_failing_writes_lose_nothing() -> None:
    with controller() as made:
        nsid, contents = filled(made, 8192)
        cache = PageCache(made, pages=2, page_bytes=512)
        array = Array(cache, nsid, "u1", 8192, writable=True)
        array[0] = contents[0] ^ 255
        made.set_faults([Fault("error", opcode=Opcode.WRITE, status=WRITE_FAULT)])
        with pytest.raises(NvmeError, match="write failed") as caught:
            array.flush()
        assert (caught.value.nsid, caught.value.lba, caught.value.sct) == (nsid, 0, 2)
        assert array[4096:8192].tobytes() == contents[4096:8192].tobytes()  # the dirty page does not go
        wanted = contents[0] ^ 255
        assert array[0] == wanted
        made.set_faults([])
        array.close()
        assert contents[0] == wanted
        with pytest.raises(ValueError, match="closed"):
            array[0]


def test_a_lost_completion_is_an_error_in_time() -> None:
    with controller() as made:
        nsid, contents = filled(made, 8192)
        made.set_faults([Fault("lose", most=1)])
        array = Array(PageCache(made, pages=2, page_bytes=512), nsid, "u1", 8192, timeout=0.05)
        with pytest.raises(NvmeError, match="read failed"):
            array[600]
        assert array[600] == contents[600]


@pytest.mark.parametrize("threads", [0, 1])
def test_threads_share_a_small_cache(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.zeros(4096, np.int64).tofile(path)
    with controller(threads, depth=4) as made:
        nsid = made.add_file(path, writable=True)
        cache = PageCache(made, pages=3, page_bytes=512)
        array = Array(cache, nsid, "i8", 4096, writable=True)
        problems: list[BaseException] = []

        def work(number: int) -> None:
            try:
                random = np.random.default_rng(number)
                mine = np.arange(number, 4096, 4)
                for turn in range(1, 5):
                    array.scatter(random.permutation(mine), np.full(1024, turn))
                    assert (array.gather(mine) == turn).all()
                    if number == 0:
                        array.flush()
            except BaseException as error:
                problems.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not problems
        array.close()
    assert (np.fromfile(path, np.int64) == 4).all()
