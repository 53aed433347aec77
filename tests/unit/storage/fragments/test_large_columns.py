"""A column of more than 1 GiB is packed and written within the memory of a few chunks and its statistics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MIB = 1 << 20
ROWS = 160 << 20
"""Of 8 bytes: 1.25 GiB. More than a table's fragments have, so that what grows with rows would show."""

CHILD = """
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from bamquery.storage.files.filesystem import POSIX
from bamquery.storage.fragments.writer import write_fragment
from tests.peak_memory import peak_bytes

folder, kind, rows = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
STEP = 1 << 20
random = np.random.default_rng(0)
numbers = random.integers(0, 4000, STEP)
mask = random.random(STEP) < 0.1
chunk = {
    "integers": lambda: pa.array(numbers * 60, mask=mask),
    "decimals": lambda: pa.array(numbers / 100, mask=mask),
    "few strings": lambda: pa.array([f"word number {n % 50}" for n in numbers], pa.large_string()),
    "strings": lambda: pa.array([f"{i * 7919} {n:0100}" for i, n in enumerate(numbers)], pa.large_string()),
}[kind]()


class Source:
    def __init__(self):
        self.rows = rows

    def column(self, index):
        return (chunk for _ in range(0, rows, STEP))


before = peak_bytes()
entry = write_fragment(POSIX, folder, "f", pa.schema([("c", chunk.type)]), Source(), encoding="auto")
print(entry.data_bytes, before, peak_bytes())
"""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kind", "rows", "most_bits"),
    [("integers", ROWS, 13), ("decimals", ROWS, 13), ("few strings", ROWS, 7), ("strings", 12 << 20, 1000)],
)
def test_memory_does_not_grow_with_the_column(tmp_path: Path, kind: str, rows: int, most_bits: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), kind, str(rows)],
        capture_output=True,
        text=True,
        check=True,
    )
    size, before, peak = map(int, run.stdout.split())
    print(f"{kind}: {size >> 20} MiB, peak {before >> 20} to {peak >> 20} MiB")
    assert size <= most_bits * rows / 8 * 1.01
    # A bitmap, 100 to 200 bytes of statistics a vector, twice where they become a file; codes of one byte, of
    # which pages come back to the system after a while.
    kept = rows // 8 + 400 * rows // 1024 + (3 * rows // 2 if kind == "few strings" else 0)
    assert peak - before < 64 * MIB + kept
