"""What the GPU counts of a selection is what the CPU counts of its rows, fragment by fragment."""

from __future__ import annotations

import numpy as np
import pytest

from bamquery.storage.read_planner.hit_pyramid import LEVELS, HitPyramid
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.kernels.test_string_kernels import launch, memory, view

VECTORS = 300


def chunk_vectors(random: np.random.Generator) -> np.ndarray:
    """Of two fragments, as zone maps leave them: some side by side, some far apart."""
    first = np.sort(random.choice(4000, VECTORS // 2, replace=False))
    second = np.arange(VECTORS - VECTORS // 2) + 17
    pieces = np.repeat([0, 1], [len(first), len(second)])
    return np.stack([pieces, np.concatenate([first, second])], axis=1).astype(np.uint32)


def exact(vectors: np.ndarray, positions: np.ndarray) -> list[int]:
    found = np.zeros(LEVELS)
    for piece in (0, 1):
        mine = positions[vectors[positions // 1024, 0] == piece]
        rows = vectors[mine // 1024, 1].astype(np.int64) * 1024 + mine % 1024
        found += HitPyramid.count(rows).groups
    return found[1:].astype(int).tolist()


def bits(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A bit for each item, and how many are set in each 1,024."""
    padded = np.zeros(-(-len(chosen) // 1024) * 1024, bool)
    padded[: len(chosen)] = chosen
    mask = np.packbits(padded, bitorder="little").view(np.uint32)
    return mask, padded.reshape(-1, 1024).sum(1).astype(np.uint32)


@pytest.mark.parametrize("share", [0.0, 2e-5, 1e-3, 0.05, 0.6, 1.0])
@pytest.mark.parametrize("narrowed", [False, True])
def test_bits(emulator: Emulator, share: float, narrowed: bool) -> None:
    random = np.random.default_rng(round(1e5 * share))
    vectors = chunk_vectors(random)
    positions = np.arange(VECTORS * 1024)
    if narrowed:
        positions = positions[random.random(len(positions)) < 0.1]
    chosen = random.random(len(positions)) < share
    chosen[len(chosen) // 3 : len(chosen) // 3 + 50] = share > 0
    mask, counts = bits(chosen)
    groups = memory(np.zeros(LEVELS - 1, np.uint32))
    where = memory(positions.astype(np.uint32)) if narrowed else None
    launch(
        *(emulator, "scan_pyramid", "scan_pyramid", memory(mask), memory(counts), len(counts)),
        *(where, None, memory(vectors), groups),
    )
    assert view(groups, np.uint32, LEVELS - 1).tolist() == exact(vectors, positions[chosen])


@pytest.mark.parametrize("count", [1, 31, 32, 33, 1023, 1024, 1025, 20_000])
def test_positions(emulator: Emulator, count: int) -> None:
    random = np.random.default_rng(count)
    vectors = chunk_vectors(random)
    positions = np.sort(random.choice(VECTORS * 1024, count, replace=False))
    groups = memory(np.zeros(LEVELS - 1, np.uint32))
    launch(
        *(emulator, "scan_pyramid", "scan_pyramid", None, None, -(-count // 1024)),
        *(memory(positions.astype(np.uint32)), memory(np.array([count], np.uint32)), memory(vectors), groups),
    )
    assert view(groups, np.uint32, LEVELS - 1).tolist() == exact(vectors, positions)
