"""Names in code are words of `docs/glossary.md`, not those before it, nor ones that say nothing alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import REPOSITORY
from tests.docs.prose import tracked

REPLACED = {
    "late_filter": "dynamic filter",
    "hand_down": "dynamic filter",
    "lone_rows": "unmatched rows",
    "seen_rows": "distinct set",
    "read_first": "probe-first",
    "row_marks": "mark join",
    "near_rows": "lookback",
    "following_rows": "lookahead",
    "top_rows": "top-n",
    "step_rows": "recursive table",
    "roll_up": "rollup",
    "concatenate_parts": "state columns",
}
"""Words of before, each with what the field says."""
BARE = (
    "about after at before behind below beside by for from in into of on to under until up with within "
    "without asked found given gone held joined kept known made met seen taken told wanted"
)
"""Prepositions and participles, which name no function."""

_REPLACED = re.compile(rf"(?<![^\W_])({'|'.join(REPLACED)})(?![^\W_])")
_BARE = re.compile(rf"^ *(?:async )?def (_*(?:{BARE.replace(' ', '|')})_*)\(", re.MULTILINE)


def modules() -> list[str]:
    rooms = ("bamquery/", "driver/", "engine/", "storage/", "queries/")
    return sorted(path for path in tracked() if path.startswith(rooms) and path.endswith((".py", ".pyi")))


def replaced(text: str) -> list[str]:
    """What holds one of the words, as a word."""
    return [f"{found[1]} (say {REPLACED[found[1]]})" for found in _REPLACED.finditer(text)]


def bare(text: str) -> list[str]:
    """Functions that are a preposition or a participle and nothing else."""
    return [found[1] for found in _BARE.finditer(text)]


@pytest.mark.parametrize("find", [replaced, bare])
def test_names_are_words_of_the_glossary(find: object) -> None:
    assert callable(find)
    wrong = {path: found for path in modules() if (found := find((REPOSITORY / path).read_text("utf-8")))}
    assert not wrong, "\n".join(f"{path}: {where}" for path, found in wrong.items() for where in found)


def test_words_that_are_replaced_are_found() -> None:
    assert replaced("top_rows = 1\nstop_rowset = _top_rows_of") == ["top_rows (say top-n)"] * 2
    assert bare("def of(): ...\ndef parts_of(): ...\nclass A:\n    def _found(self): ...") == ["of", "_found"]


def test_what_the_field_says_is_in_the_glossary() -> None:
    page = Path(REPOSITORY / "docs/glossary.md").read_text("utf-8").lower()
    assert {word for word in REPLACED.values() if word.removesuffix("s") not in page} == set()
