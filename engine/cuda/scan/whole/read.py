"""All rows of a scan's columns, where to choose some of them would take longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from bamquery.engine.cuda.cache.late_columns import Held
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.scan.resources.scan_resources import resources_of
from bamquery.engine.cuda.scan.scan_state import counted_block_bytes
from bamquery.engine.cuda.scan.whole.by_processor import read_by_processor
from bamquery.engine.cuda.scan.whole.load import WholeLoad
from bamquery.engine.cuda.scan.whole.plan import plan_whole
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.device import Device
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.errors import MemoryLimitError
from bamquery.storage.fragments.plain_size import stored_bytes

_FEW_ROWS: Final = 1 << 17
"""Of tables whose columns the processor reads, where the GPU does not read them whole."""
_FEW_BYTES: Final = 1 << 20
"""Of these columns in files: the GPU chooses rows of more in less time than the processor decodes all."""
WHOLE: Final = "columns were read whole: to choose rows of them takes longer"
BY_PROCESSOR: Final = "so few rows were read by the processor"


def read_columns(
    session: CudaSession,
    device: Device[CudaFrame],
    work: ScanWork[CudaFrame],
    names: Sequence[str],
    as_held: Callable[[Held, pa.Array[Any]], Held] = lambda column, _: column,
) -> Mapping[str, Held] | None:
    """The columns by name, where whoever takes the scan's rows takes all; None: choose rows of them.

    `as_held` is asked of those whose values are in the host's memory, too.

    Raises:
        as `scan_on_gpu`.
    """
    if not work.is_taken_whole:
        return None
    session.enter()
    resources = resources_of(session)
    resources.close_parked()
    with suppress(MemoryLimitError):  # chunks need less
        plan = plan_whole(session, resources, work, names)
        if plan is not None:
            with WholeLoad(session, resources, work, plan) as load:
                found = load.read()
            if found is not None:
                _note(work, WHOLE)
                return found
    if sum(fragment.rows for fragment in work.fragments) > _FEW_ROWS or _size(work, names) > _FEW_BYTES:
        return None
    if any(pa.types.is_dictionary(work.plan.schema.field(name).type) for name in names):
        return None
    _note(work, BY_PROCESSOR)
    return read_by_processor(device, work, names, as_held)


def _size(work: ScanWork[CudaFrame], names: Sequence[str]) -> int:
    """Bytes of columns in files."""
    return sum(stored_bytes(one, one.column_index(name)) for one in work.fragments for name in names)


def _note(work: ScanWork[CudaFrame], text: str) -> None:
    profile = work.profile
    with profile.lock:
        profile.reader = profile.reader or "mapped"
        profile.io_path = profile.io_path or "page cache"
        profile.block_size = profile.block_size or counted_block_bytes(work.context.settings)
        if text not in profile.notes:
            profile.notes.append(text)
