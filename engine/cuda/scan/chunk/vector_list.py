"""The vectors that a scan has to read: what zone maps leave of a run of fragments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import rmm
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, fuse_ranges, value_c_type
from bamquery.engine.cuda.scan.kernel_tables.requests import VECTOR
from bamquery.engine.cuda.scan.kernel_tables.zones import has_zones
from bamquery.engine.cuda.scan.resources.counter_board import CounterBoard, Uploads
from bamquery.engine.cuda.scan.resources.resident_vectors import ResidentVectors
from bamquery.engine.cuda.scan.scan_state import ScanState
from bamquery.storage.encodings.fsst.parameters import FSST_VECTOR
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR
from bamquery.storage.statistics.parts import PARTS
from bamquery.storage.statistics.predicate import RangePredicate

_WORTH: Final = 0.75
"""Only if no more than such a share of all parts is left, they are read one by one: the copy engine brings
long runs of whole vectors faster than a kernel that picks parts."""
_FEW_VECTORS: Final = 256
"""Of a run that the host looks through: to start kernels and wait for them takes longer."""


class VectorList:
    """Vectors in ascending order; kernels see each with its fragment, its rows, checksums and null states.

    Attributes:
        resident: the run that they are of.
        count: how many.
        numbers: of each in the run; None: it has no others.
        vectors: a ScanVector for each, on the GPU.
        vector_rows: rows of each, half words on the GPU.
        parts: which of each one's parts rows may be in that pass, a byte of bits each on the GPU; None: no
            part is worth leaving out.
    """

    def __init__(
        self,
        state: ScanState,
        resident: ResidentVectors,
        numbers: NDArray[np.uint32] | None = None,
        listed: tuple[rmm.DeviceBuffer, rmm.DeviceBuffer, rmm.DeviceBuffer] | None = None,
        parts: rmm.DeviceBuffer | None = None,
    ) -> None:
        """`listed`: vectors, their rows and `numbers` on the GPU; with `parts`, there must be these, too."""
        self.resident: Final = resident
        self.numbers: Final = numbers
        self._state = state
        self._listed = listed
        self._parts = parts
        self._gathered: dict[tuple[str, str], rmm.DeviceBuffer] = {}
        self.count: Final = resident.count if numbers is None else len(numbers)
        self.vectors: Final = resident.vectors() if listed is None else int(listed[0].ptr)
        self.vector_rows: Final = resident.vector_rows() if listed is None else int(listed[1].ptr)
        self.parts: Final = None if parts is None else int(parts.ptr)

    def close(self) -> None:
        """The GPU has done with it."""
        self._listed = self._parts = None
        self._gathered.clear()

    @property
    def numbers_address(self) -> int:
        """`numbers` of a list that has them, words on the GPU."""
        assert self._listed is not None
        return int(self._listed[2].ptr)

    def checksums(self, column: str, buffer: str) -> int:
        """Of each vector, words on the GPU."""
        return self._pick_listed(column, buffer, 32, lambda: self.resident.checksums(column, buffer))

    def parameters(self, column: str) -> int:
        """A PackedVector for each vector of a packed column, a StringVector of strings, on the GPU."""
        vector = FSST_VECTOR if self.resident.is_compressed(column) else PACKED_VECTOR
        bits = 8 * vector.itemsize
        return self._pick_listed(column, "parameters", bits, lambda: self.resident.parameters(column))

    def payload_bytes(self, column: str, first: int, count: int) -> int:
        """Of the payloads of some vectors of a packed column, in all."""
        sums = self.resident.payload_sums(column)
        if self.numbers is None:
            return int(sums[first + count] - sums[first])
        numbers = self.numbers[first : first + count]
        return int(self.resident.payload_sizes(column).take(numbers).sum(dtype=np.int64))

    def states(self, column: str, first: int, count: int) -> tuple[NDArray[np.uint8], int] | None:
        """Null states of some, here and on the GPU; None where no row of them is null."""
        states = self.resident.states(column)
        if states is None:
            return None
        if self.numbers is None:
            here = states[first : first + count]
        else:
            here = states[self.numbers[first : first + count]]
        if not here.any():
            return None
        return here, first + self._pick_listed(
            column, "states", 8, lambda: self.resident.states_address(column)
        )

    def _pick_listed(self, column: str, buffer: str, bits: int, resident: Callable[[], int]) -> int:
        if self._listed is None:
            return resident()
        found = self._gathered.get((column, buffer))
        if found is None:
            state, numbers = self._state, self._listed[2]
            found = state.session.allocate(max(bits // 8 * self.count, 16), "describing a scan")
            launcher = state.launcher
            launcher.start(
                launcher.kernel("scan_gather", f"scan_gather_{bits}"),
                *(resident(), numbers.ptr, None, self.count, found.ptr),
                grid=launcher.grid(self.count),
                stream=state.stream,
            )
            for other in (state.copy_stream, state.look_stream):
                state.session.follow(other, state.stream)
            self._gathered[column, buffer] = found
        return int(found.ptr)


def listed_vectors(
    state: ScanState, resident: ResidentVectors, ranges: Sequence[RangePredicate]
) -> VectorList:
    """The vectors in which rows may be for which all `ranges` are true. The host waits for their number.

    Raises:
        MemoryLimitError: there is too little memory.
    """
    on_gpu, on_host = _divide_ranges(ranges, resident.fragments[0].schema)
    count = resident.count
    is_small = count <= _FEW_VECTORS
    possible = possible_vectors(resident, ranges if is_small else on_host)
    if possible.all() and (is_small or not on_gpu):  # nothing for the GPU to find, nobody waits
        return VectorList(state, resident)
    session, launcher, stream = state.session, state.launcher, state.stream
    wanted = session.allocate(4 * count, "pruning by zone maps")
    masks = None
    if any(resident.has_parts(column) for column, _, _ in on_gpu):
        masks = session.allocate(count, "pruning by zone maps")
        session.gpu.cuda("mark all parts", "cuMemsetD8Async", masks.ptr, 0xFF, count, stream)
    uploads = Uploads(session, state.resources.blocks, launcher)
    if on_host:
        uploads.fill(wanted, possible.astype(np.uint32), stream)
    grid = launcher.grid(count)
    for number, (column, predicate, nan) in enumerate(on_gpu):
        in_parts = resident.has_parts(column)
        packed = in_parts and resident.is_packed(column)
        launcher.start(
            launcher.kernel("scan_prune", "scan_prune"),
            *(resident.zones(column), resident.part_zones(column) if in_parts and not packed else None),
            *(count, nan, predicate.pack(), not number and not on_host, wanted.ptr),
            None if masks is None else masks.ptr,
            grid=grid,
            stream=stream,
        )
        if packed:
            assert masks is not None
            launcher.start(
                launcher.kernel(
                    "packed/prune", "scan_packed_prune", f"BAMQUERY_SCAN_TYPE={predicate.c_type}"
                ),
                *(resident.packed_vectors(column), resident.packed_bounds(column), count, predicate.pack()),
                *(wanted.ptr, masks.ptr),
                grid=grid,
                stream=stream,
            )
    board = CounterBoard(session, state.resources.blocks)
    total, parts = board.take(4), board.take(4)
    before = session.allocate(4 * (count + 1), "pruning by zone maps")
    launcher.prefix_sums(wanted.ptr, count, before.ptr, total.address, stream)
    vectors, rows, numbered = (
        session.allocate(size * count, "pruning by zone maps") for size in (VECTOR.itemsize, 2, 4)
    )
    left = None if masks is None else session.allocate(count, "pruning by zone maps")
    launcher.start(
        launcher.kernel("scan_prune", "scan_list_vectors"),
        *(wanted.ptr, before.ptr, count, resident.vectors(), resident.vector_rows()),
        *(None if masks is None else masks.ptr, vectors.ptr, rows.ptr, numbered.ptr),
        *(None if left is None else left.ptr, parts.address),
        grid=grid,
        stream=stream,
    )
    board.copy_back()
    block = state.resources.blocks.take(4 * count)
    cuda = session.gpu.cuda
    cuda("copy from the GPU", "cuMemcpyDtoHAsync", block.host, numbered.ptr, 4 * count, stream)
    try:
        state.wait_for(stream)
    except BaseException:  # cancelled: the GPU still writes to these
        session.gpu.abandon((board, block, uploads, wanted, before, vectors, rows, numbered, masks, left))
        raise
    numbers = block.view(0, np.uint32, board.word(total)).copy()
    state.resources.blocks.give_back(block)
    if board.word(parts) > _WORTH * PARTS * len(numbers):
        left = None
    board.close()
    uploads.close()
    if len(numbers) == count and left is None:
        return VectorList(state, resident)
    return VectorList(state, resident, numbers, (vectors, rows, numbered), left)


def _divide_ranges(
    ranges: Sequence[RangePredicate], schema: pa.Schema
) -> tuple[list[tuple[str, FusedPredicate, int]], list[RangePredicate]]:
    """For each column one predicate with NaN's key; and what only the host can prune by."""
    columns: dict[str, list[RangePredicate]] = {}
    for found in ranges:
        columns.setdefault(found.column, []).append(found)
    on_gpu: list[tuple[str, FusedPredicate, int]] = []
    on_host: list[RangePredicate] = []
    for column, conditions in columns.items():
        kind = schema.field(column).type
        c_type = value_c_type(kind) if has_zones(kind) else None
        fused = "" if c_type is None else fuse_ranges(conditions, kind, c_type)
        if isinstance(fused, FusedPredicate):
            on_gpu.append((column, fused, (1 << (64 if kind.bit_width > 32 else 32)) - 1))
        else:
            on_host.extend(conditions)
    return on_gpu, on_host


def possible_vectors(resident: ResidentVectors, ranges: Sequence[RangePredicate]) -> NDArray[np.bool_]:
    """Of each vector of a run, whether a row may be in it for which all `ranges` are true."""
    found = np.ones(resident.count, np.bool_)
    for one in ranges:
        found &= resident.column_zones(one.column).possible(one)
    return found


def possible_share(resident: ResidentVectors, ranges: Sequence[RangePredicate]) -> float:
    """Share of a run's vectors in which a row may be for which all `ranges` are true, about."""
    found: NDArray[np.bool_] | bool = True
    for one in ranges:
        found = found & resident.sampled_zones(one.column).possible(one)
    return float(np.mean(found))
