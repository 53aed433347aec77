"""The GPU's own tests of packed columns, over small tables on a CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bamquery.storage.tables.snapshot import Snapshot
from tests.gpu.scan.test_scan_packed import (  # noqa: F401 - run here as well
    packable,
    test_a_scan_reads_less_than_it_needs,
    test_changed_bytes_are_found,
    test_columns_are_packed,
    test_comparisons,
    test_direct_reads,
    test_each_strategy,
    test_everything,
    test_nulls_and_lists,
    test_several_filters,
    test_special_floats,
    test_strings_that_are_stored_with_a_dictionary,
)
from tests.stored import stored


@pytest.fixture(scope="module")
def cuda(device: Any) -> Any:
    return device


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    folder = tmp_path_factory.mktemp("packed") / "db"
    with stored(folder, packable(9000), (1, 3000, 3100), encoding="auto") as snapshot:
        yield snapshot
