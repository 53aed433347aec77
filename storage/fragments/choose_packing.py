"""Whether a column of numbers is packed: decided for a fragment by a sample of its first vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import DECIMAL, PACKED_VECTOR, exponents, forms
from bamquery.storage.format.layout import VECTOR_ROWS, Encoding
from bamquery.storage.format.storable_types import value_bits, value_kind

_SAMPLED: Final = 16
"""One vector in so many is looked at."""
_LEAST_VECTORS: Final = 8
WORTH: Final = 0.9
"""Part of the plain column's bytes above which packing it is not worth it."""
_PACKED_DIGITS: Final = 18
"""Decimals of so many digits are numbers of 64 bits, which escapes are, whichever rows may come."""
_MOST_EXPONENTS: Final = 3

FORCED: dict[str, bool] = {"pack": False, "symbols": False}
"""For tests: whether all columns are packed that can be, and strings by symbols, however few they are."""


@dataclass(frozen=True, slots=True)
class PackingChoice:
    """What a fragment's packed column shares, and which decimals its vectors should try.

    Attributes:
        divisor: of numbers of form 0.
        origin: is added to them, modulo 2^64.
        exponents: of decimals, ascending.
    """

    divisor: int = 1
    origin: int = 0
    exponents: bytes = b""


def can_pack(type_: Any, encoding: Encoding) -> bool:
    """Whether columns of the stored type may be packed at all."""
    if encoding == "plain":
        return False
    return not pa.types.is_decimal128(type_) or type_.precision <= _PACKED_DIGITS


def choose_packing(
    type_: Any, values: Any, validity: NDArray[np.uint8] | None, rows: int
) -> PackingChoice | None:
    """How a column of the stored type is packed that begins with these rows; None if it stays plain.

    `values` and `validity` are as `_native.vector_statistics` takes them, `rows` those of whole vectors, but
    for the last.
    """
    kind = value_kind(type_)
    sample, valid, count = _sample(value_bits(type_), values, validity, rows)
    scale = _scale(kind, sample, valid, count)
    payload, parameters, _ = _native.pack_vectors(
        kind, sample, valid, count, scale.divisor, scale.origin, scale.exponents
    )
    plain = value_bits(type_) + (validity is not None)
    if not FORCED["pack"] and 8 * (payload.size + parameters.size) >= WORTH * plain * count:
        return None
    return replace(scale, exponents=_exponents(parameters.reshape(-1).view(PACKED_VECTOR)))


def _exponents(parameters: NDArray[Any]) -> bytes:
    """Those of decimals that most vectors have, ascending."""
    found = exponents(parameters)[forms(parameters) == DECIMAL]
    counts = np.bincount(found, minlength=1)
    most = np.argsort(-counts, kind="stable")[:_MOST_EXPONENTS]
    return bytes(sorted(int(exponent) for exponent in most if counts[exponent]))


def _scale(kind: str, values: Any, validity: NDArray[np.uint8] | None, rows: int) -> PackingChoice:
    """The greatest common divisor of the distances of all numbers, and the least of these."""
    if kind == "bool" or kind.startswith("float"):
        return PackingChoice()
    numbers: NDArray[Any] = np.frombuffer(values, np.int64 if kind == "int128" else kind)
    if kind == "int128":
        numbers = numbers[::2]
    numbers = numbers[:rows]
    if validity is not None:
        numbers = numbers[np.unpackbits(validity[: -(-rows // 8)], count=rows, bitorder="little") != 0]
    if not len(numbers):
        return PackingChoice()
    origin = numbers.min()
    wide = np.uint64 if numbers.dtype.kind == "u" else np.int64
    distances = (numbers.astype(wide) - wide(origin)).view(np.uint64)
    divisor = int(np.gcd.reduce(distances))
    if not 1 < divisor < 1 << 63:
        divisor = 1
    if divisor == 1 and int(origin) < 1 << 63:
        return PackingChoice()
    return PackingChoice(divisor, int(origin) % (1 << 64))


def _sample(
    bits: int, values: Any, validity: NDArray[np.uint8] | None, rows: int
) -> tuple[Any, NDArray[np.uint8] | None, int]:
    """Some vectors, evenly spread, end to end; all of them where there are few."""
    whole = rows // VECTOR_ROWS
    step = min(_SAMPLED, whole // _LEAST_VECTORS)
    if step <= 1:
        return values, validity, rows
    data = np.frombuffer(values, np.uint8)[: whole * VECTOR_ROWS * bits // 8]
    sample = np.ascontiguousarray(data.reshape(whole, -1)[step // 2 :: step])
    valid = None
    if validity is not None:
        bitmap = validity[: whole * VECTOR_ROWS // 8].reshape(whole, -1)
        valid = np.ascontiguousarray(bitmap[step // 2 :: step]).reshape(-1)
    return sample.reshape(-1), valid, len(sample) * VECTOR_ROWS
