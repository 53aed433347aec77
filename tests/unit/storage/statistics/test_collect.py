"""Native statistics and checksums against plain Python and numpy."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bamquery import _native
from bamquery.storage.format.layout import VECTOR_ROWS

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SIZES = [0, 1, 31, 32, 33, 127, 128, 1023, 1024, 1025, 4095, 4096, 4097, 6000]


def crc32c(data: bytes) -> int:
    """Bit by bit, as RFC 3720 defines it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # these three are RFC 3720's examples
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_checksums(data: bytes, crc: int) -> None:
    assert _native.crc32c(data) == crc32c(data) == crc
    assert zlib.crc32(data) != crc or not data  # the other CRC-32


@given(st.binary(max_size=300), st.integers(0, 300))
def test_checksums_continue(data: bytes, cut: int) -> None:
    assert _native.crc32c(data[cut:], _native.crc32c(data[:cut])) == _native.crc32c(data) == crc32c(data)


@given(st.binary(max_size=2000), st.sampled_from([1, 3, 8, 100, 128, 1000]))
def test_strided_checksums(data: bytes, stride: int) -> None:
    expected = [_native.crc32c(data[at : at + stride]) for at in range(0, len(data), stride)]
    assert _native.strided_crcs(data, stride).tolist() == expected


def bitmap(valid: np.ndarray) -> np.ndarray:
    return np.packbits(valid, bitorder="little")


def validity(rows: int, share: float, random: np.random.Generator) -> np.ndarray | None:
    return None if share == 1 else random.random(rows) < share


def vectors(values: np.ndarray) -> list[np.ndarray]:
    return [values[at : at + VECTOR_ROWS] for at in range(0, len(values), VECTOR_ROWS)]


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("share", [1, 0.9, 0.01, 0])
def test_integers(kind: str, share: float) -> None:
    random = np.random.default_rng(1)
    for rows in SIZES:
        limits = np.iinfo(kind)
        values = random.integers(limits.min, limits.max, rows, kind, endpoint=True)
        valid = validity(rows, share, random)
        if valid is not None:
            values[~valid] = 0
        bits = None if valid is None else bitmap(valid)
        minima, maxima, nulls, nans, crcs = _native.vector_statistics(kind, values, bits, rows)
        kept = (
            vectors(values)
            if valid is None
            else [v[m] for v, m in zip(vectors(values), vectors(valid), strict=True)]
        )
        assert minima.view(kind).tolist() == [int(v.min()) if len(v) else 0 for v in kept]
        assert maxima.view(kind).tolist() == [int(v.max()) if len(v) else 0 for v in kept]
        assert nulls.tolist() == [len(a) - len(b) for a, b in zip(vectors(values), kept, strict=True)]
        assert not nans.any()
        assert crcs.tolist() == [_native.crc32c(v) for v in vectors(values)]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@settings(deadline=None, max_examples=60)
