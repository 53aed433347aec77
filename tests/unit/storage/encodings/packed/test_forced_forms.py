"""What forces forms for other tests: they are taken, and every value of every type comes back in each."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import bamquery
from bamquery.engine.settings import Settings
from bamquery.storage.fragments.column_storage import column_storage, vector_forms
from bamquery.storage.tables.open_fragment import fragment_batches
from tests.forced_forms import FORMS, forced_form
from tests.unit.storage.random_columns import Sample, assert_same, samples, written

ROWS = 5000


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(sample=samples())
def test_every_value_comes_back(form: str, sample: Sample) -> None:
    if not sample.whole.num_rows:
        return
    with forced_form(form), written(sample.batches, encoding="packed") as fragment:
        assert fragment.check() == []
        schema = sample.whole.schema
        found = pa.Table.from_batches(list(fragment_batches(fragment, schema)), schema)
        for name, expected in zip(schema.names, sample.whole.columns, strict=True):
            assert_same(found[name].unify_dictionaries().combine_chunks(), expected)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("integer", {"i": "integer", "f": "decimal", "g": "float32", "c": "constant"}),
        ("unscaled", {"i": "integer", "f": "decimal", "g": "float32", "c": "constant"}),
        ("decimal", {"i": "integer", "f": "decimal", "g": "decimal", "c": "constant"}),
        ("float32", {"i": "integer", "f": "float32", "g": "float32", "c": "constant"}),
        ("escapes", {"i": "integer", "f": "decimal", "g": "decimal", "c": "constant"}),
        ("raw", {"i": "raw", "f": "raw", "g": "raw", "c": "raw"}),
    ],
)
def test_forms_are_taken(form: str, expected: dict[str, str]) -> None:
    random = np.random.default_rng(0)
    batch = pa.record_batch(
        {
            "i": pa.array(random.integers(0, 900, ROWS) * 10, mask=random.random(ROWS) < 0.1),
            "f": pa.array(random.integers(0, 900, ROWS) / 100),
            "g": pa.array(random.integers(0, 90, ROWS).astype(np.float64) * 2.0**-100),
            "c": pa.array(np.full(ROWS, 5)),
        }
    )
    with forced_form(form), written([batch], encoding="packed") as fragment:
        found = {name: vector_forms(fragment, name) for name in batch.schema.names}
        parameters = {name: fragment.column(name).parameters for name in batch.schema.names}
    if form == "escapes":
        assert all((parameters[name]["escapes_nulls"] & 0x3FFF > 50).all() for name in "if")
    if form == "decimal":  # 2^-100 is none, and therefore escapes
        assert (parameters["g"]["escapes_nulls"] & 0x3FFF > 50).all()
    if form == "unscaled":
        assert set((parameters["i"]["exponent_form"] >> 5).tolist()) == {4}
    assert found == {name: Counter({kind: 5}) for name, kind in expected.items()}


def test_strings_are_compressed_however_few_they_are() -> None:
    batch = pa.record_batch({"few": pa.array([f"value {row % 9}" for row in range(ROWS)], pa.large_string())})
    for form, encoding in (("packed", "dictionary"), ("fsst", "fsst")):
        with forced_form(form), written([batch], encoding="packed") as fragment:
            assert column_storage(fragment, "few").encoding == encoding


def test_sql_makes_such_tables_within_and_no_longer_without() -> None:
    before = Settings().default_encoding
    with forced_form("raw"):
        assert Settings().default_encoding == "auto"
        with bamquery.connect() as con:
            con.sql("CREATE TABLE t AS SELECT range % 7 AS i FROM range(3000)")
            assert con.sql("SELECT count(*), sum(i) FROM t WHERE i > 3").fetchall() == [(1284, 6420)]
            with con._session.database.table("t").snapshot() as snapshot:
                assert vector_forms(snapshot.fragments[0], "i") == {"raw": 3}
    assert Settings().default_encoding == before
