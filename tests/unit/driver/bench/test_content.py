import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery import _native

SECTORS = 16


def content(seed: int, first: int = 0, sectors: int = SECTORS) -> bytearray:
    data = bytearray(512 * sectors)
    _native.fill_content(data, seed, first)
    return data


def test_content_is_a_function_of_seed_and_place() -> None:
    assert content(1) == content(1)
    assert content(1) != content(2)
    assert content(1)[512 * 5 :] == content(1, 5, SECTORS - 5)
    words = np.frombuffer(content(1, sectors=1 << 12), np.uint64)
    assert len(np.unique(words)) == len(words)


@given(st.integers(0, 512 * SECTORS - 1), st.integers(1, 255))
def test_any_wrong_byte_shows(place: int, difference: int) -> None:
    data = content(7)
    data[place] ^= difference
    assert _native.find_wrong(data, 7) == place // 8 * 8


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_a_wrong_sector_shows(wanted: int, found: int) -> None:
    wrong = _native.find_wrong(content(7, found, 1), 7, wanted)
    assert wrong == (-1 if wanted == found else 0)


def test_a_shift_within_a_block_shows() -> None:
    data = content(7)
    assert _native.find_wrong(data[8:] + data[:8], 7) == 0


def test_a_buffer_of_no_sector() -> None:
    assert _native.find_wrong(b"", 1) == -1


def test_backing_in_memory() -> None:
    backing = _native.BenchBacking("", 9 << 20, True)
    backing.fill(3)
    assert _native.find_wrong(memoryview(backing), 3) == -1
    memoryview(backing)[5 << 20] ^= 1
    assert _native.find_wrong(memoryview(backing), 3) == 5 << 20


@pytest.mark.parametrize("bad", [{"block_bytes": 1000}, {"blocks": 0}, {"pattern": "odd"}, {"theta": 0.0}])
def test_jobs_that_make_no_sense(bad: dict[str, object]) -> None:
    good: dict[str, object] = {
        "block_bytes": 512,
        "blocks": 1,
        "clients": 1,
        "depth": 1,
        "pattern": "zipf",
        "theta": 1.0,
        "write_share": 0.0,
        "seed": 1,
        "verify": True,
    }
    _native.BlockJob(**good)  # type: ignore[arg-type]
    with pytest.raises(ValueError):  # noqa: PT011 (pybind's own)
        _native.BlockJob(**(good | bad))  # type: ignore[arg-type]
