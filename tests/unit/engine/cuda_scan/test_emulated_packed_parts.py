"""The GPU's own tests of parts of packed vectors, over small tables on a CPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.scan.test_scan_packed_parts import (  # noqa: F401 - run here as well
    holes,
    some,
    spikes,
    test_columns_have_parts,
    test_comparisons_of_parts,
    test_conditions_at_steps,
    test_conditions_on_several_columns_leave_what_all_leave,
    test_only_parts_are_read,
    test_parts_are_compared_with_their_checksums,
    test_random_ranges_lose_no_row,
    test_special_floats_of_parts,
    test_whole_vectors_where_no_part_is_left_out,
)


@pytest.fixture(scope="module")
def cuda(device: Any) -> Any:
    return device


@pytest.fixture
def scale() -> float:
    return 0.1
