"""Scans of small tables of every kind, by one device against the CPU's: answers, and what reading took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.scan import chunks as scan_chunks
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.engine.settings import Settings
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.storage.tables.snapshot import Snapshot
from tests.stored import scan_of

SELECTIVITIES = (0.0, 0.0003, 0.05, 1.0)
STRATEGIES = ("stream", "vectors", "blocks", "auto")
FIXED = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u16": pa.uint16(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "stamp": pa.timestamp("us"),
    "dec": pa.decimal128(21, 2),
    "flag": pa.bool_(),
}
KEYS = tuple(FIXED)
"""Columns that a kernel compares."""


def every_type(rows: int, seed: int = 0, *, nulls: str = "some") -> pa.Table:
    """A column of each fixed-width type, `pick` uniform in [0, 1), `word` (a dictionary) and `text`.

    `nulls`: "none"; "some": in parts of the rows, so that vectors without any, with some, and of nothing else
    come about; "pick": `pick` has them, too.
    """
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 100, rows)
    signed = numbers - 50
    floats = np.where(numbers < 10, np.array([0.0, -0.0, np.nan, np.inf, -np.inf])[numbers % 5], signed / 4)
    values: dict[str, Any] = {
        name: pa.array(numbers if name.startswith("u") else signed).cast(kind)
        for name, kind in FIXED.items()
        if name[0] in "iu"
    }
    values["dec"] = pa.array(signed).cast(pa.decimal128(21, 2))
    values["f32"], values["f64"] = pa.array(floats.astype(np.float32)), pa.array(floats)
    values["date"] = pa.array(signed.astype(np.int32)).cast(pa.date32())
    values["time"] = pa.array(numbers * 1_000_003).cast(pa.time64("us"))
    values["stamp"] = pa.array(signed * 86_400_000_001).cast(pa.timestamp("us"))
    values["flag"] = pa.array(numbers % 3 == 0)
    if nulls != "none":
        for number, name in enumerate(FIXED):
            part = np.zeros(rows, np.bool_)
            part[rows // 8 : rows // 2] = random.random(rows // 2 - rows // 8) < 0.1 * (number % 4)
            part[rows // 2 : rows // 2 + 2100] = True  # a vector and more of nothing else
            values[name] = pc.if_else(pa.array(part), pa.scalar(None, values[name].type), values[name])
    pick = random.random(rows)
    values["pick"] = pa.array(pick, mask=(random.random(rows) < 0.2) if nulls == "pick" else None)
    words = np.array(["red", "green", "", "blue"])
    values["word"] = pa.array(words[numbers % 4], pa.large_string()).dictionary_encode()
    values["text"] = pa.array([None if n % 7 == 0 else "x" * (n % 23) for n in numbers], pa.large_string())
    return pa.table(values)


def column(table: pa.Table | Snapshot, name: str) -> ColumnRef:
    """A reference to a stored column."""
    index = table.schema.get_field_index(name)
    return ColumnRef(index, name, table.schema.field(index).type)


def compare(table: Any, name: str, function: str, value: Any) -> Expression:
    """`name function value`, the value of the column's type."""
    found = column(table, name)
    return Call(function, (found, Literal(pa.scalar(value, found.type))), pa.bool_())


def run(
    device: Device[Any],
    snapshot: Snapshot,
    columns: Sequence[str],
    predicates: Sequence[Expression] = (),
    **settings: Any,
) -> tuple[pa.Table, ScanProfile]:
    """The scan's rows and its profile."""
    scan = scan_of(snapshot, columns, predicates, **settings)
    chosen = Settings().with_values({"threads": 1, **settings})
    with ExecutionContext(device, chosen) as context:
        batches = [device.to_arrow(frame, scan.fields) for frame in scan.frames(context)]
    assert isinstance(scan.profile, ScanProfile)
    if not columns:
        return pa.table({"rows": [sum(batch.num_rows for batch in batches)]}), scan.profile
    schema = pa.schema([pa.field(field.name, field.type) for field in scan.fields])
    return pa.Table.from_batches([b.cast(schema) for b in batches], schema), scan.profile


