"""Runs of fragments whose vectors are known to a GPU, the ones used last."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.scan.resources.fragment_runs import runs
from bamquery.engine.cuda.scan.resources.host_blocks import HostBlocks
from bamquery.engine.cuda.scan.resources.resident_vectors import ResidentVectors
from bamquery.engine.cuda.session import CudaSession
from bamquery.storage.fragments.fragment import Fragment

_KEPT: Final = 256
"""Runs that are kept, the ones used last: short ones follow on each other where encodings change."""
_KEPT_BYTES: Final = 512 << 20
"""What those take of the GPU's memory together, but for the one used last."""
_KEPT_PART: Final = 32
"""Part of a memory limit that they take at most."""


class ResidentRuns:
    """Those of one GPU; thread-safe."""

    def __init__(self, blocks: HostBlocks, launcher: Launcher) -> None:
        self._blocks = blocks
        self._launcher = launcher
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int | None, str, int], ResidentVectors] = OrderedDict()
        self._made: weakref.WeakSet[ResidentVectors] = weakref.WeakSet()

    def divide(
        self, session: CudaSession, fragments: Sequence[Fragment], columns: Sequence[str]
    ) -> Iterator[ResidentVectors]:
        """A table's fragments as `runs` has them, in memory of `session`.

        Raises:
            MemoryLimitError: there is too little.
        """
        whole = self._find(session, fragments)
        if whole is not None and whole.is_run(columns):
            yield whole
            return
        for run in runs(fragments, columns):
            yield self.get(session, run)

    def get(self, session: CudaSession, fragments: tuple[Fragment, ...]) -> ResidentVectors:
        """The run of those fragments, in memory of `session`.

        Raises:
            MemoryLimitError: there is too little.
        """
        found = self._find(session, fragments)
        if found is not None:
            return found
        made = ResidentVectors(session, self._blocks, self._launcher, fragments)
        key = self._key(session, fragments)
        with self._lock:
            self._made.add(made)
            self._known[key] = made
            self._known.move_to_end(key)
            most = _KEPT_BYTES if session.limit is None else min(session.limit // _KEPT_PART, _KEPT_BYTES)
            held = sum(one.nbytes for one in self._known.values())
            while len(self._known) > 1 and (len(self._known) > _KEPT or held > most):
                _, last = self._known.popitem(last=False)
                held -= last.nbytes
        return made

    def _find(self, session: CudaSession, fragments: Sequence[Fragment]) -> ResidentVectors | None:
        key = self._key(session, fragments)
        with self._lock:
            found = self._known.get(key)
            if found is None or not found.has_fragments(fragments):
                return None
            self._known.move_to_end(key)
            return found

    @staticmethod
    def _key(session: CudaSession, fragments: Sequence[Fragment]) -> tuple[int | None, str, int]:
        return session.limit, str(fragments[0].path), len(fragments)

    def close(self) -> None:
        """Give their memory back: it must not outlive its pool."""
        with self._lock:
            self._known.clear()
            for resident in list(self._made):
                resident.close()
