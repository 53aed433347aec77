"""Tables whose vectors all have one form: an encoder that takes it wherever it can hold the values.

Each vector that it cannot hold is packed as usual. `pytest --form FORM` runs any tests over such tables:
those that SQL makes, and those that operators are given (`tests/conformance/harness.py`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from bamquery import _native
from bamquery.engine.settings import Settings
from bamquery.storage.encodings.packed.parameters import (
    DECIMAL,
    FLOAT32,
    INTEGER,
    PACKED_VECTOR,
    UNIT,
    UNSCALED,
)
from bamquery.storage.files.buffers import view
from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.format.storable_types import is_stored_type
from bamquery.storage.fragments import packed_writer
from bamquery.storage.fragments.choose_packing import FORCED
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.writer import BatchRows, write_fragment
from bamquery.storage.tables.open_fragment import fragment_batches
from tests.packed.parameters import MAX_BITS, MAX_ESCAPES
from tests.packed.vectors import Vector, pack_codes, raw

FORMS = ("packed", "integer", "unscaled", "decimal", "float32", "escapes", "raw", "fsst")
"""`packed`: as each vector chooses. `escapes`: every value is one, where there are few. `fsst`: as `packed`,
but strings by symbols, however few they are."""

Numbers = list[int | None]
"""What values are in a form; None for those that are no such numbers, and for nulls."""

_now: list[str] = []


@contextmanager
def forced_form(form: str) -> Iterator[None]:
    """Within, tables are packed where they can be, in vectors of that form where it can hold them."""
    defaults = Settings.__init__.__defaults__
    assert defaults is not None
    assert form in FORMS
    with pytest.MonkeyPatch.context() as patch:
        auto = tuple("auto" if default == "plain" else default for default in defaults)
        patch.setattr(Settings.__init__, "__defaults__", auto)
        patch.setitem(FORCED, "pack", True)
        patch.setitem(FORCED, "symbols", form == "fsst")
        if form not in ("packed", "fsst"):
            native = SimpleNamespace(pack_vectors=_packer(form), packed_parts=_native.packed_parts)
            patch.setattr(packed_writer, "_native", native)
        _now.append(form)
        try:
            yield
        finally:
            _now.pop()


def through_a_fragment(table: pa.Table) -> pa.Table:
    """The same rows; where a form is forced, columns that tables can hold are written and read again."""
    if not _now or not table.num_rows or len(set(table.column_names)) < table.num_columns:
        return table
    kept = [field.name for field in table.schema if is_stored_type(field.type)]
    if not kept:
        return table
    batches = table.select(kept).combine_chunks().to_batches()
    with tempfile.TemporaryDirectory() as folder:
        entry = write_fragment(
            POSIX, Path(folder), "f", batches[0].schema, BatchRows(batches), encoding="auto"
        )
        fragment = Fragment.open(Path(folder), entry, batches[0].schema)
        stored = pa.Table.from_batches(list(fragment_batches(fragment, batches[0].schema)))
    for name in kept:
        table = table.set_column(table.column_names.index(name), name, stored[name])
    return table


def pack_vector(
    form: str, values: NDArray[Any], valid: NDArray[np.bool_] | None, scale: tuple[int, int]
) -> Vector | None:
    """One vector; None where the form cannot hold it. `values` of nulls are zero."""
    if valid is not None and not valid.any():
        return None
    if form == "raw":
        return raw(values, valid)
    known = values if valid is None else values[valid]
    for kind, exponent, numbers in _numbers(form, known, scale):
        found = _coded(values, valid, numbers, kind, exponent)
        if found is not None:
            return found
    return None


def _numbers(form: str, known: NDArray[Any], scale: tuple[int, int]) -> Iterator[tuple[int, int, Numbers]]:
    """Forms to try, exponents, and what the values are then."""
    is_float = known.dtype.kind == "f"
    if form == "escapes":
        yield (DECIMAL if is_float else INTEGER), 0, [None] * len(known)
    elif form == "decimal" and is_float:
        for exponent in (0, 1, 2, 4, 15):
            yield DECIMAL, exponent, [_decimal(value, exponent) for value in known]
    elif form == "float32" and is_float:
        yield FLOAT32, 0, [_place(value) for value in known]
    elif form in ("integer", "unscaled") and not is_float:
        divisor, origin = scale if form == "integer" else (1, 0)
        if known.dtype.kind == "i" and origin >= 1 << 63:
            origin -= 1 << 64
        pairs = [divmod(int(value) - origin, divisor) for value in known]
        numbers = [n if not rest and -(1 << 63) <= n < 1 << 63 else None for n, rest in pairs]
        yield (INTEGER if form == "integer" else UNSCALED), 0, numbers


def _decimal(value: Any, exponent: int) -> int | None:
    """n where n / 10^exponent, correctly rounded, is the value to the last bit."""
    scaled = float(value) * 10.0**exponent
    if not abs(scaled) < 1 << 53:
        return None
    number = round(scaled)
    again = value.dtype.type(np.float64(number) / np.float64(10**exponent))
    return number if again.tobytes() == value.tobytes() else None


def _place(value: Any) -> int | None:
    """Where a float32 is among all, if the value is one to the last bit."""
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = np.float32(value)
        if value.dtype.type(narrow).tobytes() != value.tobytes() or np.isnan(value):
            return None
    bits = int(narrow.view(np.uint32))
    return bits ^ 0xFFFFFFFF if bits >> 31 else bits ^ 0x80000000


def _coded(
    values: NDArray[Any], valid: NDArray[np.bool_] | None, numbers: Numbers, form: int, exponent: int
) -> Vector | None:
    known = values if valid is None else values[valid]
    unsigned = known.view(f"u{known.dtype.itemsize}").tolist()
    escapes = sorted({bits for bits, number in zip(unsigned, numbers, strict=True) if number is None})
    fitting = [number for number in numbers if number is not None]
    base = min(fitting, default=0)
    width = max(fitting, default=-1) - base + 1 if fitting else 0
    nulls = valid is not None and not valid.all()
    bits = max(width + len(escapes) + nulls - 1, 0).bit_length()
    if len(escapes) > MAX_ESCAPES or bits > MAX_BITS:
        return None
    first = (1 << bits) - len(escapes) - nulls
    ranks = {value: first + place for place, value in enumerate(escapes)}
    own = [
        ranks[value] if number is None else number - base
        for value, number in zip(unsigned, numbers, strict=True)
    ]
    codes = np.full(len(values), (1 << bits) - 1, np.uint64)
    codes[slice(None) if valid is None else valid] = np.array(own, np.uint64)
    payload = pack_codes(codes, bits) + b"".join(value.to_bytes(8, "little") for value in escapes)
    return Vector(
        payload + bytes(-len(payload) % UNIT),
        np.array((0, bits, form << 5 | exponent, len(escapes) | nulls << 15, base), PACKED_VECTOR),
        values,
        np.ones(len(values), np.bool_) if valid is None else valid,
    )


def _packer(form: str) -> Callable[..., tuple[Any, Any, Any]]:
    """What stands in for `_native.pack_vectors`."""

    def pack(  # noqa: PLR0917 (as it has them)
        kind: str,
        values: Any,
        validity: NDArray[np.uint8] | None,
        rows: int,
        divisor: int,
        origin: int,
        exponents: bytes,
    ) -> tuple[Any, Any, Any]:
        payloads, parameters, offset = [], [], 0
        for start in range(0, rows, VECTOR_ROWS):
            count = min(VECTOR_ROWS, rows - start)
            own = _slice(kind, values, start, count)
            bitmap = None if validity is None else validity[start // 8 : (start + count + 7) // 8]
            found = None
            if kind not in ("bool", "int128"):  # which have one form
                valid = None
                if bitmap is not None:
                    valid = np.unpackbits(bitmap, count=count, bitorder="little").astype(bool)
                    valid = None if valid.all() else valid
                found = pack_vector(form, np.frombuffer(own, kind), valid, (divisor, origin))
            if found is None:
                payload, packed, _ = _native.pack_vectors(
                    kind, own, bitmap, count, divisor, origin, exponents
                )
                payload, one = payload.tobytes(), packed.reshape(-1).view(PACKED_VECTOR).copy()
            else:
                payload, one = found.payload, found.parameters.reshape(1).copy()
            one["offset"] = offset // UNIT
            offset += len(payload)
            payloads.append(payload)
            parameters.append(one)
        return _joined(payloads, parameters)

    return pack


def _slice(kind: str, values: Any, start: int, count: int) -> NDArray[np.uint8]:
    data = np.frombuffer(view(values), np.uint8)
    if kind == "bool":
        return data[start // 8 : (start + count + 7) // 8].copy()
    width = 16 if kind == "int128" else np.dtype(kind).itemsize
    return data[start * width : (start + count) * width].copy()


def _joined(payloads: Sequence[bytes], parameters: Sequence[Any]) -> tuple[Any, Any, Any]:
    crcs = np.array([_native.crc32c(payload) for payload in payloads], np.uint32)
    data = np.frombuffer(bytearray(b"".join(payloads)), np.uint8)
    packed = np.concatenate(parameters).view(np.uint8).reshape(len(parameters), -1)
    return data, packed, crcs
