"""The GPU's own tests of rows that it loads from pinned pages, over small tables on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bamquery.storage.format.layout import Extent
from tests.gpu.scan.test_mapped_rows import (  # noqa: F401 - run here as well
    pins_at_once,
    test_commands_where_they_are_asked_for,
    test_packed_columns,
    test_pages_are_pinned_once_that_is_worth_it,
    test_plain_columns,
)


@pytest.fixture(scope="module")
def cuda(device: Any) -> Any:
    return device


def test_what_has_just_been_written_is_cached(scan_modules: None, tmp_path: Path) -> None:
    from bamquery.engine.cuda.scan.resources.cached_pages import is_cached

    path = tmp_path / "file"
    path.write_bytes(bytes(20_000))
    assert is_cached(str(path), Extent(4096, 10_000))
    assert not is_cached(str(tmp_path / "none"), Extent(0, 100))
    assert not is_cached(str(path), Extent(40_960, 100))  # behind its end


def test_credit_adds_up(scan_modules: None, gpu: Any, tmp_path: Path) -> None:
    from bamquery.engine.cuda.scan.resources import pinned_files
    from tests.devices.scan_cases import every_type
    from tests.stored import stored

    with stored(tmp_path / "db", every_type(9000, nulls="none")) as table:
        fragment = table.fragments[0]
        extent = fragment.layout.columns[fragment.column_index("f64")].values
        maps = pinned_files.PinnedFiles(gpu)
        third = 0.4 * pinned_files._PRICE_SHARE * pinned_files._PIN_S * extent.length
        assert "not worth" in str(maps.take_if_worth(fragment, extent, third))
        assert "not worth" in str(maps.take_if_worth(fragment, extent, third))
        assert not maps.has(fragment, extent)
        assert not isinstance(maps.take_if_worth(fragment, extent, third), str)
        assert maps.has(fragment, extent)
        assert not isinstance(maps.take_if_worth(fragment, extent, 0.0), str)
        maps.close()
