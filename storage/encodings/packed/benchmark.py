"""`bamquery bench packed`: packing, decoding, single rows and conditions, against plain values in memory.

One thread, and its processor's time. Times are the least of several runs of the whole column, so of what
memory gives where columns are larger than caches. Plain is what numpy does with the same values: a copy, an
index, a comparison.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR, payload_starts
from bamquery.storage.format.layout import VECTOR_ROWS

_TAKEN: Final = 100_000
"""Rows that are read singly."""


@dataclass(frozen=True)
class Result:
    """Of one column at one level of instructions: values a second, in millions."""

    column: str
    kind: str
    level: str
    bits: float
    """A value, 16 bytes of parameters a vector included."""
    pack: float
    unpack: float
    copy: float
    take: float
    index: float
    compare: float
    plain_compare: float


@dataclass(frozen=True)
class _Column:
    """A packed column in memory."""

    kind: str
    payload: NDArray[np.uint8]
    parameters: NDArray[Any]
    rows: int
    scale: tuple[int, int]


def columns(rows: int, seed: int = 0) -> Mapping[str, NDArray[Any]]:
    """Columns as they are common: keys, times, prices, distances, measurements."""
    random = np.random.default_rng(seed)
    fees = np.array([0, 0.5, 1.0, 2.5, 4.5])
    return {
        "int16, 265 zones": random.integers(1, 266, rows).astype(np.int16),
        "int64, 12 bits": random.integers(0, 4000, rows),
        "int64, 1 % outliers": np.where(random.random(rows) < 0.01, 10**9, random.integers(0, 4000, rows)),
        "timestamps, seconds": np.sort(random.integers(0, 10**7, rows)) * 10**6,
        "double, prices": random.integers(250, 8000, rows) / 100,
        "double, distances": np.round(random.lognormal(0.7, 0.8, rows), 2),
        "double, five fees": fees[random.choice(5, rows, p=[0.5, 0.3, 0.1, 0.06, 0.04])],
        "double, random": random.normal(size=rows),
    }


def measure(name: str, values: NDArray[Any], level: str, repeat: int) -> Result:
    """One column at one of `_native.simd_levels()`."""
    _native.use_simd_level(level)
    try:
        return _measure(name, values, level, repeat)
    finally:
        _native.use_simd_level(_native.simd_levels()[-1])


def _measure(name: str, values: NDArray[Any], level: str, repeat: int) -> Result:
    kind, rows = str(values.dtype), len(values)
    sample = _native.packing_sample(kind, values, None, min(rows, 64 * VECTOR_ROWS))
    scale = sample["divisor"], sample["origin"]
    payload, packed, _ = _native.pack_vectors(kind, values, None, rows, *scale, sample["exponents"])
    parameters = packed.reshape(-1).view(PACKED_VECTOR)
    starts = payload_starts(parameters)
    counts = np.minimum(rows - np.arange(len(parameters), dtype=np.int64) * VECTOR_ROWS, VECTOR_ROWS)
    vectors = payload, starts, parameters, counts
    column = _Column(kind, payload, parameters, rows, scale)
    out, mask = np.empty_like(values), np.empty(-(-rows // 8), np.uint8)
    taken = np.sort(np.random.default_rng(1).integers(0, rows, _TAKEN))
    threshold = np.quantile(values, 0.9).astype(values.dtype)
    terms, bounds = np.array([(1, 0)]), np.array([_key(threshold), _greatest_key(values.dtype)], np.uint64)

    def rate(work: Callable[[], object], count: int = rows) -> float:
        return count / 1e6 / min(_seconds(work) for _ in range(repeat))

    return Result(
        column=name,
        kind=kind,
        level=level,
        bits=8 * (len(payload) + packed.size) / rows,
        pack=rate(lambda: _native.pack_vectors(kind, values, None, rows, *scale, sample["exponents"])),
        unpack=rate(lambda: _native.unpack_vectors(kind, *vectors, *scale, out, None)),
        copy=rate(lambda: np.copyto(out, values)),
        take=rate(lambda: _take(column, taken, out), _TAKEN),
        index=rate(lambda: values[taken], _TAKEN),
        compare=rate(lambda: _native.compare_packed(kind, *vectors, *scale, terms, bounds, False, mask)),
        plain_compare=rate(lambda: np.packbits(values >= threshold, bitorder="little")),
    )


def _take(column: _Column, taken: NDArray[np.int64], out: NDArray[Any]) -> None:
    about = column.kind, column.parameters, column.rows, len(column.payload)
    words = np.ndarray(max(len(column.payload) - 7, 0), np.uint64, column.payload, strides=(1,))
    bitmap = np.empty(-(-len(taken) // 8), np.uint8)

    def load(places: NDArray[np.int64]) -> NDArray[np.uint64]:
        return words[np.minimum(places, len(words) - 1)]

    first = load(_native.packed_places(*about, taken))
    positions, rest = _native.unpack_rows(*about, *column.scale, taken, first, out, bitmap)
    _native.unpack_rest(*about, *column.scale, taken, positions, load(rest), out, bitmap)


def _key(value: Any) -> int:
    """The order key of a value that is not negative."""
    size = int(value.dtype.itemsize)
    number = int(value.view(f"u{size}") if value.dtype.kind == "f" else value)
    return 1 << (8 * max(size, 4) - 1) | number


def _greatest_key(dtype: np.dtype[Any]) -> int:
    return (1 << 8 * max(dtype.itemsize, 4)) - 1


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main(arguments: Sequence[str]) -> int:
    """Prints a table, and writes a JSON file if asked."""
    parser = argparse.ArgumentParser(
        prog="bamquery bench packed", description="Packed columns against plain ones, on one thread."
    )
    parser.add_argument("--rows", type=int, default=1 << 24, help="of each column (default: 16 Mi)")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the fastest counts")
    parser.add_argument("--levels", nargs="+", default=_native.simd_levels()[-1:], help="of instructions")
    parser.add_argument("--json", type=Path, help="write all results there")
    options = parser.parse_args(arguments)
    header = "column", "level", "bits", "pack", "unpack", "copy", "take", "index", "compare", "plain"
    print(("{:22}{:>9}" + "{:>9}" * 8).format(*header))  # noqa: T201
    results = []
    for name, values in columns(options.rows).items():
        for level in options.levels:
            found = measure(name, values, level, options.repeat)
            results.append(found)
            numbers = (found.pack, found.unpack, found.copy, found.take, found.index, found.compare)
            line = "".join(f"{number:9.1f}" for number in (found.bits, *numbers, found.plain_compare))
            print(f"{name:22}{level:>9}{line}", flush=True)  # noqa: T201
    print("Millions of values a second; bits a value.")  # noqa: T201
    if options.json is not None:
        machine = {"python": sys.version, "platform": platform.platform(), "processor": platform.processor()}
        about = {"machine": machine, "rows": options.rows, "results": [asdict(found) for found in results]}
        options.json.write_text(json.dumps(about, indent=1) + "\n")
    return 0
