"""The GPU's scan, kernels included, on a CPU: its answers, needs and blocks are those of the CPU's scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bamquery.storage.snapshot import Snapshot
from tests.scan_cases import FIXED, check, compare, every_type
from tests.stored import stored

OUTPUTS = ("f64", "i8", "flag", "dec")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    table = every_type(9000, nulls="pick")
    with stored(tmp_path_factory.mktemp("pieces") / "db", table, (1, 3000, 3100)) as snapshot:
        yield snapshot


@pytest.mark.parametrize("strategy", ["stream", "vectors", "blocks"])
@pytest.mark.parametrize("selectivity", [0.0, 0.01, 1.0])
def test_each_strategy(device: Any, pieces: Snapshot, strategy: str, selectivity: float) -> None:
    check(device, pieces, OUTPUTS, [compare(pieces, "pick", "less", selectivity)], strategy=strategy)


def test_without_filters(device: Any, pieces: Snapshot) -> None:
    check(device, pieces, tuple(FIXED))
