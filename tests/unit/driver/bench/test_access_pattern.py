"""Which blocks clients ask for. Draws are functions of the seed, so these tests see the same each time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bamquery import _native

DRAWS = 200_000


def draw(pattern: str, blocks: int, count: int = DRAWS, **changes: float) -> NDArray[np.uint64]:
    options = {"clients": 1, "seed": 1, "theta": 0.99, "client": 0} | changes
    return _native.draw_blocks(
        pattern,
        blocks,
        int(options["clients"]),
        int(options["seed"]),
        options["theta"],
        int(options["client"]),
        count,
    )


def chi_square(counts: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """How far, in standard deviations of the chi-square distribution with so many degrees of freedom."""
    freedom = len(counts) - 1
    return float((((counts - expected) ** 2 / expected).sum() - freedom) / np.sqrt(2 * freedom))


@pytest.mark.parametrize("blocks", [1, 2, 3, 100, 1000, 1024])
@pytest.mark.parametrize("theta", [0.2, 0.5, 0.99, 1.0, 1.5, 3.0])
def test_zipf_has_its_distribution(blocks: int, theta: float) -> None:
    drawn = draw("zipf", blocks, theta=theta)
    assert drawn.max() < blocks
    # Ranks are scattered over the blocks, so only sorted frequencies can be compared: the scatter is found
    # by the most frequent blocks where they are clearly apart, and the rest goes into one class.
    weights = np.arange(1, blocks + 1) ** -theta
    expected = weights / weights.sum() * DRAWS
    counts = np.sort(np.bincount(drawn.astype(np.int64), minlength=blocks))[::-1].astype(np.float64)
    assert counts.sum() == DRAWS
    gaps = np.diff(expected, append=0.0) * -1
    clear = int(np.argmin(np.append(gaps > 8 * np.sqrt(expected), False)))
    kept = np.append(counts[:clear], counts[clear:].sum())
    wanted = np.append(expected[:clear], expected[clear:].sum())
    if clear >= 1 and wanted[-1] > 0:
        assert abs(chi_square(kept, wanted)) < 5


def test_zipf_ranks_over_all_blocks() -> None:
    """The whole distribution, by finding out with many draws which block has which rank."""
    blocks, theta = 50, 0.99
    order = np.argsort(-np.bincount(draw("zipf", blocks, 3_000_000).astype(np.int64), minlength=blocks))
    counts = np.bincount(draw("zipf", blocks, seed=1, client=5).astype(np.int64), minlength=blocks)[order]
    weights = np.arange(1, blocks + 1) ** -theta
    assert abs(chi_square(counts.astype(np.float64), weights / weights.sum() * DRAWS)) < 4


def test_another_seed_scatters_hot_blocks_elsewhere() -> None:
    hottest = {int(np.bincount(draw("zipf", 4096, seed=seed).astype(np.int64)).argmax()) for seed in range(8)}
    assert len(hottest) > 4


def test_random_is_uniform() -> None:
    for blocks in (2, 1000, 4096):
        counts = np.bincount(draw("random", blocks).astype(np.int64), minlength=blocks)
        assert abs(chi_square(counts.astype(np.float64), np.full(blocks, DRAWS / blocks))) < 5


def test_clients_and_seeds_differ() -> None:
    first = draw("random", 1 << 30, 1000)
    assert (first == draw("random", 1 << 30, 1000)).all()
    for changes in ({"seed": 2}, {"client": 1}):
        assert (first == draw("random", 1 << 30, 1000, **changes)).sum() < 3


def test_many_blocks() -> None:
    """More than 32 bits can count."""
    drawn = draw("random", 1 << 40, 10_000)
    assert drawn.max() < 1 << 40
    assert abs(drawn.mean() / (1 << 39) - 1) < 0.05
    assert draw("zipf", 1 << 40, 10_000).max() < 1 << 40


@settings(max_examples=200)
@given(st.integers(1, 300), st.integers(1, 12))
def test_sequential_clients_share_all_blocks(blocks: int, clients: int) -> None:
    seen: list[int] = []
    for client in range(clients):
        share = (client + 1) * blocks // clients - client * blocks // clients
        drawn = draw("sequential", blocks, max(share, 1), clients=clients, client=client)
        assert drawn.max() < blocks
        seen += drawn[:share].tolist()
    assert seen == list(range(blocks))


@settings(max_examples=100)
@given(st.integers(1, 500), st.integers(0, 1 << 62))
def test_scatter_is_a_bijection(blocks: int, seed: int) -> None:
    """With a small theta every rank is drawn soon: as many blocks as ranks."""
    drawn = draw("zipf", blocks, 40 * blocks + 200, seed=seed, theta=1e-9)
    assert len(np.unique(drawn)) >= blocks - 1
