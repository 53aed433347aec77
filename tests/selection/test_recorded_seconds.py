"""What `make test-fast`, `make test` and `make test-rest` take: nothing twice, nothing never."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.selection import recorded_seconds
from tests.selection.recorded_seconds import FAST_S, LONG_S, MOST_S, RECORD, split_tests


def test_each_test_is_on_one_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"a.py::slow": MOST_S, "a.py::some": MOST_S / 2, "a.py::little": FAST_S}))
    monkeypatch.setattr(recorded_seconds, "RECORD", record)
    names = ["a.py::slow[1]", "a.py::new", "a.py::some", "a.py::slow[2]", "a.py::little[x]"]
    items: Any = [SimpleNamespace(nodeid=f"tests/{name}") for name in names]
    for seconds, longer in ((MOST_S, [0, 3]), (FAST_S, [0, 2, 3, 4])):
        taken, left = split_tests(items, seconds)
        assert left == [items[i] for i in longer]
        assert taken == [item for item in items if item not in left]


def test_the_record() -> None:
    record = json.loads(RECORD.read_text())
    assert min(record.values()) >= LONG_S
    assert FAST_S >= LONG_S
    tests = Path(__file__).parents[1]
    gone = {file for file in (name.partition("::")[0] for name in record) if not (tests / file).exists()}
    assert gone == set()