@given(
    pool=st.lists(st.floats(width=32), min_size=1, max_size=6),
    rows=st.sampled_from(SIZES),
    share=st.sampled_from([1, 0.9, 0.01, 0]),
    seed=st.integers(0, 2**32),
)
def test_floats(kind: str, pool: list[float], rows: int, share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.choice(np.array(pool, kind), rows)
    valid = validity(rows, share, random)
    if valid is not None:
        values[~valid] = 0
    bits = None if valid is None else bitmap(valid)
    minima, maxima, nulls, nans, crcs = _native.vector_statistics(kind, values, bits, rows)
    for i, vector in enumerate(vectors(values)):
        mask = np.ones(len(vector), np.bool_) if valid is None else vectors(valid)[i]
        numbers = vector[mask & ~np.isnan(vector)]
        low, high = minima.view(kind)[i], maxima.view(kind)[i]
        assert nulls[i] == np.count_nonzero(~mask)
        assert nans[i] == np.count_nonzero(np.isnan(vector[mask]))
        if len(numbers):
            assert low == numbers.min()
            assert high == numbers.max()
            assert low != 0 or math.copysign(1, low) == -1
            assert high != 0 or math.copysign(1, high) == 1
        assert crcs[i] == _native.crc32c(vector)


@pytest.mark.parametrize("share", [1, 0.5, 0])
def test_decimals(share: float) -> None:
    random = np.random.default_rng(2)
    for rows in SIZES:
        numbers = [int(n) * int(m) for n, m in random.integers(-(2**62), 2**62, (rows, 2))]
        valid = validity(rows, share, random)
        if valid is not None:
            numbers = [n if ok else 0 for n, ok in zip(numbers, valid, strict=True)]
        data = b"".join(n.to_bytes(16, "little", signed=True) for n in numbers)
        values = np.zeros(max(len(data), 16) // 16, "V16")
        values.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
        bits = None if valid is None else bitmap(valid)
        minima, maxima, _, _, _ = _native.vector_statistics("int128", values.view(np.uint8), bits, rows)
        for i, start in enumerate(range(0, rows, VECTOR_ROWS)):
            kept = [
                n
                for j, n in enumerate(numbers[start : start + VECTOR_ROWS])
                if valid is None or valid[start + j]
            ]
            cell = slice(16 * i, 16 * i + 16)
            assert int.from_bytes(minima[cell].tobytes(), "little", signed=True) == min(kept, default=0)
            assert int.from_bytes(maxima[cell].tobytes(), "little", signed=True) == max(kept, default=0)


@pytest.mark.parametrize("trues", [0, 0.5, 1])
@pytest.mark.parametrize("share", [1, 0.5, 0])
def test_booleans(trues: float, share: float) -> None:
    random = np.random.default_rng(3)
    for rows in SIZES:
        valid = validity(rows, share, random)
        values = random.random(rows) < trues
        if valid is not None:
            values &= valid
        bits = None if valid is None else bitmap(valid)
        minima, maxima, nulls, _, _ = _native.vector_statistics("bool", bitmap(values), bits, rows)
        for i, vector in enumerate(vectors(values)):
            kept = vector if valid is None else vector[vectors(valid)[i]]
            assert nulls[i] == len(vector) - len(kept)
            if len(kept):
                assert (minima[i], maxima[i]) == (kept.min(), kept.max())


@settings(deadline=None, max_examples=200)
@given(
    source=st.binary(min_size=1, max_size=40),
    data=st.data(),
)
def test_copying_bits(source: bytes, data: st.DataObject) -> None:
    """Any offsets and lengths; what lies around the target stays as it was."""
    count = data.draw(st.integers(0, 8 * len(source)))
    source_bit = data.draw(st.integers(0, 8 * len(source) - count))
    target = bytearray(data.draw(st.binary(min_size=len(source), max_size=50)))
    target_bit = data.draw(st.integers(0, 8 * len(target) - count))
    bits = np.unpackbits(np.frombuffer(source, np.uint8), bitorder="little")[source_bit : source_bit + count]
    expected = np.unpackbits(np.frombuffer(bytes(target), np.uint8), bitorder="little")
    expected[target_bit : target_bit + count] = bits
    assert _native.copy_bits(source, source_bit, count, target, target_bit) == bits.sum()
    assert target == bitmap(expected).tobytes()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_copying_values_clears_nulls(width: int) -> None:
    random = np.random.default_rng(4)
    for rows in (0, 1, 63, 64, 65, 200):
        source = random.integers(1, 256, (rows + 7, width), np.uint8)
        valid = random.random(rows + 13) < 0.5
        target = np.full((rows + 9, width), 7, np.uint8)
        _native.copy_values(source, 7, rows, width, bitmap(valid), 13, target, 9)
        expected = np.where(valid[13:, None], source[7:], 0)
        assert np.array_equal(target[9:], expected)
        assert (target[:9] == 7).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: _native.copy_values(b"12345678", 0, 2, 8, None, 0, bytearray(16), 0),
        lambda: _native.copy_values(b"12345678", 0, 1, 8, None, 0, bytearray(7), 0),
        lambda: _native.copy_values(b"12345678", 0, 1, 3, None, 0, bytearray(8), 0),
        lambda: _native.copy_values(b"12345678", -1, 1, 8, None, 0, bytearray(8), 0),
        lambda: _native.copy_bits(b"1", 1, 8, bytearray(2), 0),
        lambda: _native.copy_bits(b"1", 0, 8, bytearray(1), 1),
        lambda: _native.vector_statistics("int64", bytes(8), None, 2),
        lambda: _native.vector_statistics("int64", bytes(16), b"", 2),
        lambda: _native.vector_statistics("int7", bytes(16), None, 2),
        lambda: _native.string_statistics(np.array([0, 9]), 1, b"12345678", 0, None, True),
        lambda: _native.join_offsets(np.array([0, 1, 2]), np.array([1]), 2, bytearray(16)),
        lambda: _native.strided_crcs(b"1", 0),
    ],
)
def test_calls_that_do_not_fit_are_refused(call) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which of the sizes is wrong is for developers
        call()
