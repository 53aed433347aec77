"""Functions of one long text, or of many values, ask on the way whether the query goes on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bamquery.engine.cpu.expressions.function_registry import FUNCTIONS
from bamquery.errors import CancelledError
from bamquery.statement_context.cancellation import use_cancellation_check

_LONG = "abcdefghij" * 40_000
_TEXT: Any = pa.large_string()


def _questions(name: str, arguments: list[Any], kind: Any) -> int:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1

    with use_cancellation_check(check):
        FUNCTIONS[name](arguments, kind)
    return asked


@pytest.mark.parametrize(
    ("name", "others", "kind"),
    [
        ("hex", [], _TEXT),
        ("bin", [], _TEXT),
        ("md5", [], _TEXT),
        ("regexp_escape", [], _TEXT),
        ("url_encode", [], _TEXT),
        ("url_decode", [], _TEXT),
        ("strip_accents", [], _TEXT),
        ("nfc_normalize", [], _TEXT),
        ("translate", ["abc", "x"], _TEXT),
        ("split_part", ["a", 30_000], _TEXT),
        ("jaccard", [_LONG], pa.float64()),
        ("jaro_similarity", [_LONG], pa.float64()),
        ("levenshtein", [_LONG[:1000][::-1]], pa.int64()),
        ("damerau_levenshtein", [_LONG[:6000][::-1]], pa.int64()),
    ],
)
def test_a_long_text_is_worked_on_in_pieces(name: str, others: list[Any], kind: Any) -> None:
    text = _LONG[:6000] if name == "damerau_levenshtein" else _LONG
    constants = [pa.scalar(other, _TEXT if isinstance(other, str) else pa.int64()) for other in others]
    assert _questions(name, [pa.array([text], _TEXT), *constants], kind) >= 5


@pytest.mark.parametrize("name", ["md5", "url_encode", "unicode"])
def test_many_values_are_worked_on_in_pieces(name: str) -> None:
    kind: Any = pa.int32() if name == "unicode" else _TEXT
    assert _questions(name, [pa.array([str(i) for i in range(10_000)], _TEXT)], kind) >= 9


def test_a_cancelled_query_does_not_wait_for_a_distance() -> None:
    def check() -> None:
        raise CancelledError("the query was cancelled")

    text: Any = pa.array([_LONG], _TEXT)
    for name in ("levenshtein", "damerau_levenshtein", "jaro_similarity"):
        with use_cancellation_check(check), pytest.raises(CancelledError):
            FUNCTIONS[name]([text, pa.scalar(_LONG[::-1], _TEXT)], pa.int64())