def check(
    device: Device[Any],
    snapshot: Snapshot,
    columns: Sequence[str],
    predicates: Sequence[Expression] = (),
    *,
    same_order: bool = True,
    **settings: Any,
) -> ScanProfile:
    """Have the device and the CPU scan, and hold their answers and needs against each other.

    Args:
        device: to be tested.
        snapshot: what is scanned.
        columns: to give out.
        predicates: that all must hold.
        same_order: whether both look at them in one order; if not, needs may differ.
        settings: of both.

    Returns:
        The device's profile, whose bytes have been compared where strategies were forced.
    """
    with pytest.MonkeyPatch.context() as patch:
        # One chunk for all: then both read the same blocks together.
        patch.setattr(scan_chunks, "FIRST_VECTORS", 1 << 20)
        patch.setattr(scan_chunks, "CHUNK_VECTORS", 1 << 20)
        patch.setattr(scan_chunks, "CHUNK_BYTES", 1 << 40)
        _forget_dictionaries(snapshot, device)
        expected, theirs = run(CpuDevice(), snapshot, columns, predicates, **settings)
    _forget_dictionaries(snapshot, device)
    found, ours = run(device, snapshot, columns, predicates, **settings)
    require_same(found, expected)
    # Past the page cache, vectors narrower than a block are read with it, each by itself.
    again = settings.get("reader") == "direct" and settings["strategy"] != "blocks"
    if same_order and settings.get("strategy", "auto") != "auto" and not again:
        kernels_read = [name for name, c in ours.columns.items() if c.paths]
        if len(snapshot.fragments) > 1:
            # A GPU reads the dictionaries of all fragments. Its host does not know from which fragments a
            # second condition took the last rows: it has these streamed as well.
            if len(predicates) > 1 and settings["strategy"] == "stream":
                kernels_read = []
            kernels_read = [name for name in kernels_read if not _has_dictionary(snapshot, name)]
        check_bytes(ours, theirs, kernels_read)
    assert ours.rows_scanned == theirs.rows_scanned
    for name, want in theirs.columns.items():
        got = ours.columns[name]
        assert got.vectors_total == want.vectors_total, name
        # A device may see that conditions contradict each other.
        assert got.vectors_pruned >= want.vectors_pruned, name
        if not same_order:
            continue
        assert (got.rows_needed, got.bytes_needed) == (want.rows_needed, want.bytes_needed), name
    return ours


def _has_dictionary(snapshot: Snapshot, name: str) -> bool:
    return any(f.layout.columns[f.column_index(name)].dictionary is not None for f in snapshot.fragments)


def _forget_dictionaries(snapshot: Snapshot, device: Any) -> None:
    """Have who scans next read them, and count that."""
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of

    for fragment in snapshot.fragments:
        fragment._dictionaries.clear()
    resources_of(device.session).dictionaries.clear()


SECTOR_BYTES = 32


def check_bytes(ours: ScanProfile, theirs: ScanProfile, names: Sequence[str]) -> None:
    """See that both read the same blocks of those columns.

    A GPU may leave out parts of vectors, and of single rows that it loads itself it counts sectors.
    """
    for name in names:
        one, other = ours.columns[name], theirs.columns[name]
        got, want = one.counters, other.counters
        if one.parts_pruned or one.vectors_pruned > other.vectors_pruned:
            assert got.bytes <= want.bytes, name
            continue
        if one.fetched_blocks and one.paths["zero-copy"]:
            assert SECTOR_BYTES * want.blocks <= got.bytes <= want.bytes, name
            continue
        assert (got.blocks, got.bytes) == (want.blocks, want.bytes), name


def require_same(found: pa.Table, expected: pa.Table) -> None:
    """The same values bit for bit, NaN and signed zeros included."""
    assert found.schema.names == expected.schema.names
    assert found.num_rows == expected.num_rows
    for name in expected.schema.names:
        got, want = (t.column(name).combine_chunks() for t in (found, expected))
        assert got.is_null().equals(want.is_null()), name
        if pa.types.is_dictionary(want.type):
            got, want = got.cast(want.type.value_type), want.cast(want.type.value_type)
        if pa.types.is_floating(want.type):
            whole = pa.int64() if want.type == pa.float64() else pa.int32()
            got, want = (pa.array(_plain(a)).view(whole) for a in (got, want))
        assert got.cast(want.type).equals(want), name


def _plain(values: Any) -> Any:
    return values.drop_null().to_numpy(zero_copy_only=False)
