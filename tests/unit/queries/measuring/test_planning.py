"""`bamquery bench planning`: statements of each family are planned, and growth is told."""

import json
from pathlib import Path

import pytest

from bamquery.queries.measuring import planning
from bamquery.queries.measuring.planning import FAMILIES, Family, Measured, exponent, main, measure, table


def small(family: Family) -> Family:
    return Family(family.name, (2, 3), family.statement, family.parameters)


def test_every_family_can_be_planned(tmp_path: Path) -> None:
    found = measure([small(family) for family in FAMILIES], 1, tmp_path)
    assert [one.family.name for one in found] == [family.name for family in FAMILIES]
    assert all(list(one.bamquery) == list(one.duckdb) == [2, 3] for one in found)


def test_growth_is_between_the_two_largest_sizes() -> None:
    assert exponent({10: 9.0, 20: 1.0, 40: 4.0}) == pytest.approx(2)
    assert exponent({10: 1.0, 100: 10.0}) == pytest.approx(1)
    assert exponent({10: 1.0}) is None


def test_the_table_has_milliseconds_and_growth() -> None:
    family = Family("AND", (100, 1000), str)
    one = Measured(family, {100: 0.001, 1000: 0.01}, {100: 0.002, 1000: 0.2})
    alone = Measured(family, {100: 0.001})
    lines = table([one, alone]).splitlines()
    assert lines[2] == "| AND | 100 · 1,000 | 1.0 · 10.0 | 1.0 | 2.0 · 200.0 | 2.0 |"
    assert lines[3] == "| AND | 100 | 1.0 |  |  |  |"


def test_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planning, "FAMILIES", [small(FAMILIES[0]), small(FAMILIES[1])])
    files = ["--json", str(tmp_path / "x.json"), "--markdown", str(tmp_path / "x.md")]
    assert main(["--families", "AND", "--most", "2", "--repeat", "1", *files]) == 0
    record = json.loads((tmp_path / "x.json").read_text())
    assert [result["family"] for result in record["results"]] == ["AND"]
    assert list(record["results"][0]["bamquery_seconds"]) == ["2"]
    assert (tmp_path / "x.md").read_text() == capsys.readouterr().out


def test_a_family_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--families", "nothing"])
    assert "there is no family 'nothing'" in capsys.readouterr().err
