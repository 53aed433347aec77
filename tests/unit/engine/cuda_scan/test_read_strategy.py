"""The cheapest way to read a column follows the share of rows that are wanted."""

from __future__ import annotations

from typing import Any

import pytest

from bamquery.storage.read_planner.device_profile import DeviceProfile
from bamquery.storage.read_planner.planner import Strategy

VECTORS = 32_768


@pytest.fixture
def choice(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan import read_strategy as choice

    return choice


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.000001, Strategy.FETCH_BLOCKS), (0.0003, Strategy.FETCH_BLOCKS), (0.5, Strategy.STREAM)],
)
def test_in_the_page_cache(choice: Any, share: float, expected: Strategy) -> None:
    shape = (choice.BufferShape(VECTORS, 64),)
    rates = choice.PathRates.for_mapped_files(12)
    rows = round(share * VECTORS * 1024)
    assert choice.choose_strategy(shape, rows, VECTORS, 512, rates)[0] is expected


def test_a_slow_drive_is_streamed_sooner(choice: Any) -> None:
    shape = (choice.BufferShape(VECTORS, 64),)
    slow = choice.PathRates.for_direct_reads(DeviceProfile(3.5e9, 1e6, 1e-4))
    few, many = 1000, VECTORS * 10
    assert choice.choose_strategy(shape, few, VECTORS, 512, slow)[0] is Strategy.FETCH_BLOCKS
    assert choice.choose_strategy(shape, many, VECTORS, 512, slow)[0] is Strategy.STREAM


def test_validity_costs_as_well(choice: Any) -> None:
    rates = choice.PathRates.for_mapped_files(4)
    alone = choice.choose_strategy((choice.BufferShape(VECTORS, 64),), 10_000, VECTORS, 512, rates)
    both = choice.choose_strategy(
        (choice.BufferShape(VECTORS, 64), choice.BufferShape(VECTORS, 1)), 10_000, VECTORS, 512, rates
    )
    assert both[1] > alone[1]


def test_long_strings_touch_more_blocks(choice: Any) -> None:
    short = choice.BufferShape.for_strings(VECTORS, 12, 512)
    long = choice.BufferShape.for_strings(VECTORS, 5000, 512)
    assert 1 < short.touched < 1.1
    assert 10 < long.touched < 11
    assert choice.BufferShape.for_strings(VECTORS, 0, 512).touched == 1
    rates = choice.PathRates.for_mapped_files(12)
    cost = choice.choose_strategy((long,), 1000, VECTORS, 512, rates)[1]
    assert cost > choice.choose_strategy((short,), 1000, VECTORS, 512, rates)[1]
