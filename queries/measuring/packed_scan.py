"""`bamquery bench packed-scan`: kernels of the scan over a packed column that lies in a GPU's memory.

Codes are random bits, so that no packer is needed: whatever they are, they stand for values, escapes and
NULL. The column is filtered by its codes, unpacked to doubles and filtered once more: both filters must let
the same rows pass. Seconds are the kernels' own, by the GPU's clock.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bamquery.driver.gpu.device import Gpu
from bamquery.engine.cuda.launcher import KERNELS, THREADS, WARPS
from bamquery.engine.cuda.scan.kernel_tables.packed_requests import SCALE, SLACK
from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, Term
from bamquery.engine.cuda.scan.kernel_tables.requests import VECTOR
from bamquery.errors import BamQueryError
from bamquery.queries.arguments import count, positive
from bamquery.queries.measuring.machine import describe_machine
from bamquery.storage.encodings.packed.parameters import DECIMAL, PACKED_VECTOR, UNIT
from bamquery.storage.format.layout import VECTOR_ROWS, align

_DEFINE: Final = "BAMQUERY_SCAN_TYPE=double"
_BLOCKS: Final = 16
"""Of a multiprocessor, as in a scan."""
_CHECK_BLOCKS: Final = 6
_EXPONENT: Final = 2
_RANDOM_BYTES: Final = 16 << 20
"""Bytes of payload that are made: more repeat them."""
_DEADLINE_S: Final = 60.0
_ESCAPES: Final = (-0.0, np.inf, np.nan)


@dataclass(frozen=True)
class Kernel:
    """One kernel's fastest run.

    Attributes:
        packed_bytes: that it reads.
        plain_bytes: of the rows as doubles.
    """

    bits: int
    name: str
    seconds: float
    packed_bytes: int
    plain_bytes: int

    @property
    def packed_rate(self) -> float:
        """Packed bytes a second."""
        return self.packed_bytes / self.seconds

    @property
    def plain_rate(self) -> float:
        """Bytes of plain width a second."""
        return self.plain_bytes / self.seconds


def measure(gpu: Any, bits: int, rows: int, share: float, repeat: int) -> list[Kernel]:
    """Time each kernel on so many rows of `bits` each, of which about `share` pass.

    Raises:
        BamQueryError: both filters do not let the same rows pass, or the GPU fails.
    """
    vectors = -(-rows // VECTOR_ROWS)
    rows = vectors * VECTOR_ROWS
    parameters, size = _parameters(bits, vectors)
    with (
        gpu.allocate(vectors * size + SLACK) as payload,
        gpu.allocate(parameters.nbytes) as known,
        gpu.allocate(4 * vectors) as slots,
        gpu.allocate(8 * vectors) as places,
        gpu.allocate(SCALE.itemsize) as scale,
        gpu.allocate(2 * vectors) as vector_rows,
        gpu.allocate(128 * vectors) as mask,
        gpu.allocate(128 * vectors) as plain_mask,
        gpu.allocate(4 * vectors) as counts,
        gpu.allocate(128 * vectors) as validity,
        gpu.allocate(8 * rows) as values,
        gpu.allocate(4 * vectors) as checksums,
        gpu.allocate(8) as counter,
    ):
        _fill(payload, vectors * size, bits)
        numbers = np.zeros(vectors, VECTOR)
        numbers["number"] = np.arange(vectors)
        for held, what in (
            (known, parameters),
            (slots, parameters["offset"].astype(np.uint32)),
            (places, numbers),
            (scale, np.array([(1, 0)], SCALE)),
            (vector_rows, np.full(vectors, VECTOR_ROWS, np.uint16)),
        ):
            held.write(np.ascontiguousarray(what).view(np.uint8))
        packed = struct.pack("<6Q", *[m.address for m in (known, slots, payload, places, scale, vector_rows)])
        files = struct.pack("<5Q2I", known.address, places.address, 0, vector_rows.address, 0, 8, 512)
        above = _key((((1 << bits) - len(_ESCAPES) - 1) * (1 - share)) / 10**_EXPONENT)
        predicate = FusedPredicate("double", (Term(((above, _key(np.inf)),)),)).pack()
        grid = max(1, min(-(-vectors // WARPS), _BLOCKS * gpu.multiprocessors))
        check_grid = min(grid, _CHECK_BLOCKS * gpu.multiprocessors)
        runs: tuple[tuple[str, str, tuple[str, ...], tuple[Any, ...], int], ...] = (
            (
                "filter by codes",
                "packed/filter:scan_packed_filter",
                (_DEFINE,),
                (packed, None, vectors, predicate, mask, counts),
                grid,
            ),
            (
                *("unpack", "packed/gather:scan_packed_unpack", (_DEFINE,)),
                *((packed, vectors, values, validity, counter), grid),
            ),
            (
                *("filter plain doubles", "scan_filter", (_DEFINE,)),
                (values, validity, None, None, rows, vectors, None, predicate, plain_mask, counts),
                grid,
            ),
            (
                *("compare checksums", "packed/load:scan_packed_crc", ()),
                *((files, slots, vectors, payload, checksums, counter), check_grid),
            ),
        )
        found = []
        for name, kernel, defines, arguments, blocks in runs:
            file, _, function = kernel.partition(":")
            loaded = gpu.load(KERNELS / f"{file}.cu", function or file, defines=defines)
            seconds = min(
                gpu.launch(loaded, *arguments, grid=blocks, block=THREADS).wait(_DEADLINE_S)
                for _ in range(repeat)
            )
            found.append(Kernel(bits, name, seconds, vectors * size, 8 * rows))
        if mask.read() != plain_mask.read():
            raise BamQueryError(f"{bits} bits: codes and plain values do not let the same rows pass")
    return found


def _parameters(bits: int, vectors: int) -> tuple[Any, int]:
    """Of vectors that have all that decoding knows; and the size of a payload."""
    parameters = np.zeros(vectors, PACKED_VECTOR)
    parameters["bits"] = bits
    parameters["exponent_form"] = DECIMAL << 5 | _EXPONENT
    parameters["escapes_nulls"] = 1 << 15 | len(_ESCAPES)
    size = align(VECTOR_ROWS * bits // 8 + 8 * len(_ESCAPES), UNIT)
    parameters["offset"] = np.arange(vectors) * (size // UNIT)
    return parameters, size


def _fill(payload: Any, size: int, seed: int) -> None:
    """Random codes, with the escapes behind those of each vector."""
    of_vector = _parameters(seed, 1)[1]
    made = np.random.default_rng(seed).integers(0, 256, _RANDOM_BYTES // of_vector * of_vector, np.uint8)
    vectors = made.reshape(-1, of_vector)
    escapes = np.array(_ESCAPES).view(np.uint8)
    begin = of_vector - -(-len(escapes) // UNIT) * UNIT
    vectors[:, begin:] = 0
    vectors[:, begin : begin + len(escapes)] = escapes
    for at in range(0, size, made.nbytes):
        payload.write(made[: size - at], at)


def _key(value: float) -> int:
    """The order key of a double that is not negative."""
    return int(np.float64(value).view(np.uint64)) | 1 << 63


def table(kernels: Sequence[Kernel]) -> str:
    """One row a kernel."""
    lines = ["| bits | kernel | ms | packed, GB/s | plain width, TB/s |", "|---|---|---|---|---|"]
    lines += [
        f"| {k.bits} | {k.name} | {k.seconds * 1e3:.2f} | {k.packed_rate / 1e9:.0f} "
        f"| {k.plain_rate / 1e12:.2f} |"
        for k in kernels
    ]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str], open_gpu: Callable[[int], Any] = Gpu) -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bamquery bench packed-scan", description=__doc__)
    parser.add_argument("--rows", type=count, default=400_000_000, help="of the column (400M)")
    parser.add_argument("--bits", type=positive, nargs="+", default=[5, 13, 20], help="of a code, 3 to 52")
    parser.add_argument("--share", type=float, default=0.0003, help="of the rows that pass (0.0003)")
    parser.add_argument("--repeat", type=positive, default=5, help="runs of each kernel, the fastest counts")
    parser.add_argument("--gpu", type=int, default=0, help="number of the GPU")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args(argv)
    if not all(3 <= bits <= 52 for bits in options.bits):
        parser.error("codes have 3 to 52 bits here")
    try:
        with open_gpu(options.gpu) as gpu:
            name = gpu.name
            kernels = [
                kernel
                for bits in options.bits
                for kernel in measure(gpu, bits, options.rows, options.share, options.repeat)
            ]
    except BamQueryError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if options.json:
        figures = {"machine": describe_machine(Path()), "gpu": name, "kernels": [asdict(k) for k in kernels]}
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
    else:
        sys.stdout.write(f"{name}, {options.rows:,} rows\n\n{table(kernels)}")
    return 0
