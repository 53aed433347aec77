"""Tables, parameters and payloads of no honest writer: an error that names the vector, or strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from bamquery import _native
from bamquery.storage.encodings.fsst.parameters import PARTS, SYMBOLS
from tests.unit.storage.encodings.fsst.columns import PackedTexts, codes_at, pack, sentences
from tests.unit.storage.encodings.fsst.parameter_oracle import code_bytes, find_fault, payload_bytes


def honest() -> PackedTexts:
    return pack(sentences(2500))


def change(field: str, value: int) -> Callable[[PackedTexts], None]:
    def apply(packed: PackedTexts) -> None:
        packed.parameters[field][1] = value

    return apply


def change_part(part: int, by: int) -> Callable[[PackedTexts], None]:
    def apply(packed: PackedTexts) -> None:
        packed.parameters["part_ends"][1][part] += np.uint32(by)

    return apply


def check(packed: PackedTexts, *, more: int = 0) -> tuple[int, str] | None:
    """What the one look at a whole column finds; the oracle finds the same. `more`: bytes of the data."""
    size = len(packed.payload) + more
    starts, lengths, codes, plain, fault = _native.check_fsst_column(packed.parameters, packed.rows, size)
    assert fault == find_fault(packed.parameters, packed.counts, size)
    if fault is None:
        assert np.array_equal(starts, packed.starts)
        assert np.array_equal(lengths, payload_bytes(packed.parameters, packed.counts))
        assert np.array_equal(codes, code_bytes(packed.parameters, packed.counts))
        assert plain == int(packed.parameters["plain_bytes"].sum())
    return fault


@pytest.mark.parametrize(
    ("apply", "reason"),
    [
        (change("form", 2), "form"),
        (change("has_nulls", 2), "form"),
        (change("bits", 33), "too wide"),
        (change("bits", 255), "too wide"),
        (change_part(3, 1 << 31), "do not ascend"),
        (change("plain_bytes", 2**32 - 1), "as long"),
        (change("form", 0), "as long"),
    ],
)
def test_impossible_parameters(apply: Callable[[PackedTexts], None], reason: str) -> None:
    packed = honest()
    assert check(packed) is None
    apply(packed)
    found = check(packed)
    assert found is not None
    assert found[0] == 1
    assert reason in found[1]
    with pytest.raises(ValueError, match=f"vector 1 of strings cannot be: .*{reason}"):
        packed.unpack()
    with pytest.raises(ValueError, match=f"vector 1 of strings cannot be: .*{reason}"):
        packed.take(np.array([1024]))


def test_parts_without_rows_and_payloads_elsewhere() -> None:
    packed = honest()
    packed.parameters["part_ends"][2][7] += 1
    found = check(packed)
    assert found == (2, "it has parts without rows")
    packed = honest()
    packed.parameters["offset"][1] += 16
    found = check(packed)
    assert found == (1, "its values do not lie behind those before")
    assert check(honest(), more=16) is not None
    packed = honest()
    packed.payload = packed.payload[:-16].copy()
    with pytest.raises(ValueError, match="vector 2 of strings cannot be: it lies outside"):
        packed.unpack()


def test_any_parameters_are_checked_as_the_oracle_checks_them() -> None:
    """One number of an honest column is another, at any vector; and any bytes at all."""
    random, found = np.random.default_rng(4), set()
    whole = pack([None if random.random() < 0.1 else text for text in sentences(3500)])
    assert check(whole) is None
    for _ in range(400):
        packed = replace(whole, parameters=whole.parameters.copy())
        raw = packed.parameters.view(np.uint8).reshape(-1, 48)
        raw[random.integers(0, len(raw)), random.integers(0, 48)] ^= np.uint8(1 << random.integers(0, 8))
        found.add(check(packed))
    random_ends = replace(whole, parameters=whole.parameters.copy())
    for _ in range(100):  # parts that both descend and have no rows
        random_ends.parameters["part_ends"][3] = random.integers(0, 3, PARTS)
        found.add(check(random_ends))
        bits = random.integers(0, 256, whole.parameters.nbytes).astype(np.uint8)
        check(replace(whole, parameters=bits.view(whole.parameters.dtype)))
    assert len({fault[1] for fault in found if fault is not None}) == 6
    for rows in (2000, 5000, -1):
        with pytest.raises(ValueError, match="not those of so many rows"):
            _native.check_fsst_column(whole.parameters, rows, len(whole.payload))


def test_ends_that_do_not_ascend() -> None:
    packed = honest()
    packed.payload = packed.payload.copy()
    packed.payload[packed.starts[1] + 40] ^= 0xFF
    with pytest.raises(ValueError, match="vector 1 of strings cannot be: its strings' ends do not ascend"):
        packed.unpack()
    with pytest.raises(ValueError, match="vector 1 of strings cannot be: its strings' ends do not ascend"):
        packed.take(np.arange(1024, 1152))


@pytest.mark.parametrize("code", [255, 254])
def test_a_last_code_that_stands_for_nothing(code: int) -> None:
    # 255 is an escape without a byte behind it; 254 is no symbol of a table of some.
    packed = pack([b"ab" * 40, b"cd"] * 30)
    assert packed.parameters["form"].tolist() == [SYMBOLS]
    assert packed.symbols[0] < 254
    packed.payload = packed.payload.copy()
    end = codes_at(packed, 0) + int(packed.parameters["part_ends"][0][0])
    packed.payload[end - 1] = code
    for read in (packed.unpack, lambda: packed.unpack(np.array([59])), lambda: packed.take(np.array([59]))):
        with pytest.raises(ValueError, match="vector 0 of strings cannot be: its codes"):
            read()
    assert packed.unpack(np.array([0, 1])) == [b"ab" * 40, b"cd"]


def test_strings_that_are_longer_than_said() -> None:
    packed = honest()
    packed.parameters["plain_bytes"][0] -= 1
    with pytest.raises(ValueError, match="vector 0 of strings cannot be: its codes"):
        packed.unpack()


@pytest.mark.parametrize(
    "table", [b"", b"\1", b"\1\0", b"\1\x09aaaaaaaaa", b"\1\1ab", b"\2\1\1a", b"\xff\1", b"\0a"]
)
def test_tables_that_cannot_be(table: bytes) -> None:
    with pytest.raises(ValueError, match="table of symbols cannot be"):
        _native.fsst_pack(table, np.zeros(1, np.int64), 0, b"", 0, None)


def test_any_bits_may_be_wrong() -> None:
    random, rows = np.random.default_rng(3), np.arange(0, 1100, 3)
    whole = pack([None if random.random() < 0.1 else text for text in sentences(1100)])
    for _ in range(300):
        packed = replace(whole, payload=whole.payload.copy(), parameters=whole.parameters.copy())
        raw = packed.parameters.view(np.uint8)
        for where in (raw, packed.payload):
            where[random.integers(0, len(where))] ^= np.uint8(1 << random.integers(0, 8))
        for read in (packed.unpack, lambda p=packed: p.unpack(rows), lambda p=packed: p.take(rows)):
            try:
                read()
            except (ValueError, IndexError):  # of numpy's, which stands in for a reader of blocks
                continue
