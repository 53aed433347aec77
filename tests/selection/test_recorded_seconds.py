"""What targets of the Makefile take: nothing twice, nothing never."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.selection import recorded_seconds
from tests.selection.choice import CHOICES, choose
from tests.selection.recorded_seconds import (
    ALWAYS,
    CASES_S,
    FAST_S,
    LONG_S,
    MOST_S,
    RECORD,
    WHOLE,
    split_cases,
    split_tests,
)

ROOT = Path(__file__).parents[2]


def _record(monkeypatch: pytest.MonkeyPatch, folder: Path, **seconds: float) -> None:
    path = folder / "record.json"
    path.write_text(json.dumps({f"a.py::{name}": value for name, value in seconds.items()}))
    monkeypatch.setattr(recorded_seconds, "RECORD", path)


class Item:
    """What is asked of one of pytest's."""

    def __init__(self, name: str, **indices: int) -> None:
        self.nodeid = f"tests/a.py::{name}"
        if indices:
            self.callspec = SimpleNamespace(indices=indices)

    def get_closest_marker(self, name: str) -> str | None:
        marks = {WHOLE: "every", ALWAYS: "always"}
        return name if marks[name] in self.nodeid else None


def test_each_test_is_on_one_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _record(monkeypatch, tmp_path, slow=MOST_S, some=MOST_S / 2, little=FAST_S)
    items: Any = [Item(name) for name in ("slow[1]", "new", "some", "slow[2]", "little[x]")]
    for seconds, longer in ((MOST_S, [0, 3]), (FAST_S, [0, 2, 3, 4])):
        taken, left = split_tests(items, seconds)
        assert left == [items[i] for i in longer]
        assert taken == [item for item in items if item not in left]


def test_what_is_always_taken_is_taken_with_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _record(monkeypatch, tmp_path, slow=MOST_S, always=9 * MOST_S)
    items: Any = [Item(name) for name in ("slow", "always[1]", "always[2]")]
    taken = {choice: choose(items, choice)[0] for choice in CHOICES}
    assert taken == {"fast": [], "most": items[1:], "rest": items[:1], "beyond": []}


def test_each_test_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _record(
        monkeypatch,
        tmp_path,
        one=3 * CASES_S,
        many=CASES_S / 4,
        every=CASES_S,
        alone=CASES_S,
        short=MOST_S / 2,
    )
    names = [
        *(f"one[{i}]" for i in range(3)),
        *(f"many[{i}]" for i in range(9)),
        "every[1]",
        "every[2]",
        "alone",
        "short[1]",
        "new",
    ]
    items: Any = [Item(name, **({"at": i} if "[" in name else {})) for i, name in enumerate(names)]
    counts = {}
    for choice in CHOICES:
        taken, left = choose(items, choice)
        assert sorted(map(items.index, taken)) == list(map(items.index, taken))
        assert {*taken, *left} == {*items}
        assert len(taken) + len(left) == len(items)
        counts[choice] = [item.nodeid.partition("::")[2].partition("[")[0] for item in taken]
    assert counts["most"] == ["short", "new"]
    assert counts["rest"] == ["one", *["many"] * 4, "every", "every", "alone"]
    assert counts["beyond"] == [*["one"] * 2, *["many"] * 5]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 20])
def test_cases_are_spread(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _record(monkeypatch, tmp_path, pairs=CASES_S / count, line=CASES_S / count)
    pairs: Any = [Item(f"pairs[{a}-{b}]", a=a, b=b) for a, b in product(range(5), range(4))]
    taken: Sequence[Any] = split_cases(pairs)[0]
    assert len(taken) == count
    for name, values in (("a", 5), ("b", 4)):
        assert len({item.callspec.indices[name] for item in taken}) == min(count, values)
    line: Any = [Item(f"line[{i}]", at=i) for i in range(100)]
    at = [item.callspec.indices["at"] for item in split_cases(line)[0]]
    assert max(b - a for a, b in zip([0, *at], [*at, 100], strict=True)) <= 200 / count


def test_a_target_runs_each_choice() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert set(re.findall(r"--take (\w+)", makefile)) == set(CHOICES)


def test_the_record() -> None:
    record = json.loads(RECORD.read_text())
    assert min(record.values()) >= LONG_S
    assert FAST_S >= LONG_S
    tests = ROOT / "tests"
    gone = {file for file in (name.partition("::")[0] for name in record) if not (tests / file).exists()}
    assert gone == set()
