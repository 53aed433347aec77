import numpy as np
import pytest

from bamquery.queries.generator.lookup import Steps, frequency_table, interpolate, quantile_table


def test_frequencies_are_shares_of_places() -> None:
    table = frequency_table([7, 8, 9], [2, 1, 1], 8)
    assert len(table) == 256
    assert [int(np.sum(table == value)) for value in (7, 8, 9)] == [128, 64, 64]


def test_rare_values_do_not_crowd_out_others() -> None:
    table = frequency_table([1, 2, 3], [1, 1e-9, 1], 8)
    assert [int(np.sum(table == value)) for value in (1, 2, 3)] == [128, 0, 128]


def test_quantiles_lie_on_the_knots() -> None:
    table = quantile_table([(0, 10), (0.5, 20), (1, 100)], 12)
    assert len(table) == 4096
    assert abs(np.quantile(table, 0.5) - 20) < 0.1
    assert abs(np.quantile(table, 0.25) - 15) < 0.1
    assert 10 <= table[0] < table[-1] <= 100


def test_interpolation_is_that_of_numpy() -> None:
    knots, values = [0.0, 0.25, 0.25, 0.5, 1.0], [1.0, 2.0, 5.0, 4.0, 10.0]
    at = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(interpolate(at, knots, values), np.interp(at, knots, values), rtol=1e-14)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("count", [1, 2, 31, 1000])
def test_steps_are_found_as_by_searchsorted(count: int, kind: type) -> None:
    """Also where many edges lie close together, where some are equal, and right at the edges."""
    random = np.random.default_rng(count)
    edges = np.sort(random.random(count) ** 8 * 1e6).astype(kind)
    edges = np.concatenate(([0], edges, edges[-1:] + 1)).astype(kind)
    edges[1] = 0
    inside = (random.random(10_000) * edges[-1]).astype(kind)
    below = edges - 1 if kind is np.int64 else np.nextafter(edges, 0.0)
    numbers = np.concatenate([inside, edges[:-1], below[below >= 0]])
    wanted = np.searchsorted(edges, numbers, side="right") - 1
    assert np.array_equal(Steps(edges).find(numbers), wanted)
