"""Dictionaries of a scan's fragments on the GPU.

Small ones of all fragments are joined, and stay there for later statements, so that all frames of a table
refer to the same values. Others are copied once a scan each, and joined for those of a chunk.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pylibcudf as plc
from numpy.typing import NDArray

from bamquery.engine.cuda.cache.column_cache import ColumnKey, column_key
from bamquery.engine.cuda.cache.late_columns import Dictionary
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.scan.columns import libcudf_rows
from bamquery.engine.cuda.scan.columns.scan_column import ScanColumn
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.engine.operators.scan.open_fragments import open_as_set
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.readers.block_reader import ReadCounters

_MOST_VALUES: Final = 1 << 16
"""Of all fragments' dictionaries that stay joined."""
_MOST_BYTES: Final = 4 << 20
_KEPT_BYTES: Final = 64 << 20
"""Of joined dictionaries that nobody uses now."""
_KEPT_PART: Final = 32
"""Part of `gpu_memory_limit` that these take at most."""


@dataclass(frozen=True)
class JoinedDictionary:
    """Dictionaries of a column's fragments, end to end.

    Attributes:
        dictionary: their values.
        firsts: by file, where its values begin.
    """

    dictionary: Dictionary
    firsts: Mapping[str, int]

    @property
    def nbytes(self) -> int:
        """Memory of the values on the GPU, about."""
        return int(self.dictionary.host.nbytes)

    @cached_property
    def lengths(self) -> NDArray[np.uint32]:
        """Bytes of each value, of strings."""
        return _lengths([self.dictionary.host])


class KeptDictionaries:
    """Joined dictionaries of a GPU, those that were used last; thread-safe."""

    def __init__(self, limit: int | None) -> None:
        """`limit`: `gpu_memory_limit`."""
        self._lock = threading.Lock()
        self._held: OrderedDict[ColumnKey, JoinedDictionary] = OrderedDict()
        self._most = _KEPT_BYTES if limit is None else min(limit // _KEPT_PART, _KEPT_BYTES)
        self._bytes = 0

    def find(self, key: ColumnKey) -> JoinedDictionary | None:
        """Those of some files at some places."""
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def keep(self, key: ColumnKey, joined: JoinedDictionary) -> JoinedDictionary:
        """Hold them, or take those that somebody else held meanwhile."""
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                return found
            self._held[key] = joined
            self._bytes += joined.nbytes
            while self._bytes > self._most:
                _, last = self._held.popitem(last=False)
                self._bytes -= last.nbytes
            return joined


class Dictionaries:
    """Those of one scan; one thread uses it."""

    def __init__(self, session: CudaSession, work: ScanWork[CudaFrame], kept: KeptDictionaries) -> None:
        self._session = session
        self._work = work
        self._kept = kept
        self._joined: dict[str, JoinedDictionary | None] = {}
        self._uploaded: dict[str, dict[str, plc.Column]] = {}
        """By column and file; of the fragments of the last two chunks that needed them."""
        self._before: dict[str, set[str]] = {}

    def join_all(self, column: ScanColumn) -> JoinedDictionary | None:
        """The dictionaries of all of the scan's fragments; None where they are large, or have no value.

        Raises:
            as `concatenate`.
        """
        if column.name not in self._joined:
            self._joined[column.name] = self._join(column)
        return self._joined[column.name]

    def _join(self, column: ScanColumn) -> JoinedDictionary | None:
        places = [(f, f.layout.columns[f.column_index(column.name)]) for f in self._work.fragments]
        having = [(f, layout.dictionary) for f, layout in places if layout.dictionary is not None]
        size = sum(one.size for _, one in having)
        nbytes = sum(one.values.length for _, one in having)
        if not 0 < size <= _MOST_VALUES or nbytes > _MOST_BYTES:
            return None
        key = column_key([fragment for fragment, _ in having], column.name)
        found = self._kept.find(key)
        if found is not None:
            return found
        read = [self._read_values(fragment, column.name) for fragment, _ in having]
        if any(values.null_count for values in read):
            return None
        every = pa.concat_arrays(read)
        values = libcudf_rows.upload_values(self._session, every)
        self._session.synchronize()  # before the array is let go of
        ends = np.cumsum([len(one) for one in read]).tolist()
        firsts = {str(f.path): end - len(one) for (f, _), end, one in zip(having, ends, read, strict=True)}
        return self._kept.keep(key, JoinedDictionary(Dictionary(values, every), firsts))

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
        """Bytes of each of the fragments' dictionary values, end to end; `concatenate` has read them."""
        return _lengths([self._read_values(fragment, column.name) for fragment in fragments])

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


def _lengths(arrays: Sequence[Any]) -> NDArray[np.uint32]:
    """Bytes of each string of arrays that begin with their buffers."""
    sizes = [np.diff(np.frombuffer(one.buffers()[1], np.int64)[: len(one) + 1]) for one in arrays if len(one)]
    return np.concatenate(sizes).astype(np.uint32) if sizes else np.zeros(0, np.uint32)
