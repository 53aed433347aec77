"""A scan that is cancelled while the GPU lists its vectors keeps what the GPU may still write to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bamquery.errors import CancelledError
from tests.devices.scan_cases import check, compare, every_type, run
from tests.stored import stored
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu


def test_what_is_being_listed_is_kept(
    device: Any, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bamquery.engine.cuda.scan.chunk import vector_list
    from bamquery.engine.cuda.scan.scan_clock import ScanClock

    kept: list[object] = []

    def cancelled(*_: object) -> None:
        raise CancelledError("the query was cancelled")

    with stored(tmp_path / "db", every_type(3000, nulls="none")) as table:
        predicates = [compare(table, "pick", "less", 0.5)]
        with monkeypatch.context() as patch:
            patch.setattr(vector_list, "_FEW_VECTORS", 0)
            patch.setattr(ScanClock, "wait_for", cancelled)
            patch.setattr(gpu, "abandon", kept.append)
            with pytest.raises(CancelledError):
                run(device, table, ("f64",), predicates)
        assert len(kept) == 1
        check(device, table, ("f64",), predicates)
