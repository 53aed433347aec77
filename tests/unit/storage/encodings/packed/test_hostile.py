"""Parameters and payloads of no honest writer: an error that names the vector, or values, and no more."""

import numpy as np
import pytest

from bamquery import _native
from bamquery.storage.encodings.packed import parameters as known
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR, has_nulls
from tests.packed.parameters import column_fault, find_fault, payload_bytes, referring_rows
from tests.unit.storage.encodings.packed.columns import KINDS, Packed, assert_same, decoded_type, pack

GUARD = 64
"""Bytes before and behind what may be written."""


def form(number: int, exponent: int = 0) -> int:
    return number << 5 | exponent


def one(kind: str, rows: int = 1024, data: int = 16384, **fields: int) -> Packed:
    """A column of one vector with these parameters."""
    honest = {"float32": known.DECIMAL, "float64": known.DECIMAL}.get(kind, known.INTEGER)
    vector = np.zeros(1, PACKED_VECTOR)
    vector["exponent_form"] = form(honest)
    for name, value in fields.items():
        vector[name] = value
    return Packed(kind, rows, np.zeros(data, np.uint8), vector, (1, 0))


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (one("int32", bits=57), "too wide"),
        (one("int32", bits=64), "too wide"),
        (one("float64", bits=255), "too wide"),
        (one("int32", bits=13, exponent_form=form(known.RAW)), "too wide"),
        (one("int32", exponent_form=form(known.DECIMAL)), "form"),
        (one("float64", exponent_form=form(known.UNSCALED)), "form"),
        (one("float64", exponent_form=form(5)), "form"),
        (one("int64", exponent_form=form(7)), "form"),
        (one("bool", bits=64, exponent_form=form(known.RAW)), "form"),
        (one("int128", bits=64, exponent_form=form(known.RAW)), "form"),
        (one("float64", bits=3, exponent_form=form(known.DECIMAL, 16)), "exponent"),
        (one("float64", bits=3, exponent_form=form(known.FLOAT32, 1)), "exponent"),
        (one("int64", bits=3, exponent_form=form(known.INTEGER, 2)), "exponent"),
        (one("int32", bits=3, escapes_nulls=9), "more escapes"),
        (one("int32", bits=3, escapes_nulls=8 | 1 << 15), "more escapes"),
        (one("int32", bits=0, escapes_nulls=1 | 1 << 15), "more escapes"),
        (one("int32", bits=20, escapes_nulls=1024), "more escapes"),
        (one("int32", bits=64, exponent_form=form(known.RAW), escapes_nulls=1), "more escapes"),
        (one("int32", bits=64, exponent_form=form(known.RAW), escapes_nulls=1 << 14), "more escapes"),
        (one("int32", bits=20, escapes_nulls=1 << 14), "more escapes"),
        (one("int32", bits=13, data=1663), "outside"),
        (one("int32", bits=13, data=1664 + 15, escapes_nulls=1), "outside"),
        (one("int32", bits=13, data=1664 + 16, escapes_nulls=1 << 14 | 5), "outside"),
        (one("int64", bits=64, data=8191, exponent_form=form(known.RAW)), "outside"),
        (
            one("int64", bits=64, data=8192 + 127, exponent_form=form(known.RAW), escapes_nulls=1 << 15),
            "outside",
        ),
        (one("int32", bits=1, offset=2**32 - 1), "outside"),
        (one("int32", offset=1025), "outside"),
    ],
)
def test_impossible_parameters_are_an_error(column: Packed, reason: str) -> None:
    fault = find_fault(
        column.parameters,
        payload_bytes(column.parameters, column.vector_rows, column.kind),
        column.kind,
        len(column.data),
    )
    assert fault is not None
    assert fault[0] == 0
    assert reason in fault[1]
    pattern = f"packed vector 0 cannot be: {fault[1]}"
    everything = np.arange(column.rows)
    for read in (column.unpack, lambda: column.take(everything), lambda: column.compare([([(0, 9)], False)])):
        with pytest.raises(ValueError, match=pattern):
            read()


