"""Each rule's file of plans before and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bamquery.plan.format import format_plan
from bamquery.plan.optimizer import RULES, Rule, optimize
from tests.golden.cases import FOLDER, GoldenFile
from tests.plans import plan_of

BY_NAME = {rule.__name__: rule for rule in RULES}
FILES = sorted((FOLDER / "rules").glob("*.txt"))


def test_every_rule_has_a_file() -> None:
    assert {path.stem for path in FILES} == {*BY_NAME, "optimize"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rule(path: Path) -> None:
    golden = GoldenFile(path)
    rule: Rule = optimize if path.stem == "optimize" else BY_NAME[path.stem]
    first = [
        BY_NAME[name]
        for line in golden.header.splitlines()
        if line.startswith("-- after: ")
        for name in line.removeprefix("-- after: ").split(", ")
    ]

    def answer(sql: str) -> str:
        plan = plan_of(sql)
        for earlier in first:
            plan = earlier(plan)
        return f"{format_plan(plan, exact=True)}\n->\n{format_plan(rule(plan), exact=True)}"

    golden.check(answer)
