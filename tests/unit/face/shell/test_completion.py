"""What is offered where, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from bamquery.shell.completion.completer import ShellCompleter
from bamquery.shell.completion.names import CatalogSnapshot, Column, Names
from bamquery.shell.completion.ranking import Candidate, rank
from bamquery.shell.completion.scope import scope_at
from bamquery.shell.database_opening import Opening
from bamquery.shell.shell import Shell


@pytest.fixture(scope="module")
def opening(database: Path) -> Opening:
    opening = Opening(str(database), {})
    opening.connection()
    return opening


@pytest.fixture(scope="module")
def completer(opening: Opening) -> ShellCompleter:
    names = Names(lambda: opening)
    names.refresh()
    assert names.wait(60)
    return ShellCompleter(names)


def offered_candidates(completer: ShellCompleter, text: str, *, asked: bool = True) -> list[str]:
    """What is offered where ¦ stands, as it would be inserted."""
    before, _, after = text.partition("¦")
    document = Document(before + after, len(before))
    event = CompleteEvent(completion_requested=asked)
    return [completion.text for completion in completer.get_completions(document, event)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT trip_d¦ FROM trips", ["trip_distance"]),
        ("SELECT * FROM tri¦", ["trips"]),
        ("select * from tr¦ where", ["trips", "long_trips"]),
        ("SELECT * FROM zones JOIN ¦", ['"odd name"', "trips", "zones", "long_trips"]),
        ("SELECT t.¦ FROM trips AS t", ["trip_id", "trip_distance", "note"]),
        ("SELECT t.trip_i¦ FROM trips t JOIN zones z ON t.trip_id = z.zone_id", ["trip_id"]),
        ("SELECT z.¦ FROM trips t, zones z", ["zone_id", '"zone name"']),
        ("SELECT trips.n¦ FROM trips", ["note"]),
        ("SELECT far¦ FROM long_trips", ["far_id"]),
        ('SELECT "zone n¦ FROM zones', []),
        ('SELECT * FROM "odd¦', ['"odd name"']),
        ('SELECT sel¦ FROM "odd name"', ['"select"', "select"]),
        ("INSERT INTO zones (zone¦", ["zone_id", '"zone name"']),
        ("DESCRIBE zo¦", ["zones"]),
        ("OPTIMIZE trips CLUSTER BY (trip_d¦", ["trip_distance"]),
        ("FROM trips SELECT trip_d¦", ["trip_distance"]),
        ("SELECT 1; SELECT trip_d¦ FROM trips; SELECT 2", ["trip_distance"]),
        ("SELECT q.¦ FROM (SELECT trip_id AS ident, note FROM trips) q", ["ident", "note"]),
        ("WITH far AS (SELECT trip_id, note || 'x' AS noted FROM trips) SELECT not¦ FROM far", ["noted"]),
        ("WITH far AS (SELECT * FROM zones) SELECT zone_¦ FROM far", ["zone_id"]),
        ("WITH far AS (SELECT 1 AS x) SELECT * FROM fa¦", ["far"]),
        ("SELECT (SELECT zone_¦ FROM zones) FROM trips", ["zone_id"]),
        ("SELECT trip_i¦ FROM trips WHERE trip_id IN (SELECT zone_id FROM zones)", ["trip_id"]),
        ("SELECT zone_id FROM zones UNION SELECT trip_i¦ FROM trips", ["trip_id"]),
        ("SEL¦", ["SELECT"]),
        ("sel¦", ["select"]),
        ("cre¦", ["create view", "create table"]),
        ("SELECT rou¦ FROM trips", ["round(", "round_even("]),
        ("SELECT trip_id FROM trips WHER¦", ["WHERE"]),
        ("SET mem¦", ["memory_limit"]),
        ("SET device = ¦", ["'auto'", "'cpu'", "'cuda:0'"]),
        ("SELECT * FROM read_c¦", ["read_csv("]),
        (".tab¦", [".tables"]),
        ("\\ti¦", ["\\timing"]),
        (".mode j¦", ["json", "jsonl"]),
        (".tables tr¦", ["trips", "long_trips"]),
        (".describe zo¦", ["zones"]),
        (".help imp¦", ["import"]),
        (".help date_tr¦", ["date_trunc"]),
        (".explain SELECT trip_d¦ FROM trips", ["trip_distance"]),
        ("SELECT 1;\n.mod¦", [".mode"]),
    ],
)
def test_what_is_offered_first(completer: ShellCompleter, text: str, first: list[str]) -> None:
    assert offered_candidates(completer, text)[: len(first)] == first


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'trip_¦ FROM trips",
        "SELECT 1 -- trip_¦",
        "/* trip_¦",
        "SELECT 1 AS x FROM trips WHERE note = '¦",
        ".nonsense tri¦",
        "SELECT trip_distance¦ FROM trips",
    ],
)
def test_where_nothing_is_offered(completer: ShellCompleter, text: str) -> None:
    assert offered_candidates(completer, text) == []


def test_nothing_opens_by_itself_before_a_letter(completer: ShellCompleter) -> None:
    assert offered_candidates(completer, "SELECT ¦ FROM trips", asked=False) == []
    assert offered_candidates(completer, "SELECT ¦ FROM trips")[:3] == ["trip_id", "trip_distance", "note"]
    assert offered_candidates(completer, "SELECT t.¦ FROM trips t", asked=False)[0] == "trip_id"


def test_signatures_and_types_are_shown_beside(completer: ShellCompleter) -> None:
    def meta(text: str) -> str:
        document = Document(text)
        return next(iter(completer.get_completions(document, CompleteEvent()))).display_meta_text

    assert meta("SELECT round") == "round(x NUMERIC [, digits INTEGER]) -> NUMERIC"
    assert meta("FROM trips SELECT trip_i") == "BIGINT"
    assert meta("FROM tri") == "table"
    assert meta(".tim") == "time, bytes read and amplification below answers"


def test_files(completer: ShellCompleter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "it's.csv").write_text("a\n1\n")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / ".hidden.csv").write_text("")
    (tmp_path / "esc\x1b[2J.csv").write_text("")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trips.parquet").write_text("")
    assert offered_candidates(completer, "SELECT * FROM '¦") == ["it''s.csv", "data/", "notes.txt"]
    assert offered_candidates(completer, "SELECT * FROM 'data/¦") == ["data/trips.parquet"]
    assert offered_candidates(completer, "SELECT * FROM read_parquet('data/t¦") == ["data/trips.parquet"]
    assert offered_candidates(completer, "COPY trips TO 'da¦") == ["data/"]
    assert offered_candidates(completer, ".read da¦") == ["data/"]
    assert offered_candidates(completer, "SELECT * FROM 'no/such/¦") == []


def test_beginnings_come_before_parts_and_these_before_what_is_inside() -> None:
    names = ["pickup_date_time", "total_date", "date", "update_count", "days", "pdt"]
    assert [c.name for c in rank([Candidate(n, n) for n in names], "DATE")] == [
        "date",
        "total_date",
        "pickup_date_time",
        "update_count",
    ]
    assert [c.name for c in rank([Candidate(n, n) for n in names], "pdt")] == ["pdt", "pickup_date_time"]


def test_what_is_typed_need_not_be_right(completer: ShellCompleter) -> None:
    text = "WITH a AS (SELECT * FROM trips t JOIN (zones z, 'f') ON t.x = (z.y) UNION ALL FROM x) , ) SELECT"
    for place in range(len(text) + 1):
        offered_candidates(completer, f"{text[:place]}¦{text[place:]}")
        offered_candidates(completer, f"{text[:place]}¦")
        scope_at(text[:place], place)


class ManyNames(Names):
    """A thousand tables of a hundred columns, without a database."""

    def __init__(self, tables: Sequence[str]) -> None:
        super().__init__(lambda: Opening("", {}))
        columns = {
            table: [Column(f"column_{number}_of_{table}", "BIGINT") for number in range(100)]
            for table in tables
        }
        everywhere = {column.name: table for table, listed in columns.items() for column in listed}
        self._catalogue = CatalogSnapshot(dict.fromkeys(tables, "table"), columns, everywhere)
        self.read: list[str] = []

    def columns(self, table: str) -> Sequence[Column]:
        self.read.append(table)
        return super().columns(table)


def test_many_tables() -> None:
    names = ManyNames([f"table_{number:04}" for number in range(1000)])
    completer = ShellCompleter(names)
    assert offered_candidates(completer, "SELECT column_7¦ FROM table_0500")[0] == "column_7_of_table_0500"
    assert names.read == ["table_0500"], "columns of other tables are not looked at"
    assert offered_candidates(completer, "SELECT column_99_of_table_0999¦", asked=False) == []
    assert offered_candidates(completer, "SELECT column_99_of_table_099¦")[:1] == ["column_99_of_table_0990"]


def test_names_follow_what_statements_do(tmp_path: Path) -> None:
    opening = Opening(str(tmp_path / "db"), {})
    connection = opening.connection()
    names = Names(lambda: opening)
    completer = ShellCompleter(names)
    assert offered_candidates(completer, "SELECT * FROM fre¦") == []
    connection.sql("CREATE TABLE fresh AS SELECT 1 AS first_column")
    names.refresh()
    assert names.wait(60)
    assert offered_candidates(completer, "SELECT * FROM fre¦") == ["fresh"]
    assert offered_candidates(completer, "SELECT fir¦ FROM fresh")[0] == "first_column"
    connection.sql("CREATE OR REPLACE TABLE fresh AS SELECT 1 AS second_column")
    names.refresh()
    assert names.wait(60)
    assert offered_candidates(completer, "SELECT sec¦ FROM fresh")[0] == "second_column"
    opening.close()
    names.refresh()  # of a connection that has gone
    assert names.wait(60)
    assert offered_candidates(completer, "SELECT * FROM fre¦") == ["fresh"]


def test_without_a_database_words_are_known() -> None:
    completer = ShellCompleter(Names(lambda: Opening("", {})))
    assert offered_candidates(completer, "SELECT * FR¦")[0] == "FROM"
    assert offered_candidates(completer, "SELECT abs¦")[0] == "abs("


def test_a_shell_without_tables(shell: Shell) -> None:
    completer = ShellCompleter(Names(lambda: shell.opening), shell)
    assert offered_candidates(completer, "SELECT * FROM tri¦") == []
