"""Decimals of 17 and 18 digits: packed however far they are apart."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bamquery
from bamquery.storage.fragments.rows import FragmentRows
from tests.unit.storage.random_columns import assert_same, written

MOST = 10**18 - 1


def decimals(numbers: Any, mask: Any = None, digits: int = 18) -> Any:
    words = np.empty((len(numbers), 2), np.int64)
    words[:, 0] = numbers
    words[:, 1] = words[:, 0] >> 63
    made = pa.Array.from_buffers(pa.decimal128(digits, 2), len(numbers), [None, pa.py_buffer(words)])
    return made if mask is None else pa.array(made.to_pylist(), made.type, mask=mask)


CASES = {
    "all different": lambda random: decimals(random.integers(-MOST, MOST, 3000)),
    "with nulls": lambda random: decimals(random.integers(-MOST, MOST, 3000), random.random(3000) < 0.3),
    "one row": lambda random: decimals([MOST]),
    "both ends": lambda random: decimals(random.choice([-MOST, MOST], 3000)),
    "one outlier": lambda random: decimals([*random.integers(0, 100, 1023), MOST]),
    "near each other": lambda random: decimals(MOST - random.integers(0, 1000, 3000)),
    "17 digits": lambda random: decimals(random.integers(-MOST // 10, MOST // 10, 2048), digits=17),
}


@pytest.mark.parametrize("name", CASES)
def test_values_come_back(name: str) -> None:
    column = CASES[name](np.random.default_rng(17))
    batch = pa.record_batch([column], names=["d"])
    with written([batch], encoding="packed") as fragment:
        layout = fragment.layout.columns[0]
        assert layout.encoding is not None
        assert layout.values.length * 8 <= max(80 * len(column), 8 * 400)
        found = pa.concat_arrays(FragmentRows(fragment).column(0))
    assert_same(found, column)


def test_conditions_find_the_same_rows() -> None:
    random = np.random.default_rng(18)
    numbers = np.concatenate([random.integers(-MOST, MOST, 4000), random.choice([-MOST, 0, 1, MOST], 1000)])
    table = pa.table({"d": decimals(numbers), "n": numbers})
    with tempfile.TemporaryDirectory() as folder, bamquery.connect(Path(folder) / "db", device="cpu") as con:
        con.load("t", table)
        for bound in (-MOST, -1, 0, 1, MOST, int(numbers[7])):
            literal = f"CAST('{Decimal(bound).scaleb(-2):f}' AS DECIMAL(18, 2))"
            for sign, keep in {
                "=": numbers == bound,
                "<": numbers < bound,
                ">=": numbers >= bound,
                "<>": numbers != bound,
            }.items():
                query = f"SELECT count(*), coalesce(sum(n), 0) FROM t WHERE d {sign} {literal}"
                assert con.sql(query).fetchall() == [(keep.sum(), sum(numbers[keep].tolist()))]
