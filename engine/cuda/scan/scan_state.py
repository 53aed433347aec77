"""What all chunks of one scan share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bamquery.closeable import Closeable
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.launcher import Launcher
from bamquery.engine.cuda.scan.columns.dictionaries import Dictionaries
from bamquery.engine.cuda.scan.columns.scan_column import scan_column
from bamquery.engine.cuda.scan.kernel_tables.predicates import FusedPredicate, fuse
from bamquery.engine.cuda.scan.path_rates import GpuProfile, direct_model
from bamquery.engine.cuda.scan.resources.pinned_files import (
    ChangeStamp,
    FileLook,
    PinnedExtent,
    PinnedRun,
)
from bamquery.engine.cuda.scan.resources.read_ahead import ReadAhead
from bamquery.engine.cuda.scan.resources.resident_vectors import ResidentVectors
from bamquery.engine.cuda.scan.resources.rings import Rings, block_rings, controller_threads, stream_rings
from bamquery.engine.cuda.scan.resources.scan_resources import ScanResources
from bamquery.engine.cuda.scan.scan_clock import ScanClock
from bamquery.engine.cuda.session import CudaSession
from bamquery.engine.device import Device
from bamquery.engine.operators.scan.column_reads import forced_strategy
from bamquery.engine.operators.scan.device_scan import ScanWork
from bamquery.engine.operators.scan.filter_order import FilterStep
from bamquery.engine.profiling.queue_profile import QueueProfile
from bamquery.engine.settings import Settings, available_cores
from bamquery.plan.expressions import Expression
from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.read_planner.corrections import Corrections
from bamquery.storage.read_planner.cost_model import CostModel, Path
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.profile_cache import cache_file

_MOST_BLOCK_BYTES: Final = 4096
"""Larger ones may reach behind the last buffer of a file."""
_FRESH_S: Final = 0.1
"""So old a look at a file may be: a scan looks at its files once, unless it takes longer."""
DEADLINE_NS: Final = 20_000_000_000
"""After which a command is lost."""
Selects: TypeAlias = Callable[[Expression, Callable[[int], bool]], bool]
"""Whether the device computes a condition in one step, if those of its columns have dictionaries, by their
places in it, of which that is said."""


class ScanState(ScanClock, Closeable):
    """One scan on one GPU; one thread runs it. A context manager.

    Attributes:
        stream: of operators, and of all that is read for rows which have passed.
        copy_stream: brings columns that are looked at first.
        look_stream: compares them with checksums and the first filter, while the next ones come.
        stop_stream: tells kernels that nobody wants their rows.
    """

    def __init__(
        self,
        session: CudaSession,
        resources: ScanResources,
        device: Device[CudaFrame],
        work: ScanWork[CudaFrame],
        selects: Selects,
    ) -> None:
        """Open what the scan reads through; see `scan_resources`."""
        super().__init__(session, work.check)
        self.resources: Final = resources
        self.device: Final = device
        self.work: Final = work
        self.selects: Final = selects
        self.launcher: Final[Launcher] = resources.launcher
        self.stream: Final[Any] = session.driver_stream
        settings = work.context.settings
        self.forced: Final = forced_strategy(settings)
        self.direct: Final = settings.reader == "direct"
        self.queues: Final = settings.reader in ("direct", "queues")
        self.verifies: Final = settings.verifies
        self.block_bytes, lba_bytes = self._block_sizes()
        threads = settings.io_cores or controller_threads(available_cores())
        self.io_cores: Final = threads
        self._block_shape = block_rings(self.block_bytes, lba_bytes, self.direct, threads)
        self._stream_shape = stream_rings(lba_bytes, self.direct, threads)
        self._rings: dict[str, Rings] = {}
        self._namespaces: dict[tuple[int, int], NDArray[np.uint32]] = {}
        self._before: dict[str, tuple[float, ...]] = {}
        self.rates = self._gpu_profile()
        self.model: CostModel = self._cost_model()
        self.corrections = Corrections(self.model)
        self.columns: Final = {
            position: scan_column(name, work.plan.schema.field(name).type)
            for name in work.columns
            for position in [work.plan.schema.get_field_index(name)]
        }
        self.fused: Final[dict[int, FusedPredicate | str]] = {
            step.number: self._fuse(step) for step in work.plan.steps
        }
        self.dictionaries: Final = Dictionaries(session, work, resources.dictionaries)
        self.copy_stream: Final = resources.take_stream(urgent=True)
        self.look_stream: Final = resources.take_stream()
        self.stop_stream: Final = resources.take_stream(urgent=True)
        self._extents: dict[tuple[str, int], PinnedExtent | str] = {}
        self._looks: dict[Fragment, FileLook] = {}
        self._run_stamps: dict[ResidentVectors, list[ChangeStamp]] = {}
        self._runs: dict[tuple[ResidentVectors, str, str], PinnedRun | None] = {}
        self.read_ahead: Final = ReadAhead()
        self.streamed_cold: Final[set[str]] = set()
        """Columns that were streamed, for rows that had passed, and not in the page cache."""
        self.on_streamed_cold: Callable[[str], None] = lambda column: None
        """Is told of each of them before it is streamed for the first time."""
        self._started = time.perf_counter()
        self._note()

    def close(self) -> None:
        """Give back what is shared, and note what the controllers took. Nothing of the scan may run."""
        self.read_ahead.close()
        seconds = time.perf_counter() - self._started
        for name, rings in self._rings.items():
            after = rings.controller.statistics().thread_seconds
            used = sum(after) - sum(self._before[name])
            with self.work.profile.lock:
                figures = self.queue_profile
                figures.controller_seconds += used
                figures.wall_seconds = seconds
            self.resources.give_back_rings(rings, self)
        for extent in self._extents.values():
            if isinstance(extent, PinnedExtent):
                self.resources.maps.give_back(extent)
        self._extents.clear()
        for run in self._runs.values():
            if run is not None:
                self.resources.maps.give_back_run(run)
        self._runs.clear()
        self._rings.clear()
        self.resources.give_back_stream(self.copy_stream, urgent=True)
        self.resources.give_back_stream(self.look_stream)
        self.resources.give_back_stream(self.stop_stream, urgent=True)

    def events(self) -> list[Any]:
        """One behind what each of the scan's streams was given; `forget` them."""
        streams = (self.copy_stream, self.look_stream, self.stream, self.stop_stream)
        return [self.event(stream) for stream in streams]

    @property
    def queue_profile(self) -> QueueProfile:
        """The profile's figures on queue pairs; made at first use, under the profile's lock."""
        profile = self.work.profile
        if profile.queues is None:
            profile.queues = QueueProfile(pairs=self._block_shape.pairs, depth=self._block_shape.depth)
        return profile.queues

    @property
    def fetch_rings(self) -> Rings:
        """For scattered blocks."""
        return self._open_rings("blocks")

    @property
    def load_rings(self) -> Rings:
        """For whole vectors."""
        return self._open_rings("vectors")

    def note_streamed_cold(self, column: str) -> None:
        """A column is about to be streamed that is not in the page cache."""
        if column not in self.streamed_cold:
            self.streamed_cold.add(column)
            self.on_streamed_cold(column)

    def pin(self, fragment: Fragment, extent: Extent) -> PinnedExtent | str:
        """A buffer that the GPU reaches where the page cache has it, or why it does not."""
        if self.direct:
            return "direct reads go past the page cache"
        key = (str(fragment.path), extent.offset)
        found = self._extents.get(key)
        if found is None:
            found = self._extents[key] = self.resources.maps.take(fragment, extent, self._stamp(fragment))
            if isinstance(found, str):
                self.note(f"streams go through queue pairs: {found}")
        return found

    def pinned_run(self, resident: ResidentVectors, column: str, buffer: str) -> PinnedRun | None:
        """A buffer of all fragments of a run, if all of it was pinned when the scan first asked."""
        key = (resident, column, buffer)
        if key not in self._runs:
            found = None
            if not self.direct:
                stored = resident.stored(column, buffer)
                stamps = self._run_stamps.get(resident)
                if stamps is None:
                    stamps = [self._stamp(fragment) for fragment in resident.fragments]
                    self._run_stamps[resident] = stamps
                found = self.resources.maps.take_run(resident, f"{column} {buffer}", stored, stamps)
            self._runs[key] = found
        return self._runs[key]

    def pin_if_worth(self, fragment: Fragment, extent: Extent, saved_s: float) -> PinnedExtent | str:
        """As `pin`, where it saves enough; that it does not is no news."""
        key = (str(fragment.path), extent.offset)
        found = self._extents.get(key)
        if found is None:
            found = self.resources.maps.take_if_worth(fragment, extent, saved_s, self._stamp(fragment))
            if not isinstance(found, str):
                self._extents[key] = found
        return found

    def is_pinned(self, fragment: Fragment, extent: Extent) -> bool:
        """Whether a buffer is pinned, by whomever."""
        found = self._extents.get((str(fragment.path), extent.offset))
        return isinstance(found, PinnedExtent) or self.resources.maps.has(fragment, extent)

    def _stamp(self, fragment: Fragment) -> ChangeStamp:
        found = self._looks.get(fragment)
        if found is None:
            found = self._looks[fragment] = FileLook(fragment)
        return found.stamp

    def namespaces(
        self, resident: ResidentVectors, rings: Rings, fragments: Sequence[int]
    ) -> NDArray[np.uint32]:
        """The namespace of each fragment of a run, as far as they have been asked for with `fragments`."""
        key = (id(resident), id(rings))
        known = self._namespaces.get(key)
        if known is None:
            known = self._namespaces[key] = np.zeros(len(resident.fragments), np.uint32)
        for number in fragments:
            if not known[number]:
                known[number] = rings.namespace(resident.fragments[number], self)
        return known

    def require_whole(self, fragments: list[Fragment]) -> None:
        """See that files have their lengths. StorageError: one has not."""
        now = time.monotonic()
        for fragment in fragments:
            found = self._looks.get(fragment)
            if found is None or now - found.at > _FRESH_S:
                found = self._looks[fragment] = FileLook(fragment)
            found.require_whole()

    def note(self, text: str) -> None:
        """Say once in the profile what did not run as one might expect."""
        profile = self.work.profile
        with profile.lock:
            if text not in profile.notes:
                profile.notes.append(text)

    def _open_rings(self, name: str) -> Rings:
        found = self._rings.get(name)
        if found is None:
            shape = self._block_shape if name == "blocks" else self._stream_shape
            with self.session.lock:
                found = self.resources.lend_rings(shape, self)
            self._rings[name] = found
            self._before[name] = found.controller.statistics().thread_seconds
        return found

    def _block_sizes(self) -> tuple[int, int]:
        """Of blocks as they are counted and fetched, and of LBAs."""
        if self.direct:
            size = self.work.readers.get(self.work.fragments[0]).blocks.block_size
            return size, size
        return counted_block_bytes(self.work.context.settings), 512

    @property
    def _profile_key(self) -> str:
        return f"{self.session.gpu.name}-{self.block_bytes}-{self.io_cores}"

    def _gpu_profile(self) -> GpuProfile:
        known, key = self.resources.profiles, self._profile_key
        found = known.get((cache_file(), key)) or GpuProfile.load(key)
        if found is None:
            return GpuProfile.nominal(self.io_cores)
        known[cache_file(), key] = found
        return found

    def _cost_model(self) -> CostModel:
        if not self.direct:
            return self.rates.model(self.io_cores, self.resources.host_times.seconds())
        volume = DeviceProfile.measure(self.work.fragments[0].path, "direct")
        return direct_model(volume, self.rates.checksum, self.io_cores)

    @cached_property
    def cold_model(self) -> CostModel:
        """For what the page cache has not: the drive's doing, whoever carries it."""
        volume = DeviceProfile.measure(self.work.fragments[0].path, "direct")
        return direct_model(volume, self.rates.checksum, self.io_cores)

    @property
    def wants_rates(self) -> bool:
        """Whether nobody has measured this GPU yet."""
        return not self.direct and self.rates.source == "assumed"

    def take_rates(self, measured: GpuProfile) -> None:
        """Plan by what was measured, here and in later processes."""
        measured.keep(self._profile_key)
        self.resources.profiles[cache_file(), self._profile_key] = measured
        self.rates = measured
        self.model = self._cost_model()
        self.corrections = Corrections(self.model)
        self._note()

    def _fuse(self, step: FilterStep) -> FusedPredicate | str:
        return fuse(step, self.columns[step.columns[0]].kind)

    def _note(self) -> None:
        profile = self.work.profile
        with profile.lock:
            profile.reader = "direct" if self.direct else "mapped"
            profile.block_size = self.block_bytes
            profile.volume = {
                "bandwidth": self.model.paths[Path.SEQUENTIAL].bandwidth,
                "iops": self.model.paths[Path.BLOCKS].commands,
                "latency": self.model.paths[Path.BLOCKS].latency,
                "source": "measured" if self.direct else self.rates.source,
            }
            profile.io_path = profile.io_path or ("queue pairs" if self.direct else "page cache")
        settings = self.work.context.settings
        if not self.direct and settings.block_size > self.block_bytes:
            self.note(f"block_size {settings.block_size} is for the CPU; the GPU fetches {self.block_bytes}")


def counted_block_bytes(settings: Settings) -> int:
    """Of the blocks that reads of pinned pages, and through the page cache, are counted in."""
    return min(settings.block_size, _MOST_BLOCK_BYTES)
