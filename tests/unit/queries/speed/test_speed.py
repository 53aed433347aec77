"""The benchmark of queries against others: its suites, who is asked what, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from bamquery.errors import BamQueryError, CatalogError
from bamquery.queries.speed.comparing import EXACT, Comparison
from bamquery.queries.speed.constants.substitutions import Constants
from bamquery.queries.speed.floors import Floor, Rates
from bamquery.queries.speed.measure import SystemTiming, Timing, geometric_mean, measure
from bamquery.queries.speed.picture import draw
from bamquery.queries.speed.report import LineUp, complaints, json_of, line_of, summary, table_of
from bamquery.queries.speed.suites import SUITES, SpeedQuery, chosen_queries, suite_queries
from bamquery.queries.speed.systems.opening import Settings, own_systems
from bamquery.queries.speed.systems.system import Asked, RefusedError, Run

ONE, TWO, THREE = (SpeedQuery("tpch", name, f"SELECT {name}") for name in ("01", "02", "03"))
LINE_UP = LineUp(("BamQuery",), ("DuckDB", "polars"))


def test_suites() -> None:
    assert {suite: len(suite_queries(suite)) for suite in SUITES} == {"tpch": 22, "taxi": 5, "analyst": 20}
    assert [query.name[:2] for query in suite_queries("tpch")] == [f"{n:02}" for n in range(1, 23)]
    assert all(query.sql.startswith("-- ") for query in suite_queries("tpch"))


def test_chosen_queries() -> None:
    assert [q.name for q in chosen_queries(SUITES, ("tpch/06", "q1"))] == ["06_revenue_change", "q1"]
    with pytest.raises(CatalogError, match='no query "tpch/23"'):
        chosen_queries(SUITES, ("tpch/23",))
    with pytest.raises(CatalogError, match="tpch"):
        chosen_queries(("tpcs",), ())


class Fake:
    """A system that answers by a function of the text."""

    version = data = queries = ""
    comparison: Comparison = EXACT

    def __init__(self, name: str, answer: Callable[[str], int], log: list[str]) -> None:
        self.name = name
        self._answer = answer
        self._log = log

    def warm(self, questions: list[Asked]) -> None:
        self._log.append(f"{self.name} warm {len(questions)}")

    def prepare(self, asked: Asked) -> Run:
        self._log.append(f"{self.name} {asked.sql}")
        return lambda: pa.table({"a": [self._answer(asked.sql)]})

    def floor(self) -> Floor | None:
        return Floor(len(self._log), 0, 1.0) if self.name == "BamQuery" else None

    def close(self) -> None:
        self._log.append(f"{self.name} closed")


def asked(query: SpeedQuery, *texts: str) -> list[Asked]:
    return [Asked(query, text, Constants()) for text in texts]


def fail(error: Exception) -> Callable[[str], int]:
    def answer(_text: str) -> int:
        raise error

    return answer


def test_order_and_comparisons() -> None:
    log: list[str] = []
    own = Fake("BamQuery", len, log)
    right = Fake("DuckDB", len, log)
    wrong = Fake("polars", lambda text: 9 if text == "ccc" else len(text), log)
    heard: list[Timing] = []
    timings = measure([own, right, wrong], [right, wrong], [asked(ONE, "a", "bb", "ccc")], heard.append)
    assert heard == timings
    assert log == [
        *("BamQuery warm 1", "DuckDB warm 1", "polars warm 1"),
        *(f"{name} {text}" for name in ("BamQuery", "DuckDB", "polars") for text in ("a", "bb", "ccc")),
    ]
    mine, *others = timings[0].systems
    assert [len(one.seconds) for one in timings[0].systems] == [2, 2, 2]
    assert (mine.problem, len(mine.floors), mine.floor in mine.floors) == ("", 2, True)
    assert [one.problem for one in others] == ["", "row 1, a: 9, not 3"]
    assert (timings[0].rows, timings[0].texts) == (1, ("a", "bb", "ccc")[1:])


def test_who_fails_is_not_asked_again() -> None:
    log: list[str] = []
    own = Fake("BamQuery", len, log)
    failing = Fake("DuckDB", fail(BamQueryError("broken")), log)
    refusing = Fake("polars", fail(RefusedError("no such thing")), log)
    (timing,) = measure([own, failing, refusing], [failing, refusing], [asked(ONE, "a", "a")], lambda _: None)
    assert [line for line in log if "DuckDB" in line or "polars" in line] == [
        *("DuckDB warm 1", "polars warm 1", "DuckDB a", "polars a"),
    ]
    assert [(one.problem, one.refused) for one in timing.systems] == [
        ("there is no answer to compare with", False),
        ("broken", False),
        ("no such thing", True),
    ]
    assert timing.rows is None


def test_the_next_peer_is_who_is_right_where_the_first_has_no_answer() -> None:
    log: list[str] = []
    systems = [
        Fake("BamQuery", lambda _: 4, log),
        Fake("DuckDB", fail(RefusedError("no")), log),
        Fake("polars", lambda _: 5, log),
    ]
    (timing,) = measure(systems, systems[1:], [asked(ONE, "a", "a")], lambda _: None)
    assert timing.systems[0].problem == "row 1, a: 4, not 5"


def some_timings() -> list[Timing]:
    floors = (Floor(100, 0, 0.5), Floor(50, 0, 0.25))
    return [
        Timing(
            ONE,
            (
                SystemTiming("BamQuery", (2.0, 1.0), floors),
                SystemTiming("DuckDB", (1.0, 1.5)),
                SystemTiming("polars", (0.5,), problem="row 1, a: 2, not 1"),
            ),
            1,
        ),
        Timing(
            TWO,
            (SystemTiming("BamQuery", (400.0,), (Floor(1, 0, 1.0),)), SystemTiming("DuckDB", (100.0,))),
            7,
        ),
        Timing(
            THREE,
            (
                SystemTiming("BamQuery", problem="no such thing", refused=True),
                SystemTiming("DuckDB", (1.0,)),
                SystemTiming("polars", problem="broken"),
            ),
            1,
        ),
    ]


def test_summary() -> None:
    timings = some_timings()
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert summary(timings, LINE_UP) == [
        "tpch: BamQuery / DuckDB, 2 of 3 queries: geometric mean 2.00, worst 4.00 (tpch/02)",
        "tpch: BamQuery / polars, 1 of 3 queries: geometric mean 2.00, worst 2.00 (tpch/01)",
    ]
    assert complaints(timings, LINE_UP.own) == ["tpch/03: BamQuery: no such thing"]
    assert complaints(timings, LINE_UP.peers) == [
        "tpch/01: polars: row 1, a: 2, not 1",
        "tpch/03: polars: broken",
    ]
    assert line_of(timings[0], LINE_UP).startswith("tpch/01: BamQuery 1 s; DuckDB 1 s; polars ≠ 500 ms")
    assert line_of(timings[2], LINE_UP) == "tpch/03: BamQuery no such thing; DuckDB 1 s; polars broken"


def test_what_does_not_stay_in_the_gpus_memory() -> None:
    def timing(query: SpeedQuery, floor: Floor) -> Timing:
        return Timing(query, (SystemTiming("BamQuery, resident", (1.0,), (floor,)),), 1)

    timings = [timing(ONE, Floor(2_000_000, 7, 1.0)), timing(TWO, Floor(0, 7, 1.0))]
    line_up = LineUp(("BamQuery, resident",), ("DuckDB",))
    assert summary(timings, line_up) == ["BamQuery, resident: 1 of 2 queries read 2 MB of files in all"]
    assert summary(timings[1:], line_up) == []


def test_table() -> None:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table_of(some_timings(), LINE_UP))
    lines = [line.split() for line in capture.get().replace("│", " ").splitlines()]
    assert ["tpch/01", "1", "1", "s", "250", "ms", "4.0", "1", "s", "≠", "500", "ms", "1.00"] in lines
    assert ["tpch/02", "7", "400", "s", "1", "s", "400", "100", "s", "4.00"] in lines
    assert ["tpch/03", "1", "refused", "1", "s", "failed"] in lines


def test_json(tmp_path: Path) -> None:
    found = json_of(some_timings(), LINE_UP, Rates(1.0), tmp_path, {"scale": 1})
    assert (found["scale"], found["rates"]) == (1, {"host": 1.0, "bus": None, "gpu": None})
    mine = found["queries"][0]["systems"][0]
    assert (mine["fastest"], mine["times_floor"]) == (1.0, 4.0)
    assert mine["floor"] == {"read": 50, "resident": 0, "seconds": 0.25}
    assert found["queries"][2]["systems"][0]["refused"] is True


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_picture(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"picture.{suffix}"
    draw(some_timings(), "TPC-H", path)
    assert path.stat().st_size > 5000


def test_the_picture_names_systems_and_queries(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    other = Timing(SpeedQuery("taxi", "q1", ""), (SystemTiming("BamQuery", (0.1,)),), 1)
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw(some_timings(), "TPC-H", tmp_path / "one.svg")
        draw([*some_timings(), other], "both", tmp_path / "two.svg")
    one, two = ((tmp_path / name).read_text() for name in ("one.svg", "two.svg"))
    assert all(f">{word}<" in one for word in ("BamQuery", "DuckDB", "polars", "01", "03"))
    assert all(f">{word}<" in two for word in ("tpch 01", "taxi q1"))


@pytest.mark.parametrize(
    ("device", "cache", "limit", "expected"),
    [
        ("cpu", "both", None, [("BamQuery", 0)]),
        ("cuda:0", "on", "9GB", [("BamQuery, resident", "9GB")]),
        ("cuda:1", "off", "9GB", [("BamQuery, from host memory", 0)]),
        ("cuda:0", "both", None, [("BamQuery, from host memory", 0), ("BamQuery, resident", None)]),
    ],
)
def test_who_is_asked_of_bamquery(
    device: str, cache: str, limit: str | None, expected: list[tuple[str, Any]]
) -> None:
    assert own_systems(Settings(device, 1, cache, limit)) == expected
