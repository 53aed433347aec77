"""The files that a scan has open: each from the first chunk that needs it to the last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final, Generic

from bamquery.engine.device import Frame
from bamquery.engine.operators.scan.chunks import Chunk
from bamquery.engine.operators.scan.fragment_columns import FragmentColumns
from bamquery.engine.profiling.scan_profile import ScanProfile
from bamquery.engine.settings import Settings
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.read_planner.column_demands import ReaderShape
from bamquery.storage.read_planner.cost_model import CostModel
from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.processor_profile import processor_rates
from bamquery.storage.readers.block_reader import BlockReader
from bamquery.storage.readers.opening import open_blocks

_BLOCK_SIZE: Final = Settings().block_size


@dataclass
class OpenFragment(Generic[Frame]):
    """One fragment's file, and what the planner must know of it.

    Attributes:
        columns: its columns.
        blocks: its file.
        model: what its reads cost.
        shape: what of its reader decides how many commands they are.
    """

    columns: FragmentColumns
    blocks: BlockReader
    model: CostModel
    shape: ReaderShape


class FragmentReaders(Generic[Frame]):
    """Opens files at first use and closes them once no chunk needs them any more. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        profile: ScanProfile,
        *,
        keeps_encoded: bool = False,
    ) -> None:
        """`keeps_encoded`: frames have columns as they are stored, which the device takes."""
        self._keeps_encoded = keeps_encoded
        self._settings = settings
        self._profile = profile
        self._lock = threading.Lock()
        self._open: dict[str, OpenFragment[Frame]] = {}
        self._opening: dict[str, threading.Lock] = {}
        """Of each file that somebody asked for, held while it is opened."""
        self._chunks: dict[str, int] = {}
        self._handed_out: set[str] = set()
        self._volume: DeviceProfile | None = None

    def expect(self, chunk: Chunk) -> None:
        """A chunk is about to be read; `release` follows. Chunks come in order."""
        with self._lock:
            for piece in chunk.pieces:
                name = piece.fragment.id
                self._chunks[name] = self._chunks.get(name, 0) + 1
                if piece.end == piece.fragment.rows:
                    self._handed_out.add(name)

    def release(self, chunk: Chunk) -> None:
        """The chunk has been read."""
        finished = []
        with self._lock:
            for piece in chunk.pieces:
                name = piece.fragment.id
                self._chunks[name] -= 1
                if not self._chunks[name] and name in self._handed_out:
                    finished.append(self._open.pop(name, None))
        for opened in finished:
            if opened is not None:
                opened.blocks.close()

    def get(self, fragment: Fragment) -> OpenFragment[Frame]:
        """The fragment's file, opened if it is not yet.

        Raises:
            StorageError: it cannot be opened, or not in the way that the setting `reader` asks for.
        """
        opened = self._open.get(fragment.id)
        if opened is not None:
            return opened
        with self._lock:
            opening = self._opening.setdefault(fragment.id, threading.Lock())
        with opening:  # others open other files meanwhile, or only begin a chunk
            opened = self._open.get(fragment.id)
            if opened is None:
                opened = self._open[fragment.id] = self._open_fragment(fragment)
            return opened

    def _open_fragment(self, fragment: Fragment) -> OpenFragment[Frame]:
        blocks = self._open_blocks(fragment)
        volume = DeviceProfile.measure(fragment.path, blocks.kind)
        if volume is not self._volume:  # those of a table's files are mostly one
            self._volume = volume
            with self._profile.lock:
                self._profile.volume = volume.to_dict()
        reader = FragmentReader(
            fragment, blocks, self._settings.verifies, keeps_dictionaries=self._keeps_encoded
        )
        columns = FragmentColumns(reader, keeps_encoded=self._keeps_encoded)
        model = volume.model(processor_rates(), blocks.kind)
        shape = reader_shape(blocks.block_size, blocks.kind, volume, self._settings)
        return OpenFragment(columns, blocks, model, shape)

    @contextmanager
    def reader_of(self, fragment: Fragment) -> Iterator[FragmentReader]:
        """The fragment's file, for whoever reads all of its columns and asks nothing of what that costs.

        Raises:
            StorageError: as `get`.
        """
        with closing(self._open_blocks(fragment)) as blocks:
            yield FragmentReader(fragment, blocks, self._settings.verifies)

    def close(self) -> None:
        """Close what is still open; nobody reads any more."""
        with self._lock:
            still_open, self._open = self._open, {}
        for opened in still_open.values():
            opened.blocks.close()

    def _open_blocks(self, fragment: Fragment) -> BlockReader:
        blocks = open_as_set(fragment, self._settings)
        with self._profile.lock:
            self._profile.reader, self._profile.block_size = blocks.kind, blocks.block_size
            self._profile.io_path = blocks.io_path
            asked = self._settings.block_size
            if asked not in (blocks.block_size, _BLOCK_SIZE) and not self._profile.notes:
                self._profile.notes.append(
                    f"block_size {asked} is for mapped reads; direct reads take {blocks.block_size}"
                )
        return blocks


def reader_shape(block_size: int, kind: str, volume: DeviceProfile, settings: Settings) -> ReaderShape:
    """What the planner must know of a reader: memory maps have no requests."""
    requests = volume.request_bytes if kind == "direct" else None
    return ReaderShape(block_size, requests, settings.verifies)


def open_as_set(fragment: Fragment, settings: Settings) -> BlockReader:
    """The fragment's file, read as the settings `reader` and `block_size` say.

    Raises:
        StorageError: it cannot be opened, or not in this way.
    """
    direct = settings.reader == "direct"
    return open_blocks(fragment.path, fragment.data_bytes, direct=direct, block_size=settings.block_size)
