"""Extreme values: what the generator of casts and calls draws from."""

from __future__ import annotations

import random

import pytest

from tests.sql.random_casts.compare import Pair, same
from tests.sql.random_casts.extremes import TYPES, column, drawn, extremes
from tests.values import plain


@pytest.mark.parametrize("name", TYPES)
def test_a_value_is_the_same_as_text_and_as_scalar(name: str) -> None:
    choose = random.Random(name)
    values = [*extremes(name), *(drawn(choose, name) for _ in range(50))]
    scalars = column(name, values)
    assert scalars.type == TYPES[name]
    with Pair() as pair:
        table = "spans" if name == "INTERVAL" else "t"
        pair.load(table, {"x": (name, scalars)})
        assert pair.differences(f"SELECT x FROM {table}") == []
        texts = [value for value in values if "\0" not in value.sql]
        answer = pair.their_answer("SELECT " + ", ".join(value.sql for value in texts))
        for value, written in zip(texts, answer.columns, strict=True):
            assert same(plain(written)[0], plain(column(name, [value]))[0]), value
