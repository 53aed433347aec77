from random import Random

import pytest

from tests.selection.effort import effort
from tests.sql.randomized.files.compare import Comparison
from tests.sql.randomized.files.strings import csv_file


@pytest.fixture
def comparison(tmp_path):
    comparison = Comparison(tmp_path)
    yield comparison
    comparison.close()


@pytest.mark.long
def test_what_files_are_taken_for(comparison):
    """Names, types and values are DuckDB's, but for the differences that docs/sql.md lists."""
    for seed in range(1, effort(60, 1000)):
        found = comparison.compare(seed)
        assert found is None or found.reason, f"seed {seed}\n{found.file.text}\n{found.theirs}\n{found.ours}"


def test_a_planted_fault_is_found(comparison, monkeypatch):
    """Were days never first, it would show."""
    from bamquery.storage.ingest.csv import candidates as csv_readings
    from bamquery.storage.ingest.csv import type_inference as csv_types

    others = tuple(one for one in csv_readings.READINGS if not one.name.startswith("%d"))
    monkeypatch.setattr(csv_types, "READINGS", others)
    found = (comparison.compare(seed) for seed in range(1, 161))
    assert any(one is not None and not one.reason for one in found)


def test_files_are_the_same_for_a_seed():
    assert csv_file(Random(7)) == csv_file(Random(7))
    assert {csv_file(Random(seed)).has_header for seed in range(20)} == {True, False}
