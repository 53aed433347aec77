"""Many small CSV files: looked at together they are what they are one by one."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from bamquery.errors import IngestError
from bamquery.storage.ingest import opening
from bamquery.storage.ingest.csv import parser as csv_parse
from bamquery.storage.ingest.csv import same_header as csv_alike
from bamquery.storage.ingest.csv import type_inference as csv_types
from bamquery.storage.ingest.opening import open_source
from tests.selection.effort import spread

VALUES = {
    "whole": ["1", "-20", "", "9007199254740993"],
    "number": ["1", "2.5", "", "1e3"],
    "day": ["2024-01-31", "", "1999-12-31"],
    "moment": ["2024-01-31 10:11:12", "2024-01-31 10:11:12.5"],
    "truth": ["true", "false", ""],
    "text": ["a", "", "12x", '"quoted, text"', "é"],
    "nothing": ["", ""],
    "clock": ["10:11:12", "23:59:59"],
}


def write(folder: Path, seed: int) -> list[str]:
    """Files of two columns, most of them with values of the same kinds."""
    draw = random.Random(seed)
    kinds = draw.choices(list(VALUES), k=2)
    paths = []
    for number in range(40):
        own = kinds if draw.random() < 0.9 else [draw.choice(list(VALUES)), kinds[1]]
        # A last column of numbers tells that the first line is a header, whatever the others are.
        rows = [
            ",".join([*(draw.choice(VALUES[kind]) for kind in own), str(row)])
            for row in range(draw.randrange(5))
        ]
        ended = "\n".join(["a,b,c", *rows]) + draw.choice(["", "\n"])
        paths.append(folder / f"{number}.csv")
        paths[-1].write_text(ended)
    return [str(path) for path in paths]


def outcome(paths: list[str]) -> object:
    try:
        source = open_source(paths)
        return source.schema, [row for batch in source.batches() for row in batch.to_pylist()]
    except IngestError as error:
        return "No type holds both" if "No type holds both" in str(error) else str(error)


@pytest.mark.long
@pytest.mark.parametrize("seed", spread(range(25), 4))
def test_they_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    paths = write(tmp_path, seed)
    together = outcome(paths)
    monkeypatch.setattr(opening, "_MANY", 1000)
    assert together == outcome(paths)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", "has 3 fields where the others have 2"),
        ('a,b\n1,"2\n', "a quote is not closed"),
        ("a,b\n1,é\n".encode("latin1"), "is not UTF-8"),
        ("", "is an empty file"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    for number in range(60):
        (tmp_path / f"{number}.csv").write_text(f"a,b\n{number},x\n")
    bad = tmp_path / "40.csv"
    bad.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(IngestError, match=message) as caught:
        open_source(str(tmp_path / "*.csv"))
    assert str(bad) in str(caught.value)


def test_they_are_parsed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = 0
    parse = csv_parse.parse

    def counted(*arguments: object) -> object:
        nonlocal parsed
        parsed += 1
        return parse(*arguments)

    monkeypatch.setattr(csv_types, "parse", counted)
    for number in range(500):
        (tmp_path / f"{number}.csv").write_text(f"a,b\n{number},x\n")
    assert open_source(str(tmp_path / "*.csv")).file_count == 500
    assert parsed < 40


def test_groups_follow_what_they_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[Path] = Counter()
    content = csv_alike._content

    def counted(path: Path, *others: object) -> object:
        reads[path] += 1
        return content(path, *others)

    monkeypatch.setattr(csv_alike, "_content", counted)
    for number in range(200):
        (tmp_path / f"{number}.csv").write_text(f"a,b\n{'x' if number % 2 else 1},{number}\n")
    source = open_source(str(tmp_path / "*.csv"))
    assert [str(field.type) for field in source.schema] == ["large_string", "int64"]
    assert reads.total() < 20 * 200
