"""Arrow arrays to libcudf's layouts and back, without a GPU."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bamquery.engine.cuda.transfer.arrow_layout import from_libcudf_layout, to_libcudf_layout
from bamquery.errors import ExecutionError
from tests.strategies import PLAIN_TYPES, array, specials

KNOWN = {"bool", "int", "uint", "float", "double", "decimal", "date32", "timestamp", "large_string"}


@pytest.mark.parametrize("kind", [*PLAIN_TYPES, pa.timestamp("ns", "Europe/Berlin")], ids=str)
def test_there_and_back(kind: pa.DataType) -> None:
    values = array([None, *specials(kind), None], kind)
    for given in (values, values.slice(2), values.slice(0, 0)):
        sent = to_libcudf_layout(given)
        assert any(str(sent.type).startswith(name) for name in KNOWN), sent.type
        assert getattr(sent.type, "tz", None) is None
        back = from_libcudf_layout(sent, kind)
        assert back.type == kind
        back.validate(full=True)
        assert back.equals(given) or str(kind) in ("float", "double")


def test_nothing_is_copied_of_bytes() -> None:
    blobs = pa.array([b"\xff\x00", None, b"a"], pa.large_binary())
    assert to_libcudf_layout(blobs).buffers()[2].address == blobs.buffers()[2].address


def test_nulls_have_a_type() -> None:
    sent = to_libcudf_layout(pa.nulls(3))
    assert (sent.type, sent.null_count) == (pa.int8(), 3)
    assert from_libcudf_layout(sent, pa.null()).type == pa.null()


def test_dictionaries_are_made_on_the_way_back() -> None:
    kind = pa.dictionary(pa.int8(), pa.large_string())
    given = pa.array(["b", None, "a", "b"])  # 32-bit offsets, as libcudf gives them
    found = from_libcudf_layout(given, kind)
    assert found.type == kind
    assert found.to_pylist() == given.to_pylist()
    assert len(found.dictionary) == 2


def test_too_many_values_for_a_dictionary() -> None:
    given = pa.array([str(i) for i in range(200)])
    with pytest.raises(ExecutionError, match="200 distinct values"):
        from_libcudf_layout(given, pa.dictionary(pa.int8(), pa.large_string()))


@pytest.mark.parametrize("start", [1, 3, 8, 13])
def test_bits_begin_with_a_byte(start: int) -> None:
    for given in (
        pa.array([True, None, False] * 30),
        pa.array([True, False, False] * 30),
        pa.array([1, None, 3] * 30, pa.int64()),
        pa.array(["a", None, "b"] * 30, pa.large_string()),
    ):
        cut = given.slice(start, 32)
        found = to_libcudf_layout(cut)
        assert found.equals(cut)
        assert found.offset % 8 == 0
    whole = pa.array([1, 2, 3] * 30).slice(start, 32)
    assert to_libcudf_layout(whole).offset == start  # no bits, no copy
