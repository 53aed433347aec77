"""Conditions on one column, as the filter kernel takes them: intervals of keys that order like the values."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.storage.format.storable_types import is_string_like, value_kind
from bamquery.storage.statistics.order_keys import Interval, key_bits, order_key
from bamquery.storage.statistics.predicate import RangePredicate

TERMS: Final = 8
INTERVALS: Final = 24
"""As many as a ScanPredicate of engine/kernels/scan_predicate.hpp holds."""

_C_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"float32": "float", "float64": "double", "bool": "ScanBits", "int128": "ScanDecimal"}
)
_WIDE: Final = frozenset({"ScanDecimal"})
"""Types whose keys, and so intervals, have 128 bits."""


@dataclass(frozen=True)
class Term:
    """True for values in one of the intervals; `negated`: in none."""

    intervals: tuple[Interval, ...]
    negated: bool = False


@dataclass(frozen=True)
class FusedPredicate:
    """What a kernel checks of one column.

    Attributes:
        c_type: the column's values in CUDA C++.
        terms: all must hold; none: nothing is compared.
        wants_nulls: rows pass if they are null, and only then; otherwise only rows that are not.
    """

    c_type: str
    terms: tuple[Term, ...]
    wants_nulls: bool = False

    @property
    def selected_c_type(self) -> str:
        """Of the values of selected rows: booleans have a byte each there."""
        return "uint8_t" if self.c_type == "ScanBits" else self.c_type

    def pack(self) -> bytes:
        """The ScanPredicate."""
        intervals = [interval for term in self.terms for interval in term.intervals]
        terms = bytearray()
        first = 0
        for term in self.terms:
            terms += struct.pack("<HHI", first, len(term.intervals), term.negated)
            first += len(term.intervals)
        size = 16 if self.c_type in _WIDE else 8
        places = b"".join(key.to_bytes(size, "little") for interval in intervals for key in interval)
        return (
            struct.pack("<II", len(self.terms), self.wants_nulls)
            + terms.ljust(8 * TERMS, b"\0")
            + places.ljust(2 * size * INTERVALS, b"\0")
        )


EVERYTHING: Final = FusedPredicate("double", ())
"""All rows that are not null; where no validity is looked at, all rows."""


def fuse(step: FilterStep, kind: pa.DataType) -> FusedPredicate | str:
    """The step's conditions on its one column of type `kind`, or why they do not fit a kernel."""
    if len(step.columns) != 1:
        return "its condition compares several columns"
    c_type = value_c_type(kind)
    if c_type is None:
        return f"values of type {kind} are not compared while they stream"
    if any(len(conjunct.ranges) != 1 for conjunct in step.conjuncts):
        return "its condition is more than comparisons of the column with constants"
    return fuse_ranges([conjunct.ranges[0] for conjunct in step.conjuncts], kind, c_type)


def value_c_type(kind: pa.DataType) -> str | None:
    """What values of the type are in CUDA C++; None for those that the filter kernel does not compare."""
    if pa.types.is_dictionary(kind) or is_string_like(kind):
        return None
    return _C_TYPES.get(value_kind(kind))


def fuse_ranges(ranges: Sequence[RangePredicate], kind: pa.DataType, c_type: str) -> FusedPredicate | str:
    """One predicate for conditions on one column that all must hold, or why they do not fit a kernel."""
    low, high = 0, (1 << key_bits(kind)) - 1
    within = (low, high)
    excluded: list[Interval] = []
    terms: list[Term] = []
    wants_nulls = forbids_nulls = False
    for found in ranges:
        if found.or_null:
            return "its condition is true of nulls and of other values"
        if found.operator == "is_null":
            wants_nulls = True
            continue
        forbids_nulls = True
        if found.operator == "is_not_null":
            continue
        if found.members is not None:
            return f"its condition names {len(found.members)} values, which are found by their hashes"
        keys = [order_key(value) for value in found.values if value.is_valid]
        if found.operator == "in":
            terms.append(Term(tuple((key, key) for key in sorted(set(keys)))))
        elif not keys:  # a comparison with null is never true
            terms.append(Term(()))
        elif found.operator == "!=":
            excluded.append((keys[0], keys[0]))
        else:
            first, last = _interval(found.operator, keys[0], high)
            within = (max(within[0], first), min(within[1], last))
    if within[0] > within[1]:
        terms.append(Term(()))
    elif within != (low, high):
        terms.append(Term((within,)))
    if excluded:
        terms.append(Term(tuple(sorted(set(excluded))), negated=True))
    if wants_nulls and forbids_nulls:
        return FusedPredicate(c_type, (Term(()),))
    count = sum(len(term.intervals) for term in terms)
    if len(terms) > TERMS or count > INTERVALS:
        return f"its condition names {count} values, and a kernel compares with {INTERVALS} at most"
    return FusedPredicate(c_type, tuple(terms), wants_nulls)


def _interval(operator: str, key: int, high: int) -> Interval:
    match operator:
        case "=":
            return key, key
        case "<":
            return 0, key - 1  # empty where nothing is smaller
        case "<=":
            return 0, key
        case ">":
            return key + 1, high
        case _:
            return key, high