def test_the_error_names_the_vector() -> None:
    packed = pack("int64", np.arange(5000))
    packed.parameters["bits"][3] = 60
    assert (
        find_fault(
            packed.parameters,
            payload_bytes(packed.parameters, packed.vector_rows, "int64"),
            "int64",
            len(packed.data),
        )[0]
        == 3
    )
    for read in (packed.unpack, lambda: packed.take(np.array([4000])), lambda: packed.compare([])):
        with pytest.raises(ValueError, match="packed vector 3 cannot be"):
            read()
    packed.take(np.array([0, 4999]))  # of other vectors


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_values_or_an_error(kind: str, seed: int) -> None:
    """Where parameters are possible, the oracle reads the same; nothing around the results is touched."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 3 * 1024))
    vectors = -(-rows // 1024)
    wild = random.integers(0, 256, vectors * 16).astype(np.uint8).view(PACKED_VECTOR)
    tame = random.random(vectors) < 0.7
    wild["bits"][tame] = random.choice([0, 1, 2, 7, 8, 25, 26, 33, 56, 64], int(tame.sum()))
    wild["exponent_form"][tame] &= 0x8F
    wild["escapes_nulls"][tame] &= 0xC007
    data = random.integers(0, 256, int(random.choice([0, 16, 4096, 40000]))).astype(np.uint8)
    wild["offset"][tame] = random.integers(0, len(data) // 16 + 2, int(tame.sum()))
    column = Packed(kind, rows, data, wild, (int(random.integers(1, 2**63)), int(random.integers(0, 2**63))))
    fault = find_fault(wild, payload_bytes(wild, column.vector_rows, kind), kind, len(data))
    if fault is not None:
        with pytest.raises(ValueError, match=f"packed vector {fault[0]} cannot be"):
            column.unpack()
        return
    values = np.full(column.stored_bytes(rows) + 2 * GUARD, 0xA5, np.uint8)
    bitmap = np.full(-(-rows // 8) + 2 * GUARD, 0xA5, np.uint8)
    _native.unpack_vectors(
        kind,
        data,
        column.starts,
        wild,
        column.vector_rows,
        *column.scale,
        values[GUARD:-GUARD],
        bitmap[GUARD:-GUARD],
    )
    for written in (values, bitmap):
        assert (written[:GUARD] == 0xA5).all()
        assert (written[-GUARD:] == 0xA5).all()
    column.compare([([(5, 2**31)], False), ([(7, 7)], True)])
    column.compare([], nulls_pass=True)
    column.compare([([(key, key + 1) for key in range(0, 400, 5)], False)])
    found, valid = column.unpack()
    taken = np.arange(rows)
    assert_same(kind, column.take(taken), *zero_nulls(found, valid))
    for share in (0.01, 0.5, 1):
        some = taken[random.random(rows) < share]
        values, known = zero_nulls(found, valid)
        assert_same(kind, column.pick(some), values[some], known[some])
    expected, expected_valid = column.oracle()
    if kind == "bool":
        expected &= 1
    assert np.array_equal(valid, expected_valid)
    if (
        known.forms(wild) != known.FLOAT32
    ).all():  # conversions change the bits of NaN, which no writer packs so
        assert_same(kind, (found, valid), *zero_nulls(expected, valid))


def zero_nulls(values, valid):
    return np.where(valid, values, np.zeros(1, values.dtype)), valid


def check(column: Packed, null_counts: np.ndarray) -> tuple[int, str] | None:
    """What the one look at a whole column finds; the oracle finds the same."""
    sizes = payload_bytes(column.parameters, column.vector_rows, column.kind)
    about = column.kind, column.parameters, column.rows, len(column.data), null_counts
    starts, lengths, referring, fault = _native.check_packed_column(*about)
    assert fault == column_fault(column.parameters, sizes, column.kind, len(column.data), null_counts)
    if fault is None:
        assert np.array_equal(starts, column.starts)
        assert np.array_equal(lengths, sizes)
        assert np.array_equal(referring, referring_rows(column.parameters, column.vector_rows))
    return fault


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_is_checked_as_the_oracle_checks_it(kind: str) -> None:
    """Any bytes, and honest columns of which one number is another."""
    random = np.random.default_rng(5)
    found = set()
    for case in range(60):
        rows = int(random.integers(1, 4 * 1024))
        values = random.integers(0, random.choice([2, 5, 100]), rows).astype(decoded_type(kind))
        honest = pack(kind, values, random.random(rows) < 0.9 if case % 2 else None)
        nulls = has_nulls(honest.parameters).astype(np.int64)
        assert check(honest, nulls) is None
        name = str(random.choice(PACKED_VECTOR.names))
        at = int(random.integers(len(nulls)))
        was = honest.parameters[name][at]
        bit = int(random.integers(8 * was.dtype.itemsize - 1))
        honest.parameters[name][at] = was ^ was.dtype.type(1 << bit)
        found.add(check(honest, nulls))
        honest.parameters[name][at] = was
        found.add(check(honest, nulls ^ (np.arange(len(nulls)) == at)))
        wild = random.integers(0, 256, 16 * len(nulls)).astype(np.uint8).view(PACKED_VECTOR)
        found.add(check(Packed(kind, rows, honest.data, wild, (1, 0)), nulls))
    reasons = {fault[1] for fault in found if fault is not None}
    assert len(reasons) == 7, reasons


def test_payloads_lie_end_to_end_and_nulls_where_statistics_know_them() -> None:
    packed = pack("int64", np.arange(5000) % 100)
    none = np.zeros(5, np.int64)
    packed.parameters["offset"][3] -= 1
    assert check(packed, none) == (3, "its values do not lie behind those before")
    packed.parameters["offset"][3] += 1
    longer = Packed("int64", 5000, np.append(packed.data, np.zeros(16, np.uint8)), packed.parameters, (1, 0))
    assert check(longer, none) == (4, "its values do not lie behind those before")
    assert check(packed, np.array([0, 0, 7, 0, 7])) == (2, "whether it has nulls is said in two ways")
    packed.parameters["offset"][1] = 0
    packed.parameters["bits"][4] = 60
    assert check(packed, np.ones(5, np.int64)) == (4, "its codes are too wide"), "that is worse than a gap"
    for rows, counts in ((6000, none), (5000, none[:4]), (-1, none)):
        with pytest.raises(ValueError, match="not those of so many rows"):
            _native.check_packed_column("int64", packed.parameters, rows, len(packed.data), counts)


def test_calls_that_do_not_fit_are_refused() -> None:
    packed = pack("int64", np.arange(2000))
    good = {
        "kind": "int64",
        "payload": packed.data,
        "starts": packed.starts,
        "parameters": packed.parameters,
        "rows": packed.vector_rows,
        "divisor": 1,
        "origin": 0,
        "values": np.zeros(2000, np.int64),
        "bitmap": np.zeros(250, np.uint8),
    }
    assert _native.unpack_vectors(**good) == 0
    for wrong in (
        {"kind": "int7"},
        {"starts": packed.starts[:1]},
        {"starts": np.array([0, -16])},
        {"starts": np.array([0, 2**62])},
        {"parameters": bytes(31)},
        {"rows": np.array([1024, 1025])},
        {"rows": np.array([-1, 1024])},
        {"divisor": 0},
        {"values": np.zeros(1999, np.int64)},
        {"bitmap": np.zeros(249, np.uint8)},
    ):
        with pytest.raises(ValueError):  # noqa: PT011 (each has its own words)
            _native.unpack_vectors(**good | wrong)
    for rows in ([-1], [2000], [0, 2**40]):
        with pytest.raises(ValueError, match="no such row"):
            _native.packed_places("int64", packed.parameters, 2000, len(packed.data), np.array(rows))
    with pytest.raises(ValueError, match="not those of so many rows"):
        _native.packed_places("int64", packed.parameters, 5000, len(packed.data), np.array([0]))
    with pytest.raises(ValueError, match="exponent"):
        _native.pack_vectors("float64", bytes(8), None, 1, 1, 0, b"\x10")


@pytest.mark.parametrize("kind", ["int32", "float64"])
def test_one_wrong_bit_is_found(kind: str) -> None:
    """What other tests compare would notice: any bit of a code that changes, changes a value."""
    values = np.random.default_rng(3).integers(0, 4000, 1024).astype(decoded_type(kind))
    packed = pack(kind, values)
    bits = int(packed.parameters["bits"][0])
    for bit in (0, bits - 1, 511 * bits, 1024 * bits - 1):
        packed.data[bit // 8] ^= 1 << bit % 8
        assert not np.array_equal(packed.unpack()[0], values)
        assert not np.array_equal(packed.take(np.arange(1024))[0], values)
        packed.data[bit // 8] ^= 1 << bit % 8
    assert np.array_equal(packed.unpack()[0], values)
