"""Dictionaries of a scan's fragments on the GPU: copied once each, and joined for those of a chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pylibcudf as plc
from numpy.typing import NDArray

from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.scan.columns import libcudf_rows
from bamquery.engine.cuda.scan.columns.scan_column import ScanColumn
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.engine.operators.scan.open_fragments import open_as_set
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.readers.block_reader import ReadCounters


class Dictionaries:
    """Those of one scan; one thread uses it."""

    def __init__(self, session: CudaSession, work: ScanWork[CudaFrame]) -> None:
        self._session = session
        self._work = work
        self._uploaded: dict[str, dict[str, plc.Column]] = {}
        """By column and file; of the fragments of the last two chunks that needed them."""
        self._before: dict[str, set[str]] = {}

    def concatenate(self, column: ScanColumn, fragments: list[Fragment]) -> plc.Column | None:
        """The fragments' dictionaries of a column, end to end; None where none has a value.

        Raises:
            CorruptionError: one is not what was written; StorageError: it cannot be read.
            MemoryLimitError: there is too little memory for them.
        """
        known = self._uploaded.setdefault(column.name, {})
        names = {str(fragment.path) for fragment in fragments}
        keep = names | self._before.get(column.name, set())
        self._before[column.name] = names
        for name in known.keys() - keep:
            del known[name]
        found = []
        for fragment in fragments:
            name = str(fragment.path)
            if name not in known:
                known[name] = libcudf_rows.upload_values(
                    self._session, self._read_values(fragment, column.name)
                )
            if dictionary_size(fragment, column.name):
                found.append(known[name])
        return libcudf_rows.concatenate(self._session, found) if found else None

    def lengths(self, column: ScanColumn, fragments: list[Fragment]) -> NDArray[np.uint32]:
        """Bytes of each of the fragments' dictionary values, end to end; `joined` has read them."""
        values = [self._read_values(fragment, column.name) for fragment in fragments]
        sizes = [np.diff(np.frombuffer(v.buffers()[1], np.int64)[: len(v) + 1]) for v in values if len(v)]
        return np.concatenate(sizes).astype(np.uint32) if sizes else np.zeros(0, np.uint32)

    def _read_values(self, fragment: Fragment, column: str) -> Any:
        """The values, which the fragment keeps."""
        counters = ReadCounters()
        profile = self._work.profile
        reader = open_as_set(fragment, self._work.context.settings)
        try:
            with profile.columns[column].clock.measure_read():
                return fragment.dictionary(column, reader, counters)
        finally:
            reader.close()
            with profile.lock:
                profile.columns[column].counters += counters


def dictionary_size(fragment: Fragment, column: str) -> int:
    """How many values it has."""
    layout = fragment.layout.columns[fragment.column_index(column)].dictionary
    assert layout is not None
    return layout.size
