"""`bamquery bench packed-scan` on an emulated GPU."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bamquery.queries.measuring.packed_scan import main
from tests.unit.engine.cuda_scan.emulator import Emulator
from tests.unit.engine.cuda_scan.fake_gpu import FakeGpu


class Opened(FakeGpu):
    name = "emulated"

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_both_filters_agree(emulator: Emulator, capsys: pytest.CaptureFixture[str]) -> None:
    def open_gpu(ordinal: int) -> Any:
        return Opened(emulator)

    assert main(["--rows", "5000", "--bits", "3", "13", "--repeat", "1", "--share", "0.1"], open_gpu) == 0
    assert "| 13 | filter by codes |" in capsys.readouterr().out
    assert main(["--rows", "1024", "--bits", "40", "--repeat", "1", "--json"], open_gpu) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kernels"][0]["name"] == "filter by codes"
