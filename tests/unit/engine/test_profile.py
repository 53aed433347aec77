"""The figures of a profile against a model that counts them the slow way, and against the kernel's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from bamquery.storage.fragment import Fragment
from bamquery.storage.layout import VECTOR_ROWS
from bamquery.storage.snapshot import Snapshot
from tests.stored import numbers, run_scan, stored

BLOCK = 512


@dataclass
class Model:
    """What one column of one fragment costs, from its layout, its strings and nothing else."""

    fragment: Fragment
    column: str
    values: pa.Array
    """All of them."""
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def width(self) -> int | None:
        """Bits of a value; None for strings."""
        kind = self.values.type
        if pa.types.is_dictionary(kind):
            return kind.index_type.bit_width
        return None if pa.types.is_large_string(kind) else kind.bit_width

    def needed(self, rows: Sequence[int]) -> int:
        total = 0
        if self.values.null_count:
            total += -(-len(rows) // 8)
        width = self.width()
        if width is not None:
            return total + -(-len(rows) * width // 8)
        chosen = self.values.take(pa.array(rows, pa.int64())).to_pylist()
        return total + 8 * len(rows) + sum(len(text.encode()) for text in chosen if text is not None)

    def add(self, begin: int, end: int) -> None:
        """Rows [begin, end) are read together."""
        layout = self.fragment.layout.columns[self.fragment.column_index(self.column)]
        if layout.validity is not None and self.values.slice(begin, end - begin).null_count:
            self.touch(layout.validity.offset, begin / 8, end / 8)
        width = self.width()
        if width is not None:
            self.touch(layout.values.offset, begin * width / 8, end * width / 8)
        else:
            assert layout.offsets is not None
            self.touch(layout.offsets.offset, begin * 8, (end + 1) * 8)
            before = sum(len(t) for t in self.values.slice(0, begin).to_pylist() if t is not None)
            inside = sum(len(t) for t in self.values.slice(begin, end - begin).to_pylist() if t is not None)
            self.touch(layout.values.offset, before, before + inside)

    def touch(self, base: int, begin: float, end: float) -> None:
        if end > begin:
            self.ranges.append((base + int(begin), base + int(np.ceil(end))))

    def blocks(self) -> int:
        return len({block for b, e in self.ranges for block in range(b // BLOCK, (e - 1) // BLOCK + 1)})


def vectors_of(rows: NDArray[np.int64]) -> list[tuple[int, int]]:
    return [(int(v) * VECTOR_ROWS, (int(v) + 1) * VECTOR_ROWS) for v in np.unique(rows // VECTOR_ROWS)]


def reference(snapshot: Snapshot, name: str) -> ColumnRef:
    index = snapshot.schema.get_field_index(name)
    return ColumnRef(index, name, snapshot.schema.field(index).type)


def condition(snapshot: Snapshot, name: str, function: str, value: object) -> Expression:
    column = reference(snapshot, name)
    return Call(function, (column, Literal(pa.scalar(value, column.type))), pa.bool_())


OUTPUTS = ("holes", "text", "word", "flag", "noise")


@pytest.mark.parametrize("strategy", ["stream", "vectors", "blocks"])
@pytest.mark.parametrize("zone_maps", [True, False])
def test_every_column_against_the_model(tmp_path: Path, strategy: str, zone_maps: bool) -> None:
    table = numbers(9000)
    cuts = (0, 5000, 9000)
    with stored(tmp_path / "db", table, cuts[1:-1]) as snapshot:
        predicates = [
            condition(snapshot, "position", "greater_equal", 2500),
            condition(snapshot, "rare", "equal", 1),
        ]
        found, profile = run_scan(
            snapshot, OUTPUTS, predicates, strategy=strategy, zone_maps=zone_maps, block_size=BLOCK
        )
        position, rare = table["position"].to_numpy(), table["rare"].to_numpy()
        final = np.flatnonzero((position >= 2500) & (rare == 1))
        assert found.num_rows == len(final) > 2
        wanted = {name: Figures() for name in ("position", "rare", *OUTPUTS)}
        # Zone maps rule out the first two vectors, and those without a rare row.
        for fragment, begin, end in zip(snapshot.fragments, cuts[:-1], cuts[1:], strict=True):
            part = slice(begin, end)
            candidates = []
            for low in range(0, end - begin, VECTOR_ROWS):
                high = min(low + VECTOR_ROWS, end - begin)
                hopeful = position[part][low:high].max() >= 2500 and rare[part][low:high].max() == 1
                if hopeful or not zone_maps:
                    candidates.append((low, high))
            chosen = final[(final >= begin) & (final < end)] - begin
            # Which filter goes first is the scan's choice; the profile says which it was.
            first = next(iter(profile.columns)) if not profile.columns["rare"].rows_needed == 9000 else "rare"
            second = "rare" if first == "position" else "position"
            passed = np.flatnonzero(position[part] >= 2500 if first == "position" else rare[part] == 1)
            passed = (
                passed[[any(b <= r < e for b, e in candidates) for r in passed]] if len(passed) else passed
            )
            for name in wanted:
                values = stored_values(table, name, snapshot, begin, end)
                model = Model(fragment, name, values)
                if name == first:
                    rows, ways = np.arange(end - begin), candidates
                else:
                    rows = passed if name == second else chosen
                    if not len(rows):
                        ways = []
                    elif strategy == "stream":
                        ways = candidates
                    elif strategy == "vectors":
                        ways = [(b, min(e, end - begin)) for b, e in vectors_of(rows)]
                    else:
                        ways = [(int(r), int(r) + 1) for r in rows]
                for b, e in ways:
                    model.add(b, e)
                wanted[name].add(model, rows, strategy if name != first else "stream")
        for name, figures in wanted.items():
            measured = profile.columns[name]
            assert measured.rows_needed == figures.rows, name
            assert measured.bytes_needed == figures.needed, name
            assert measured.vectors_total == sum(f.vector_count for f in snapshot.fragments), name
            # The dictionary itself is read once a fragment; validity bits may be skipped where none is null.
            assert measured.counters.bytes == measured.counters.blocks * BLOCK
            assert measured.counters.blocks == figures.blocks, name
        assert profile.bytes_needed == sum(figures.needed for figures in wanted.values())


class Figures:
    """Sums over fragments."""

    def __init__(self) -> None:
        self.rows = self.needed = self.blocks = 0

    def add(self, model: Model, rows: NDArray[np.int64], strategy: str) -> None:
        self.rows += len(rows)
        self.needed += model.needed(rows.tolist())
        self.blocks += model.blocks()
        layout = model.fragment.layout.columns[model.fragment.column_index(model.column)]
        if layout.dictionary is not None and len(rows):
            for extent in (layout.dictionary.offsets, layout.dictionary.values):
                if extent is not None:
                    self.blocks += (extent.end - 1) // BLOCK - extent.offset // BLOCK + 1


def stored_values(table: pa.Table, name: str, snapshot: Snapshot, begin: int, end: int) -> pa.Array:
    kind = snapshot.schema.field(name).type
    return table[name].slice(begin, end - begin).combine_chunks().cast(kind)
