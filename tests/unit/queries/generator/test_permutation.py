import numpy as np
import pytest

from bamquery.queries.generator.permutation import Permutation


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 31, 32, 33, 1023, 1024, 1025, 100_003])
def test_every_number_once_and_back(size: int) -> None:
    permutation = Permutation(size, seed=1, name="test")
    numbers = np.arange(size, dtype=np.uint64)
    there = permutation.forward(numbers)
    np.testing.assert_array_equal(np.sort(there), numbers)
    np.testing.assert_array_equal(permutation.backward(there), numbers)
    np.testing.assert_array_equal(numbers, np.arange(size))


def test_parts_agree_with_the_whole() -> None:
    permutation = Permutation(10_007, seed=3, name="test")
    whole = permutation.forward(np.arange(10_007, dtype=np.uint64))
    np.testing.assert_array_equal(
        permutation.forward(np.arange(5_000, 5_100, dtype=np.uint64)), whole[5_000:5_100]
    )


def test_names_and_seeds_give_other_permutations_without_order() -> None:
    numbers = np.arange(100_000, dtype=np.uint64)
    results = [Permutation(100_000, seed, name).forward(numbers) for seed in (1, 2) for name in ("a", "b")]
    for place, result in enumerate(results):
        assert abs(np.corrcoef(numbers.astype(float), result.astype(float))[0, 1]) < 0.02
        assert abs(np.mean(np.diff(result.astype(float)) > 0) - 0.5) < 0.01
        for other in results[:place]:
            assert np.mean(result == other) < 1e-3
            assert abs(np.corrcoef(other.astype(float), result.astype(float))[0, 1]) < 0.02


def test_far_beyond_memory() -> None:
    permutation = Permutation(10**12 - 11, seed=1, name="test")
    numbers = np.random.default_rng(1).integers(0, 10**12 - 11, 1000).astype(np.uint64)
    there = permutation.forward(numbers)
    assert there.max() < 10**12 - 11
    np.testing.assert_array_equal(permutation.backward(there), numbers)
