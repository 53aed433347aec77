"""EXPLAIN says what is expected, EXPLAIN ANALYZE what was measured, in columns that line up."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from bamquery.engine.explain.text_tree import align_columns, explain_plan, explain_profile
from bamquery.engine.profiling.operator_profile import OperatorProfile
from bamquery.engine.profiling.query_profile import QueryProfile
from bamquery.engine.profiling.scan_profile import FileScanProfile
from bamquery.plan.expressions import Call, ColumnRef, Literal
from tests.stored import numbers, run_scan, scan_of, stored


def rare(table: pa.Table) -> Call:
    index = table.schema.get_field_index("rare")
    return Call(
        "equal", (ColumnRef(index, "rare", pa.int16()), Literal(pa.scalar(1, pa.int16()))), pa.bool_()
    )


def test_plan(tmp_path: Path) -> None:
    table = numbers(50_000)
    with stored(tmp_path / "db", table, [20_000]) as snapshot:
        text = explain_plan(scan_of(snapshot, ("noise", "text"), [rare(table)]), "cpu", ["a note"])
        forced = explain_plan(scan_of(snapshot, ("noise",), [rare(table)], strategy="vectors"), "cpu")
    lines = text.splitlines()
    assert lines[:3] == ["device cpu", "note: a note", "Scan t (version 2)"]
    assert lines[3].strip() == "filter: (rare = 1)"
    assert lines[4].strip() == "mapped reads of 512 B blocks, zone maps on, checksums verified: yes"
    header, *rows = [line.split() for line in lines[6:]]
    assert header[0] == "column"
    assert [row[0] for row in rows] == ["rare", "noise", "text"]
    assert rows[0][1:3] == ["filter", "stream"]
    assert rows[0][3:9] == ["plain", "16", "97.7", "KiB", "97.7", "KiB"]
    pruned, total = int(rows[0][9]), int(rows[0][10])
    assert total == 20 + 30
    assert 0 < pruned < total
    assert "strategy asked for: vectors" in forced
    assert forced.splitlines()[-1].split()[:3] == ["noise", "output", "vectors"]


def test_how_columns_are_stored(tmp_path: Path) -> None:
    """Before and after: encoding, bits a value, bytes stored and decoded, of plain and packed fragments."""
    table = numbers(50_000)
    with stored(tmp_path / "db", table, [20_000], encoding="auto") as snapshot:
        plan = explain_plan(scan_of(snapshot, ("noise", "word"), [rare(table)]), "cpu")
        _, scan = run_scan(snapshot, ("noise", "word"), [rare(table)])
        position, noise, word = (snapshot.fragments[0].layout.columns[i] for i in (0, 1, 5))
        assert (position.encoding is None, noise.encoding is None, word.encoding is None) == (
            False,
            True,
            False,
        )
    for text in (plan, explain_profile(QueryProfile("cpu", scan))):
        lines = text.splitlines()
        header = next(number for number, line in enumerate(lines) if line.split()[:1] == ["column"])
        assert lines[header].split()[3:7] == ["encoding", "bits", "stored", "decoded"]
        rows = {line.split()[0]: line.split()[3:9] for line in lines[header + 1 : header + 4]}
        assert rows["noise"] == ["plain", "64", "390.6", "KiB", "390.6", "KiB"]
        assert (rows["rare"][0], rows["word"][0]) == ("packed", "dictionary")
        assert 0.1 < float(rows["rare"][1]) < 2
        assert 2.1 < float(rows["word"][1]) < 2.3
        assert rows["rare"][4:6] == ["97.7", "KiB"]
    columns = {column["name"]: column for column in scan.to_dict()["columns"]}
    assert columns["word"]["encodings"] == {"dictionary": 2}
    assert columns["rare"]["bytes_decoded"] == 100_000
    assert columns["rare"]["bits"] == columns["rare"]["bytes_stored"] * 8 / 50_000
    assert "<td>dictionary</td>" in QueryProfile("cpu", scan)._repr_html_()


def test_what_is_expected_comes_near_what_happens(tmp_path: Path) -> None:
    table = numbers(200_000)
    with stored(tmp_path / "db", table) as snapshot:
        for strategy in ("stream", "vectors", "blocks"):
            scan = scan_of(snapshot, ("noise",), [rare(table)], strategy=strategy)
            forecast = scan.forecast()
            found, profile = run_scan(snapshot, ("noise",), [rare(table)], strategy=strategy)
            assert 0.5 < forecast.rows / found.num_rows < 2
            for name, column in profile.columns.items():
                assert 0.5 < forecast.columns[name].bytes / column.counters.bytes < 2, (strategy, name)


def test_an_empty_table(tmp_path: Path) -> None:
    table = numbers(0)
    with stored(tmp_path / "db", table) as snapshot:
        assert "0 rows of 0 rows" in explain_plan(scan_of(snapshot, ("noise",), [rare(table)]), "cpu")
        _, profile = run_scan(snapshot, ("noise",), [rare(table)])
    assert "scanned 0 of 0 rows" in explain_profile(QueryProfile("cpu", profile))


def test_profile(tmp_path: Path) -> None:
    table = numbers(50_000)
    with stored(tmp_path / "db", table) as snapshot:
        found, scan = run_scan(snapshot, ("noise", "text"), [rare(table)], strategy="blocks")
    scan.seconds = 0.0125
    scan.rows = found.num_rows
    keys = {"keys": ["a", "b"], "peak_memory": 1536, "nothing": [], "none": 0}
    root = OperatorProfile("Aggregate", keys, rows=1, seconds=0.00025, children=(scan,))
    profile = QueryProfile("cpu", root, seconds=2.5, notes=["one", "two"], peak_memory=1536)
    lines = explain_profile(profile).splitlines()
    assert lines[0] == "device cpu, 2.50 s, 1 row, operators held 1.5 KiB"
    assert lines[1].startswith("I/O (mapped): needed ")
    assert f"amplification {profile.io.amplification:.2f}" in lines[1]
    assert lines[2:6] == [
        "note: one",
        "note: two",
        "Aggregate  (1 row, 250 µs)",
        "│    keys: a, b",
    ]
    assert lines[6] == "│    peak memory: 1.5 KiB"
    assert lines[7] == f"└─ Scan t (version 1)  ({found.num_rows} rows, 12.5 ms)"
    assert lines[9].strip().endswith("checksums verified: partly, strategy asked for: blocks")
    assert lines[10].strip().startswith("volume (")
    assert lines[11].strip() == "scanned 50,000 of 50,000 rows"
    assert [line.split()[0] for line in lines[12:]] == ["column", "rare", "noise", "text"]


def test_files_are_said_not_to_be_counted() -> None:
    scan = FileScanProfile("File scan", source="a.parquet", rows=3)
    lines = explain_profile(QueryProfile("cpu", scan)).splitlines()
    assert lines[1:] == ["I/O of files is not counted: a.parquet", "File scan a.parquet  (3 rows, 0 µs)"]


def test_several_children_are_told_apart() -> None:
    leaf = OperatorProfile("Leaf", {"of": "one"})
    inner = OperatorProfile("Inner", children=(leaf,))
    root = OperatorProfile("Root", children=(inner, OperatorProfile("Last")))
    assert explain_profile(QueryProfile("cpu", root)).splitlines()[1:] == [
        "Root  (0 rows, 0 µs)",
        "├─ Inner  (0 rows, 0 µs)",
        "│  └─ Leaf  (0 rows, 0 µs)",
        "│          of: one",
        "└─ Last  (0 rows, 0 µs)",
    ]


def test_columns_line_up() -> None:
    assert align_columns(("name", "n"), [("a", "1,000"), ("longer", "5")], left=1) == [
        "name        n",
        "a       1,000",
        "longer      5",
    ]
