"""Every SQL function under each of its names, for completion, `duckdb_functions()` and docs/functions.md."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from bamquery.function_catalog import (
    aggregates,
    any_type,
    numbers,
    session,
    strings,
    table_functions,
    times,
    windows,
)
from bamquery.function_catalog import plan_functions as plan
from bamquery.function_catalog.contract import NO_INTERVALS, FunctionContract, RowByRow
from bamquery.function_catalog.entry import Entry, FunctionKind, Section
from bamquery.function_catalog.signature import Signature

GpuSupport: TypeAlias = Literal["yes", "constants", "no"]
"""Over columns on a GPU: it runs, it runs where all arguments but the first are constants, it is refused."""

SECTIONS: Final = tuple(
    room.SECTION
    for room in (numbers, strings, times, any_type, session, aggregates, windows, table_functions)
)
"""As they stand on the page."""


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """An entry under one of its names, and the section that it is in."""

    name: str
    entry: Entry
    section: Section

    @property
    def kind(self) -> FunctionKind:
        """Where it may stand."""
        return self.section.kind

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The ways to call it, at least one."""
        return self.entry.parsed_signatures()

    @property
    def alias_of(self) -> str | None:
        """The function that it is another name of, or None."""
        return None if self.name == self.entry.name else self.entry.name

    @property
    def usages(self) -> tuple[str, ...]:
        """Every signature as text."""
        return tuple(signature.text(self.name) for signature in self.signatures)


@functools.cache
def functions() -> Sequence[FunctionRecord]:
    """All functions, section by section; those of several kinds (`first`) come once for each."""
    entries = ((entry, section) for section in SECTIONS for entry in section.entries)
    return tuple(FunctionRecord(name, *found) for found in entries for name in found[0].all_names)


@functools.cache
def _records_by_name() -> dict[str, tuple[FunctionRecord, ...]]:
    found: dict[str, tuple[FunctionRecord, ...]] = {}
    for record in functions():
        found[record.name] = (*found.get(record.name, ()), record)
    return found


def function_records(name: str) -> Sequence[FunctionRecord]:
    """The functions of that name (any case); none where there is none."""
    return _records_by_name().get(name.lower(), ())


def contracts(entry: Entry, kind: FunctionKind) -> Sequence[FunctionContract]:
    """What devices owe of the functions of plans that the entry's become."""
    tables: dict[FunctionKind, Mapping[str, FunctionContract]] = {
        "scalar": plan.SCALAR_FUNCTIONS,
        "aggregate": plan.AGGREGATE_FUNCTIONS,
        "window": plan.WINDOW_FUNCTIONS,
        "table": {},
    }
    # Those of the connection and of FROM are none of plans, by their own names.
    return [tables[kind][name] for name in entry.plan_functions if entry.calls or name in tables[kind]]


def row_by_row(entry: Entry, kind: FunctionKind) -> RowByRow:
    """When the entry's functions call Python for every row."""
    found = [one.row_by_row for one in contracts(entry, kind)]
    return next((one for one in found if one != "never"), "never")


def gpu_support(entry: Entry, kind: FunctionKind) -> GpuSupport:
    """What of the entry's functions runs on a GPU, which has no columns of intervals."""
    first, *others = contracts(entry, kind) or (FunctionContract(),)
    if first.cuda_refusal:
        return "no"
    others = [other for other in others if other.cuda_refusal != NO_INTERVALS]
    limited = any(one.cuda_refusal or one.cuda_constants_from is not None for one in (first, *others))
    return "constants" if limited else "yes"
