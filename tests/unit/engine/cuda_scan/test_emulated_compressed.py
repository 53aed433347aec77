"""The GPU's own tests of compressed strings, over small tables on a CPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.scan.test_scan_compressed import (  # noqa: F401 - run here as well
    test_all_rows,
    test_bytes_that_lead_astray,
    test_changed_bytes_are_found,
    test_columns_are_compressed,
    test_direct_reads,
    test_filters_on_compressed_strings,
    test_only_codes_cross_the_bus,
    test_rows_of_a_filter,
    text,
)


@pytest.fixture(scope="module")
def cuda(device: Any) -> Any:
    return device


@pytest.fixture(scope="module")
def text_rows() -> int:
    return 9000
