"""Profiles: measured once per volume, kept where that is possible, assumed where nothing can be measured."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bamquery.errors import StorageError
from bamquery.storage.read_planner import device_profile, processor_profile, profile_cache
from bamquery.storage.read_planner.device_profile import ASSUMED, DeviceProfile, fit_reads, measure_reader
from bamquery.storage.read_planner.profile_cache import cache_file
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader

MEASURE = DeviceProfile.__dict__["measure"]
"""Before other tests' assumption takes its place."""


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process has measured anything yet, and the user's own cache stays out of it."""
    monkeypatch.setattr(DeviceProfile, "measure", MEASURE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(DeviceProfile, "_known", {})
    return


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(bytes(8 << 20))
    return path


class Drive:
    """A reader of a file on a pretended drive, and the clock that its reads move."""

    kind = "direct"

    def __init__(
        self,
        bandwidth: float = 3.5e9,
        iops: float = 2e5,
        latency: float = 8e-5,
        scattered: float = 2.5e9,
        *,
        size: int = 1 << 30,
        block_size: int = 512,
        cold: float = 0.0,
    ) -> None:
        """What is read for the first time, or in a new way, takes `cold` seconds more."""
        self.numbers = bandwidth, iops, latency, scattered
        self.size, self.block_size, self.cold = size, block_size, cold
        self.started = self.now = 1000.0
        self.streamed: Counter[int] = Counter()
        """How often a run that begins so was read."""
        self.scattered: set[int] = set()
        """Where reads of several places began."""
        self.single: set[int] = set()
        """The same of reads that came alone."""
        self._warm: set[object] = set()

    def __call__(self) -> float:
        return self.now

    def measure(self) -> DeviceProfile:
        return measure_reader(self, self.size, self)

    def read_ranges(self, offsets, lengths, counters, checksums=None):
        size, adjacent = int(lengths.sum()), (offsets[1:] == offsets[:-1] + lengths[:-1]).all()
        assert (offsets + lengths).max() <= self.size
        assert size <= 4 << 20
        bandwidth, iops, _, scattered = self.numbers
        if adjacent and len(offsets) > 1:
            self.streamed[int(offsets[0])] += 1
            self._warm_up(int(offsets[0]))
        else:
            assert not (offsets % lengths).any()
            self.scattered.update(offsets.tolist())
            self._warm_up(f"ranges of {lengths[0]}")
        self.now += size / bandwidth if adjacent else len(lengths) / iops + size / scattered
        return pa.py_buffer(bytes(size))

    def gather(self, base, stride, width, rows, counters):
        assert (base, stride, width) == (0, self.block_size, 8)
        assert rows.max() < self.size // self.block_size
        _, iops, latency, scattered = self.numbers
        single = len(rows) == 1
        (self.single if single else self.scattered).update((rows * stride).tolist())
        self._warm_up(f"single: {single}")
        self.now += latency if single else len(rows) * (1 / iops + stride / scattered)

    def _warm_up(self, what: object) -> None:
        self.now += 0.0 if what in self._warm else self.cold
        self._warm.add(what)


@pytest.mark.parametrize("cold", [0.0, 0.05])
def test_measuring_finds_what_a_drive_can_do(cold: float) -> None:
    """Once it is warm: of a page cache it is memory that is measured, not what fills it."""
    drive = Drive(cold=cold)
    found = drive.measure()
    assert found.bandwidth == pytest.approx(3.5e9)
    assert found.iops == pytest.approx(2e5)
    assert found.latency == pytest.approx(8e-5)
    assert found.scattered == pytest.approx(2.5e9)
    assert found.source == "measured"
    assert drive.now - drive.started < 1


def test_each_size_is_measured_once() -> None:
    """Streams, blocks of 4 KiB, 64 KiB and single blocks take 0.08 seconds each."""
    drive = Drive(block_size=4096)
    drive.measure()
    assert drive.now - drive.started < 4.5 * 0.08


def test_what_is_streamed_is_not_what_was_streamed_just_before() -> None:
    """Otherwise a processor's caches are measured in the place of memory."""
    drive = Drive()
    drive.measure()
    often = [drive.streamed[start] for start in range(0, 64 << 20, 4 << 20)]
    assert min(often) > 2
    assert max(often) <= min(often) + 2


def test_reads_go_anywhere_in_the_file_and_not_beyond() -> None:
    """In one that ends just before a piece does."""
    drive = Drive(size=(8 << 20) - 1, block_size=64 << 10)
    drive.measure()
    blocks = {*range(0, (8 << 20) - (64 << 10), 64 << 10)}
    assert {*drive.streamed} & blocks == {0}
    assert drive.scattered == drive.single == blocks


def test_of_a_slow_drive_less_is_read() -> None:
    """Pieces of 4 MiB in 0.05 seconds each: two of them take longer than a phase."""
    drive = Drive(bandwidth=(4 << 20) / 0.05)
    found = drive.measure()
    assert found.bandwidth == pytest.approx((4 << 20) / 0.05)
    assert {*drive.streamed} & {*range(0, 64 << 20, 4 << 20)} == {0, 4 << 20}


def test_checksums_a_second_are_those_of_vectors_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that one turn of 4 MiB moves on by 8 ms, the first one by more."""
    turns = []

    def checksums(data: np.ndarray, length: int) -> None:
        assert (len(data), length) == (4 << 20, 8192)
        turns.append(0.008 if turns else 0.1)

    monkeypatch.setattr(processor_profile._native, "strided_crcs", checksums)
    found = processor_profile.measure_checksum(lambda: 5.0 + sum(turns))
    assert found == pytest.approx((4 << 20) / 0.008)
    assert len(turns) == 4, "three take more than 0.02 seconds"


def test_reads_of_several_sizes_tell_commands_from_bytes() -> None:
    sizes = [512, 4096, 65536]
    assert fit_reads(sizes, [1e-6 + size / 3e9 for size in sizes], 4e9) == pytest.approx((1e-6, 3e9))
    # No faster than streams, and never without a cost.
    command, scattered = fit_reads(sizes, [size / 5e9 for size in sizes], 4e9)
    assert command == pytest.approx(512 / 5e9 / 50)
    assert scattered == pytest.approx(4e9)


def test_of_noisy_reads_the_nearest_line_is_taken() -> None:
    sizes, seconds = [512, 4096, 65536], [4.88e-7, 3.23e-6, 6.6e-5]

    def error(command: float, bandwidth: float) -> float:
        return sum(
            (1 - (command + size / bandwidth) / t) ** 2 for size, t in zip(sizes, seconds, strict=True)
        )

    command, scattered = fit_reads(sizes, seconds, 1e12)
    for factor in (0.999, 1.001):
        assert error(command * factor, scattered) > error(command, scattered)
        assert error(command, scattered * factor) > error(command, scattered)


@pytest.mark.parametrize(("large", "command"), [(155.1, 1 / 49.5), (155.3, 1 - 512 * 1.86885e-3)])
def test_a_command_is_a_fiftieth_of_the_smallest_read_at_least(large: float, command: float) -> None:
    """Where the nearest line has less, it is what the smallest read took beyond its bytes."""
    found, scattered = fit_reads([512, 4096, 65536], [1e-6, 6.6e-6, large * 1e-6], 1e12)
    assert found == pytest.approx(command * 1e-6, rel=0.005)
    assert scattered == pytest.approx(1 / 1.8688e-9, rel=1e-3)


@pytest.mark.parametrize("kind", ["mapped", "direct"])
def test_a_volume_is_measured_once(file: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = DeviceProfile.measure(file, kind)
    assert first.source == "measured"
    assert min(first.bandwidth, first.iops, first.latency) > 0

    def never(*_: object) -> DeviceProfile:
        raise AssertionError("measured again")

    monkeypatch.setattr(device_profile, "measure_reader", never)
    assert DeviceProfile.measure(file, kind) is first
    monkeypatch.setattr(DeviceProfile, "_known", {})  # as in another process
    assert DeviceProfile.measure(file, kind) == first


def test_kinds_of_readers_have_profiles_of_their_own(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_profile, "_SECONDS_A_PHASE", 0.001)
    for kind in ("mapped", "direct"):
        DeviceProfile.measure(file, kind)
    assert len(json.loads(cache_file().read_text())["profiles"]) == 2


def cached(version: int = profile_cache._VERSION, **changes: object) -> bytes:
    numbers = {"bandwidth": 1, "iops": 1, "latency": 1, "scattered": 1, "request_bytes": 1} | changes
    return json.dumps({"version": version, "profiles": {"KEY": numbers}}).encode()


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": %d}' % profile_cache._VERSION,
        b'{"version": %d, "profiles": []}' % profile_cache._VERSION,
        cached(version=2),
        cached(bandwidth=0),
        cached(bandwidth=float("nan")),
        cached(latency="x"),
        cached(iops=None),
        cached(request_bytes=True),
        b'{"version": %d, "profiles": {"KEY": 7}}' % profile_cache._VERSION,
    ],
)
def test_a_damaged_cache_only_costs_a_measurement(
    file: Path, contents: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_profile, "_SECONDS_A_PHASE", 0.001)
    monkeypatch.setattr(device_profile, "_volume", lambda path, kind: "KEY")
    cache_file().parent.mkdir(parents=True)
    cache_file().write_bytes(contents)
    found = DeviceProfile.measure(file, "mapped")
    assert found.source == "measured"
    assert found.bandwidth > 1
    assert json.loads(cache_file().read_text())["profiles"]["KEY"]["bandwidth"] == found.bandwidth


def test_the_largest_request_is_a_whole_number(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever wrote the cache: JSON has one kind of numbers."""
    monkeypatch.setattr(device_profile, "_volume", lambda path, kind: "KEY")
    cache_file().parent.mkdir(parents=True)
    cache_file().write_bytes(cached(request_bytes=131072.0))
    found = DeviceProfile.measure(file, "mapped")
    assert found == DeviceProfile(1, 1, 1, 1, 131072, "measured")
    assert type(found.request_bytes) is int


def test_a_cache_that_cannot_be_written_is_fine(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_profile, "_SECONDS_A_PHASE", 0.001)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert DeviceProfile.measure(file, "mapped").source == "measured"


def test_who_has_no_home_measures_in_each_process(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_profile, "_SECONDS_A_PHASE", 0.001)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(file.parent)
    assert cache_file() is None
    assert DeviceProfile.measure(file, "mapped").source == "measured"
    assert not (file.parent / "~").exists()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", ["mapped", "direct"])
def test_files_are_read_as_their_kind_says_and_closed(
    file: Path, kind: str, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 MiB are enough."""
    opened = []

    class Reader(Drive):
        def __init__(self, path: Path, size: int, *, direct: bool) -> None:
            super().__init__(size=size)
            opened.append((path, direct, self))
            self.closed = False

        def read_ranges(self, *arguments):
            if fails:
                raise StorageError("no answer")
            return super().read_ranges(*arguments)

        def close(self) -> None:
            self.closed = True

    os.truncate(file, 4 << 20)
    monkeypatch.setattr(device_profile, "open_blocks", Reader)
    monkeypatch.setattr(device_profile, "measure_reader", lambda reader, size, clock: reader.measure())
    found = DeviceProfile.measure(file, kind)
    ((path, direct, reader),) = opened
    assert (path, direct, reader.size) == (file, kind == "direct", 4 << 20)
    assert reader.closed
    assert found.source == ("assumed" if fails else "measured")


def test_volumes_without_a_name_share_one_for_each_kind(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(path: Path) -> None:
        raise OSError("not of this file system")

    monkeypatch.setattr(device_profile, "_SECONDS_A_PHASE", 0.001)
    monkeypatch.setattr(device_profile.os, "statvfs", unknown)
    for kind in ("mapped", "direct"):
        DeviceProfile.measure(file, kind)
    assert {*json.loads(cache_file().read_text())["profiles"]} == {"unknown-mapped", "unknown-direct"}


def test_small_or_missing_files_get_the_assumed_profile(tmp_path: Path, file: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    assert DeviceProfile.measure(tmp_path / "small", "mapped") is ASSUMED["mapped"]
    assert DeviceProfile.measure(tmp_path / "missing", "direct") is ASSUMED["direct"]
    assert ASSUMED["direct"].source == "assumed"
    assert DeviceProfile.measure(file, "mapped").source == "measured"  # the volume is not given up


def test_a_processor_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_profile, "_known", [])
    found = processor_profile.processor_rates()
    assert found.checksum > 1e7
    monkeypatch.setattr(processor_profile, "_known", [])  # as in another process
    monkeypatch.setattr(processor_profile, "measure_checksum", None)
    assert processor_profile.processor_rates() == found


def test_relative_cache_homes_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the XDG base directory specification has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_file() == Path("/home/someone/.cache/bamquery/device-profiles.json")


def test_measuring_reads_within_the_file(tmp_path: Path) -> None:
    """Sizes that are no multiple of anything."""
    path = tmp_path / "odd"
    path.write_bytes(os.urandom((5 << 20) + 123))
    reader = MappedReader(path, path.stat().st_size)
    ticks = iter(np.arange(0, 1000, 0.02))
    found = measure_reader(reader, path.stat().st_size, lambda: float(next(ticks)))
    assert found.bandwidth > 0
    reader.read_ranges(np.array([0]), np.array([1]), ReadCounters())
