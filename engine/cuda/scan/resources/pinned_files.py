"""Buffers of fragments in the page cache, pinned so that a GPU's copy engine needs no processor to read them.

Pinning takes 20 to 50 ms a GB, so what is pinned stays so for later queries, up to a limit.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.driver.control_groups import usable_memory
from bamquery.driver.gpu.device import Gpu
from bamquery.driver.gpu.memory import PinnedMemory
from bamquery.engine.cuda.scan.resources.cached_pages import is_cached
from bamquery.errors import CorruptionError, GpuError, StorageError
from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.fragment import Fragment

_PIN_S: Final = 35e-12
"""What it takes to pin a byte."""
_PRICE_SHARE: Final = 1 / 8
"""Of that time: what was asked for a few times is asked for again."""
ChangeStamp: TypeAlias = "tuple[int, int, int]"
"""Device and number of a file, and when it was last changed, in nanoseconds."""


def pin_limit() -> int:
    """Bytes of page cache that a process pins at most: half of the memory that it may use."""
    return usable_memory() // 2


class PinnedExtent:
    """One buffer of one file.

    Attributes:
        host: where this process has its first byte.
        address: where the GPU has it.
        size: bytes that are pinned: whole pages.
        users: scans that read it.
        written: when the file was last changed, and which file it was: what is pinned is the pages of then.
    """

    def __init__(self, gpu: Gpu, path: str, extent: Extent) -> None:
        """Map and pin it; `extent` begins on a page."""
        size = -(-extent.length // mmap.PAGESIZE) * mmap.PAGESIZE
        # By its name, as `FileLook` has it: of an open file, an overlay may tell another device. A file that
        # comes in its place before it is opened is looked at later, and does not have this stamp.
        self.written: Final = _stamp(os.stat(path))
        file = os.open(path, os.O_RDONLY)
        try:
            if os.fstat(file).st_size < extent.end:
                raise StorageError("was truncated", path)
            mapped = mmap.mmap(file, extent.length, prot=mmap.PROT_READ, offset=extent.offset)
        finally:
            os.close(file)
        view = np.frombuffer(mapped, np.uint8)
        self.host: Final = int(view.ctypes.data)
        self.size: Final = size
        self.users = 0
        self._pinned: Final[PinnedMemory] = gpu.pin(view, self.host, size, read_only=True)
        self.address: Final = self._pinned.address

    def close(self, on_release: Callable[[], None]) -> None:
        """Unpin, once kernels that run now have ended; `on_release` is called then."""
        self._pinned.close(on_release)


@dataclass(frozen=True)
class FilePlaces:
    """Where a buffer of each of some fragments is seen, less its place in the file; 0 without the buffer.

    Attributes:
        addresses: by the GPU.
        hosts: by this process.
    """

    addresses: NDArray[np.uint64]
    hosts: NDArray[np.uint64]

    @classmethod
    def none(cls, count: int) -> FilePlaces:
        """Of so many fragments, to be `put`."""
        return cls(np.zeros(count, np.uint64), np.zeros(count, np.uint64))

    def put(self, number: int, pinned: PinnedExtent, extent: Extent) -> None:
        """One of them is there."""
        self.addresses[number] = (pinned.address - extent.offset) % (1 << 64)
        self.hosts[number] = (pinned.host - extent.offset) % (1 << 64)

    def slice(self, begin: int, end: int) -> FilePlaces:
        """Of some that follow on each other."""
        return FilePlaces(self.addresses[begin:end], self.hosts[begin:end])


@dataclass(eq=False)
class PinnedRun:
    """One buffer of each of a run of fragments, all of it pinned.

    Attributes:
        extents: those of fragments that have the buffer.
        keys: what they are known by.
        places: of all fragments.
        written: of `extents`.
        users: scans that read all of it.
        last_used: which of all uses of runs its last one was.
    """

    extents: tuple[PinnedExtent, ...]
    keys: tuple[tuple[str, int], ...]
    places: FilePlaces
    written: list[ChangeStamp]
    users: int = 0
    last_used: int = 0


class PinnedFiles:
    """Pinned buffers of one GPU's scans, the one used last longest; thread-safe.

    Attributes:
        bytes: pinned now, `leaving` among them: those that go when kernels that run now have ended.
    """

    def __init__(self, gpu: Gpu, limit: int | None = None) -> None:
        """`limit`: bytes pinned at most; None: half of the memory there is."""
        self._gpu = gpu
        self._limit = pin_limit() if limit is None else limit
        self._pinned: OrderedDict[tuple[str, int], PinnedExtent] = OrderedDict()
        self._watched: weakref.WeakSet[Fragment] = weakref.WeakSet()
        self._gone: list[str] = []
        self._credits: weakref.WeakKeyDictionary[Fragment, dict[int, float]] = weakref.WeakKeyDictionary()
        """Seconds that scans would have saved, by the buffer's offset."""
        self._runs: weakref.WeakKeyDictionary[object, dict[str, PinnedRun]] = weakref.WeakKeyDictionary()
        """Of what is pinned now."""
        self._uses = 0
        self._lock = threading.RLock()
        self.bytes = 0
        self.leaving = 0

    def take(
        self, fragment: Fragment, extent: Extent, stamp: ChangeStamp | None = None
    ) -> PinnedExtent | str:
        """The buffer, pinned until `give_back`; or why it cannot be.

        `stamp`: the file's, where the caller has just looked at it.

        Raises:
            StorageError: the file is not there as it was written.
        """
        path = str(fragment.path)
        with self._lock:
            self._forget()
            key = (path, extent.offset)
            found = self._pinned.get(key)
            changed = found is not None and found.written != (stamp or FileLook(fragment).stamp)
            if changed and not self._is_used(key):
                # Nobody writes to a fragment. If somebody has, the pinned pages may not be the file's.
                self._drop(key)
                found = None
            if found is None:
                wanted = extent.length + mmap.PAGESIZE
                if not self._make_room(wanted):
                    return f"more than {self._limit:,} bytes of files would be pinned"
                try:
                    found = PinnedExtent(self._gpu, path, extent)
                except (OSError, ValueError) as error:
                    raise StorageError(f"cannot be mapped: {error}", fragment.path) from error
                except GpuError as error:
                    return str(error)
                self._pinned[key] = found
                self.bytes += found.size
                if fragment not in self._watched:
                    self._watched.add(fragment)
                    weakref.finalize(fragment, self._gone.append, path)
            self._pinned.move_to_end(key)
            found.users += 1
            return found

    def has(self, fragment: Fragment, extent: Extent) -> bool:
        """Whether the buffer is pinned."""
        return (str(fragment.path), extent.offset) in self._pinned

    def take_run(
        self,
        owner: object,
        name: str,
        stored: Sequence[tuple[Fragment, Extent | None]],
        stamps: list[ChangeStamp],
    ) -> PinnedRun | None:
        """A buffer of many fragments until `give_back_run`, if all of it is pinned already; else None.

        Args:
            owner: of the run of fragments, which stay the same as long as it is there.
            name: of the buffer.
            stored: its extent in each fragment; None without it.
            stamps: of the fragments' files, as they are now.
        """
        with self._lock:
            self._forget()
            runs = self._runs.setdefault(owner, {})
            run = runs.get(name)
            if run is None:
                run = self._run_of(stored)
                if run is None:
                    return None
                runs[name] = run
            written = stamps
            if len(run.extents) < len(stamps):
                written = [s for s, (_, extent) in zip(stamps, stored, strict=True) if extent is not None]
            if (
                run.written != written
                and not run.users
                and any(
                    e.written != stamp and not e.users for e, stamp in zip(run.extents, written, strict=True)
                )
            ):
                return None
            self._uses += 1
            run.users, run.last_used = run.users + 1, self._uses
            return run

    def give_back_run(self, run: PinnedRun) -> None:
        """One scan less reads it; the GPU has done with it."""
        with self._lock:
            run.users -= 1

    def take_if_worth(
        self, fragment: Fragment, extent: Extent, saved_s: float, stamp: ChangeStamp | None = None
    ) -> PinnedExtent | str:
        """As `take`, but pins only what is worth it: rent until rent has come to a share of the price.

        Pages that are not in memory are not read for this.

        Args:
            fragment: whose buffer it is.
            extent: of the buffer.
            saved_s: seconds that the caller would save if it were pinned; they add up from scan to scan.
            stamp: as `take` has it.
        """
        path = str(fragment.path)
        with self._lock:
            self._forget()
            if (path, extent.offset) not in self._pinned:
                credits_ = self._credits.setdefault(fragment, {})
                credit = credits_.get(extent.offset, 0.0) + saved_s
                credits_[extent.offset] = credit
                if credit < _PRICE_SHARE * _PIN_S * extent.length:
                    return "it is not worth pinning yet"
                if not is_cached(path, extent):
                    credits_[extent.offset] = 0.0
                    return "not all of it is in the page cache"
            return self.take(fragment, extent, stamp)

    def give_back(self, extent: PinnedExtent) -> None:
        """One scan less reads it; the GPU has done with it."""
        with self._lock:
            extent.users -= 1

    def close(self) -> None:
        """Unpin all."""
        with self._lock:
            for key in list(self._pinned):
                self._drop(key)

    def forget(self, folder: Path) -> None:
        """Unpin the files below a folder that no scan reads."""
        with self._lock:
            for key in self._idle():
                if folder in Path(key[0]).parents:
                    self._drop(key)

    def _forget(self) -> None:
        """Unpin what belongs to fragments that nobody has open: vacuum may have removed their files."""
        while self._gone:
            path = self._gone.pop()
            for key in [key for key in self._idle() if key[0] == path]:
                self._drop(key)

    def _make_room(self, size: int) -> bool:
        if self.bytes - self.leaving + size > self._limit:
            idle = deque(self._idle())
            while self.bytes - self.leaving + size > self._limit and idle:
                self._drop(idle.popleft())
        return self.bytes + size <= self._limit

    def _idle(self) -> list[tuple[str, int]]:
        """What no scan reads, that used last at the end."""
        runs = [run for runs in self._runs.values() for run in runs.values()]
        for run in sorted(runs, key=lambda run: run.last_used):  # which take_run did not do with each extent
            for key in run.keys:
                self._pinned.move_to_end(key)
        used = self._run_keys()
        return [key for key, extent in self._pinned.items() if not extent.users and key not in used]

    def _run_keys(self) -> set[tuple[str, int]]:
        """What scans read as parts of runs."""
        return {key for runs in self._runs.values() for run in runs.values() if run.users for key in run.keys}

    def _is_used(self, key: tuple[str, int]) -> bool:
        return self._pinned[key].users > 0 or key in self._run_keys()

    def _run_of(self, stored: Sequence[tuple[Fragment, Extent | None]]) -> PinnedRun | None:
        places = FilePlaces.none(len(stored))
        extents, keys = [], []
        for number, (fragment, extent) in enumerate(stored):
            if extent is None:
                continue
            key = (str(fragment.path), extent.offset)
            found = self._pinned.get(key)
            if found is None:
                return None
            places.put(number, found, extent)
            extents.append(found)
            keys.append(key)
        return PinnedRun(tuple(extents), tuple(keys), places, [extent.written for extent in extents])

    def _drop(self, key: tuple[str, int]) -> None:
        for runs in self._runs.values():
            for name in [name for name, run in runs.items() if key in run.keys]:
                del runs[name]
        extent = self._pinned.pop(key)
        self.leaving += extent.size

        def note_released() -> None:
            with self._lock:
                self.leaving -= extent.size
                self.bytes -= extent.size

        extent.close(note_released)


class FileLook:
    """What a fragment's file is at a moment.

    Attributes:
        stamp: which file it is, and when it was last changed.
        at: when that was, on `time.monotonic`.
    """

    def __init__(self, fragment: Fragment) -> None:
        """Look at it.

        Raises:
            CorruptionError: it is missing; StorageError: it cannot be examined.
        """
        self._fragment = fragment
        try:
            found = os.stat(fragment.path)
        except FileNotFoundError as error:
            raise CorruptionError("the file is missing", fragment.path) from error
        except OSError as error:
            raise StorageError(f"cannot be examined: {error.strerror or error}", fragment.path) from error
        self.at: Final = time.monotonic()
        self.stamp: Final = _stamp(found)
        self._size = found.st_size

    def require_whole(self) -> None:
        """See that the file has its length: pinned pages outlive what is cut off.

        Raises:
            CorruptionError: it has not.
        """
        if self._size != self._fragment.data_bytes:
            raise CorruptionError(
                f"{self._size} bytes instead of {self._fragment.data_bytes}", self._fragment.path
            )


def _stamp(found: os.stat_result) -> ChangeStamp:
    return found.st_dev, found.st_ino, found.st_mtime_ns
