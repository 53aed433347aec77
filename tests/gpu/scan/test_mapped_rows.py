"""Single rows that a GPU loads from pinned pages itself are those that commands bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from bamquery.storage.fragments.stored_buffers import stored_buffers
from bamquery.storage.tables.snapshot import Snapshot
from tests.devices.scan_cases import FIXED, check, compare, every_type
from tests.gpu.scan.test_scan_packed import CUTS, NAMES, agree, packable
from tests.stored import stored

PATH = "zero-copy"


@pytest.fixture
def pins_at_once(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from bamquery.engine.cuda.scan.resources import pinned_files

    monkeypatch.setattr(pinned_files, "_PRICE_SHARE", 0.0)


@pytest.mark.parametrize(("nulls", "block_size"), [("none", 4096), ("some", 512), ("pick", 512)])
def test_plain_columns(cuda: Any, tmp_path: Path, pins_at_once: None, nulls: str, block_size: int) -> None:
    """The figures are those of sectors, exactly."""
    whole = every_type(9000, nulls=nulls)
    with stored(tmp_path / "db", whole, (1, 3000, 3100)) as table:
        for selectivity in (0.003, 0.3):
            predicates = [compare(table, "pick", "less", selectivity)]
            profile = check(cuda, table, tuple(FIXED), predicates, strategy="blocks", block_size=block_size)
            assert profile.queues is None
            chosen = np.flatnonzero(pc.fill_null(pc.less(whole["pick"], selectivity), False).to_numpy())
            for name in FIXED:
                assert set(profile.columns[name].paths) == {PATH}
                assert profile.columns[name].counters.bytes == 32 * count_sectors(table, name, chosen), name


def count_sectors(table: Snapshot, name: str, chosen: np.ndarray) -> int:
    """Distinct ones in which a plain column has values of those rows, and bits of vectors with some nulls."""
    count = first = 0
    for fragment in table.fragments:
        rows = chosen[(chosen >= first) & (chosen < first + fragment.rows)] - first
        first += fragment.rows
        buffers = stored_buffers(fragment, name)
        count += len(np.unique(rows * buffers.bits // 8 // 32))
        if buffers.validity is not None:
            mixed = buffers.null_states(np.arange(fragment.vector_count)) == 1
            count += len(np.unique(rows[mixed[rows // 1024]] // 8 // 32))
    return count


@pytest.mark.parametrize("selectivity", [0.1, 30.0])
def test_packed_columns(cuda: Any, tmp_path: Path, pins_at_once: None, selectivity: float) -> None:
    with stored(tmp_path / "db", packable(9000), CUTS[:3], encoding="auto") as table:
        predicates = [compare(table, "cents", "less", selectivity)]
        profile = agree(cuda, table, NAMES, predicates, strategy="blocks", zone_maps=False)
        for name in ("far", "mixed", "i64", "u64", "dec", "flag", "same", "none", "word", "turns", "noise"):
            assert set(profile.columns[name].paths) == {PATH}, name


def test_commands_where_they_are_asked_for(cuda: Any, tmp_path: Path, pins_at_once: None) -> None:
    with stored(tmp_path / "db", every_type(9000, nulls="none")) as table:
        predicates = [compare(table, "pick", "less", 0.01)]
        profile = check(cuda, table, ("f64",), predicates, strategy="blocks", reader="queues")
        assert set(profile.columns["f64"].paths) == {"queue pairs"}


def test_pages_are_pinned_once_that_is_worth_it(
    cuda: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands at first; what they cost adds up, and then the pages are pinned if they are in memory."""
    from bamquery.engine.cuda.scan.resources import pinned_files

    def paths(table: Snapshot) -> set[str]:
        predicates = [compare(table, "pick", "less", 0.01)]
        return set(check(cuda, table, ("f64",), predicates, strategy="blocks").columns["f64"].paths)

    monkeypatch.setattr(pinned_files, "_PRICE_SHARE", 1e9)
    with stored(tmp_path / "db", every_type(9000, nulls="none")) as table:
        assert paths(table) == {"queue pairs"}
        monkeypatch.setattr(pinned_files, "_PRICE_SHARE", 0.0)
        monkeypatch.setattr(pinned_files, "is_cached", lambda path, extent: False)
        assert paths(table) == {"queue pairs"}
        monkeypatch.setattr(pinned_files, "is_cached", lambda path, extent: True)
        assert paths(table) == {PATH}
        monkeypatch.setattr(pinned_files, "_PRICE_SHARE", 1e9)
        assert paths(table) == {PATH}
