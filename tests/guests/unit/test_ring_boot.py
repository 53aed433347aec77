"""Rings that a guest's drive serves, without a guest: their layout, what drives them, and the judgement."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bamquery._native import QueueMemory
from bamquery.driver.compile.compiler import CompiledKernel
from bamquery.driver.gpu import device as gpu_module
from bamquery.driver.gpu.device import Gpu
from tests.guests import content
from tests.guests.boot import FINISHED, Outcome
from tests.guests.drives import drive
from tests.guests.host import drive_rings
from tests.guests.host.gpu_rings import GpuRings
from tests.guests.host.reads import Reads, Refusals
from tests.guests.host.shared_rings import LAYOUT, PAGE, RingShape, SharedMemory, make_file
from tests.guests.packages import REPOSITORY
from tests.guests.programs import FOLDER
from tests.guests.results import Result, parse
from tests.guests.ring_boot import faults, ring_boot
from tests.native.programs import compiler
from tests.unit.driver.fake_cuda import FakeCuda

PLACES = [(0, 0, 0), (7, 12345, 63), (1 << 63, (1 << 40) - 1, 511)]
GOOD = Refusals(beyond=0x080, missing=0x00B, after=0, write=0x7C7)


def test_both_say_the_same(tmp_path: Path) -> None:
    source = tmp_path / "said.cpp"
    lines = ['#include "driver/core/bench/content.hpp"', '#include "shared_rings.hpp"']
    for seed, lba, word in PLACES:
        value = int(content.blocks(seed, lba, 1, 4096)[0, word])
        key = f"bamquery::content_key({seed}u, {lba * 8 + word // 64}u)"
        lines.append(f"static_assert(bamquery::content_word({key}, {word % 64}) == {value}u);")
    lines.append(f"static_assert(sizeof(guests::SharedRings) == {LAYOUT.size});")
    lines.append(f"static_assert(guests::SharedRings::kPage == {PAGE});")
    names = ["stage", "nsid", "shape", "queue", "bus", "blocks"]
    places = [0, 4, 8, 36, 40, 48]
    lines += [
        f"static_assert(offsetof(guests::SharedRings, {n}) == {p});"
        for n, p in zip(names, places, strict=True)
    ]
    source.write_text("\n".join([*lines, ""]))
    headers = [f"-iquote{folder}" for folder in (FOLDER, REPOSITORY, REPOSITORY / "bamquery")]
    subprocess.run([compiler(), "-std=c++20", "-fsyntax-only", *headers, source], check=True)


def test_what_the_guest_places_there_is_found(tmp_path: Path) -> None:
    shape = RingShape(leased_pairs=2, shared_pairs=1, depth=8)
    path = tmp_path / "memory"
    size = make_file(path, shape)
    assert size == path.stat().st_size == 1 << 20
    memory = SharedMemory(path)
    assert not memory.await_served(0)
    with path.open("r+b") as file:
        file.write(LAYOUT.pack(1, 5, *(2, 1, 8, 7, 16384, 512, 4), 3, 1 << 32, 999))
    assert memory.await_served(0)
    queues = memory.queues()
    assert (queues.leased_pairs, queues.shared_pairs, queues.depth, queues.slots) == (2, 1, 8, 7)
    assert (queues.slot_bytes, queues.block_bytes, queues.doorbell_stride) == (16384, 512, 4)
    assert (memory.nsid, memory.blocks) == (5, 999)
    memory.say_done()
    assert path.read_bytes()[:4] == b"\x02\0\0\0"


class Told:
    """Rings whose reads and refusals are as told."""

    name = "a test"

    def __init__(self, reads: Reads, refusals: Refusals = GOOD, lost: int = 0) -> None:
        self._reads, self._refusals, self._lost = reads, refusals, lost

    def read(self, commands: int, sizes: tuple[int, ...]) -> list[Reads]:
        return [self._reads] * len(sizes)

    def refusals(self) -> Refusals:
        return self._refusals

    def lost(self) -> int:
        return self._lost


@pytest.mark.parametrize(
    ("rings", "failed"),
    [
        (Told(Reads("k", 10, 0, 0)), []),
        (Told(Reads("k", 9, 0, 0)), ["reads"]),
        (Told(Reads("k", 10, 1, 0)), ["reads"]),
        (Told(Reads("k", 10, 0, 1)), ["reads"]),
        (Told(Reads("k", 10, 0, 0), Refusals(0, 0, 1, 0)), [
            "beyond-the-end", "no-such-namespace", "after-errors", "no-write",
        ]),
        (Told(Reads("k", 10, 0, 0), lost=1), ["rings"]),
    ],
)  # fmt: skip
def test_each_check_can_fail(rings: Told, failed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert drive_rings.drive(rings, 30) == bool(failed)
    said = parse(f"begin host 0\n{capsys.readouterr().out}end host 0 0\n")["host"].results
    assert [result.name for result in said] == list(drive_rings.CHECKS[2:])
    assert [result.name for result in said if result.kind != "ok"] == failed


def test_both_ends_are_judged(tmp_path: Path) -> None:
    boot = ring_boot("unit", tmp_path / "memory", RingShape(), drive("1M"), 9)
    good = "begin serve 1.0\nok memory: \nok served: \nok done: \nok stopped: \nend serve 0 2.0\n"
    results = {name: Result("ok", name, "") for name in drive_rings.CHECKS}
    assert faults(boot, Outcome(FINISHED, parse(good), 1.0, tmp_path), results) == []
    bad = Outcome(FINISHED, parse(good.replace("ok done", "FAIL done")), 1.0, tmp_path)
    reads = {"reads": Result("FAIL", "reads", "3 words wrong")}
    found = faults(boot, bad, {**results, **reads})
    assert found == ["guest serve:done: ", "host reads: FAIL 3 words wrong"]
    del results["rings"]
    assert faults(boot, Outcome(FINISHED, parse(good), 1.0, tmp_path), results) == [
        "host rings: it gave no result"
    ]


class FakeKernel:
    """Ends commands as a drive would: those of what is not there, and writes, fail."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.jobs: list[tuple[int, ...]] = []

    def __call__(self, arguments: list[bytes]) -> None:
        _, job, tally, errors = arguments
        _, blocks, _, nsid, rounds, lbas, modes = fields = struct.unpack("<QQQIIII", job)
        self.jobs.append(fields)
        commands, failed, status = 32 * rounds, 0, 0
        if nsid != 5:
            failed, status = commands, 0x00B
        elif blocks > 1 << 40:
            failed, status = commands, 0x080
        elif modes & 1:
            commands, failed, status = 2 * commands, commands, 0x7C7
        self._write(tally, struct.pack("<5Q", commands, 0, failed, 0, 0))
        if failed:
            self._write(errors, struct.pack("<IIQIHBx", failed, nsid, 0, lbas, status, 2))

    def _write(self, pointer: bytes, data: bytes) -> None:
        self.cuda.memory[struct.unpack("<Q", pointer)[0]][: len(data)] = data


def test_a_gpus_kernels_are_launched_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cuda = FakeCuda()
    cuda.install(monkeypatch)
    cuda.parameters = [40, 40, 8, 8]
    cuda.kernel = kernel = FakeKernel(cuda)
    monkeypatch.setattr(gpu_module, "stored_kernel", lambda *_: CompiledKernel(b"", "", cached=True))
    memory: Any = QueueMemory(leased_pairs=2)
    with Gpu() as gpu:
        rings = GpuRings(gpu, memory, 5, 131072, 7)
        assert drive_rings.drive(rings, 32 * 9) == 0
        rings.close()
    assert [(job[0], job[1], job[4], job[5]) for job in kernel.jobs[:9]] == [
        (7, 131072, 1, lbas) for _ in range(3) for lbas in drive_rings.SIZES
    ]
    assert len(kernel.jobs) == 9 + 3 * 4
    assert "ok reads: 288 by threads of an NVIDIA Test" in capsys.readouterr().out
