"""Strings that match a LIKE pattern, by a device's kernel against the CPU's."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.device import Device
from bamquery.plan.expressions import Call, ColumnRef, Literal
from bamquery.plan.nodes import Field

TEXT = pa.large_string()
MATCH = Field("match", pa.bool_())
PATTERNS = (
    *("%b%", "a%", "%a", "a%a", "%ab%ba%", "%aa%aa", "ab%ab%ab", "a%b%", "%ä%", "ä%é", "%abab%"),
    *("%" + "a%" * 8, "%a%%b%", "%" + "ab" * 64 + "%", "%c%"),
)
OTHERS = ("a", "_%", "%a_", "%", "%%", "", "a%" * 9, "%" + "a" * 129 + "%")
"""What the kernel leaves to libcudf."""


def texts(rows: int, seed: int, nulls: float = 0.1) -> pa.Array[Any]:
    """Of few letters, so that parts are found often, and in part; some empty, a few very long."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 14, rows)
    lengths[random.random(rows) < 0.01] = 700
    letters = np.array(["a", "b", "a", "b", "ä", "é"])
    made = ["".join(letters[random.integers(0, len(letters), length)]) for length in lengths]
    return pa.array(made, TEXT, mask=random.random(rows) < nulls)


def check_like(device: Device[Any], match: Any, rows: int, seed: int) -> None:
    """`match`: the kernel's function, of rows that are as many as it asks for."""
    make_frame = importlib.import_module("bamquery.engine.cuda.frames").make_frame  # the device's own
    for nulls in (0.0, 0.1):
        column = texts(rows + 5, seed, nulls).slice(5)
        batch = pa.RecordBatch.from_arrays([column], ["text"])
        frame = device.from_arrow(batch)
        part = device.slice(frame, rows // 3, rows - rows // 3)
        for pattern in PATTERNS:
            wanted = _by_processor(pattern, batch)
            for one, begin in ((frame, 0), (part, rows // 3)):
                (given,) = one.columns  # type: ignore[attr-defined]
                found = match(device.kernels, given, pattern)  # type: ignore[attr-defined]
                assert found is not None, pattern
                answer = device.to_arrow(make_frame([found], found.size()), [MATCH])
                assert answer.column(0).to_pylist() == wanted[begin:], (pattern, rows, nulls)
        for pattern in OTHERS:
            assert match(device.kernels, frame.columns[0], pattern) is None, pattern  # type: ignore[attr-defined]


def _by_processor(pattern: str, batch: pa.RecordBatch) -> list[bool | None]:
    condition = Call("like", (ColumnRef(0, "text", TEXT), Literal(pa.scalar(pattern, TEXT))), pa.bool_())
    cpu = CpuDevice()
    answer = cpu.to_arrow(cpu.evaluate([condition], cpu.from_arrow(batch)), [MATCH])
    found: list[bool | None] = answer.column(0).to_pylist()
    return found
