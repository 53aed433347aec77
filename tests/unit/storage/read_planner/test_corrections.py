"""What earlier chunks took corrects what later ones are expected to take, and says what is worth a try."""

from __future__ import annotations

import pytest

from bamquery.storage.read_planner.corrections import NO_CORRECTIONS, Corrections
from bamquery.storage.read_planner.cost_model import Cost, CostModel, Path, ProcessorRates, ReadDemand
from bamquery.storage.read_planner.planner import Choice, Strategy

MODEL = CostModel({}, ProcessorRates(checksum=1e9))
LEARN = Corrections.__dict__["learn"]
"""Before other tests' assumption takes its place."""


@pytest.fixture(autouse=True)
def learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are timed."""
    monkeypatch.setattr(Corrections, "learn", LEARN)


def link(seconds: float) -> Cost:
    return (0.0, seconds, 0.0, 0.0, 0.0)


def commands(seconds: float) -> Cost:
    return (0.0, 0.0, seconds, 0.0, 0.0)


def choice(strategy: Strategy, predicted: Cost) -> Choice:
    demand = ReadDemand(Path.SEQUENTIAL, 1 << 20, 8)
    return Choice(strategy, demand, predicted, predicted, MODEL.seconds([predicted]))


STREAM = choice(Strategy.STREAM, link(1.0))


def test_the_last_chunks_count_most() -> None:
    seen = Corrections(MODEL)
    assert seen.apply(Strategy.STREAM, link(1.0)) == link(1.0)
    seen.learn([STREAM], 1.5)
    assert seen.apply(Strategy.STREAM, link(1.0)) == pytest.approx(link(1.5), rel=1e-3)
    seen.learn([STREAM], 1.0)
    assert seen.apply(Strategy.STREAM, link(1.0)) == pytest.approx(link(1.75 / 1.5), rel=1e-3)


def test_all_of_a_cost_is_corrected() -> None:
    seen = Corrections(MODEL)
    seen.learn([STREAM], 1.5)
    found = seen.apply(Strategy.STREAM, (1.0, 9.0, 2.0, 3.0, 4.0))
    assert found == pytest.approx((1.5, 13.5, 3.0, 4.5, 6.0), rel=1e-3)


def test_reads_of_other_kinds_say_nothing() -> None:
    seen = Corrections(MODEL)
    seen.learn([STREAM], 1.5)
    assert seen.apply(Strategy.FETCH_BLOCKS, link(1.0)) == link(1.0)
    assert seen.apply(Strategy.STREAM, commands(1.0)) == commands(1.0)
    # Where nothing goes on at the same time, no resource is the scarcest.
    seen = Corrections(CostModel({}, MODEL.processor, overlaps=False))
    seen.learn([STREAM], 1.5)
    assert seen.apply(Strategy.STREAM, commands(1.0)) == pytest.approx(commands(1.5), rel=1e-3)


def test_reads_together_are_shared_out() -> None:
    seen = Corrections(MODEL)
    seen.learn([STREAM, STREAM], 3.0)
    assert seen.apply(Strategy.STREAM, link(1.0)) == pytest.approx(link(1.5), rel=1e-3)


@pytest.mark.parametrize(("took", "factor"), [(10.0, 2.0), (0.01, 0.5)])
def test_no_more_than_twice_or_half(took: float, factor: float) -> None:
    seen = Corrections(MODEL)
    seen.learn([STREAM], took)
    assert seen.apply(Strategy.STREAM, link(1.0)) == link(factor)


def test_small_reads_say_little() -> None:
    seen = Corrections(MODEL)
    seen.learn([choice(Strategy.STREAM, link(1e-5))], 2e-5)
    assert seen.apply(Strategy.STREAM, link(1.0)) == pytest.approx(link(7 / 6))


def test_another_way_is_worth_a_try_that_may_be_cheaper() -> None:
    """Up to twice as dear: rates can be off as far."""
    near, at_most, far = (choice(Strategy.FETCH_BLOCKS, commands(s)) for s in (1.9, 2.0, 2.1))
    vectors = choice(Strategy.FETCH_VECTORS, link(1.8))
    seen = Corrections(MODEL)
    assert seen.choose_untried(STREAM, [near]) is None, "nothing is known of the chosen way either"
    seen.learn([STREAM], 1.0)
    assert seen.choose_untried(STREAM, [near]) is near
    assert seen.choose_untried(STREAM, [at_most, far]) is None
    assert seen.choose_untried(STREAM, [near, vectors, far]) is vectors
    assert seen.choose_untried(STREAM, [vectors, near]) is vectors
    assert seen.choose_untried(STREAM, [near, choice(Strategy.FETCH_VECTORS, link(1.9))]) is near, "of equals"
    assert seen.choose_untried(STREAM, []) is None
    seen.learn([vectors], 1.8)
    assert seen.choose_untried(STREAM, [near, vectors]) is near
    assert NO_CORRECTIONS.choose_untried(STREAM, [near]) is None


def test_only_reads_of_some_size_have_tried_a_way() -> None:
    near = choice(Strategy.FETCH_BLOCKS, commands(1.9))
    for size, tried in ((0.1, False), (0.13, True)):
        seen = Corrections(MODEL)
        seen.learn([choice(Strategy.STREAM, link(size))], 0.06)  # what it took does not matter
        assert (seen.choose_untried(STREAM, [near]) is near) == tried
    seen = Corrections(MODEL)
    seen.learn([STREAM], 1.0)
    eight_times = choice(
        Strategy.STREAM, link(8 * (0.5e-4 + 1.0))
    )  # as much as was seen, the prior's half with it
    assert seen.choose_untried(eight_times, [near]) is near
    small, other = choice(Strategy.STREAM, link(1e-6)), choice(Strategy.FETCH_BLOCKS, commands(1.9e-6))
    for size, tried in ((1e-4, False), (1.6e-4, True)):
        seen = Corrections(MODEL)
        seen.learn([choice(Strategy.STREAM, link(size))], size)
        assert (seen.choose_untried(small, [other]) is other) == tried
