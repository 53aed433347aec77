"""Queries that a device refuses: refused, or run on the CPU where that is allowed, which the answer says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import bamquery
from bamquery.engine.cpu.device import CPU, CpuDevice
from bamquery.engine.device import Device
from bamquery.engine.device_factory import open_device
from bamquery.plan.expressions import Call, Expression


def _no_upper(part: Expression) -> list[str]:
    missing = isinstance(part, Call) and part.function == "upper"
    return ["the cuda device has no upper(); SET device = 'cpu' for this query"] * missing


class _Picky(CpuDevice):
    """Has no upper(), and says so as a GPU does."""

    name = "cuda:0"  # type: ignore[assignment]
    capabilities = replace(CPU, device="cuda", on_host=False, node_gaps=_no_upper)  # type: ignore[misc]


@pytest.fixture
def con(monkeypatch: pytest.MonkeyPatch) -> Iterator[bamquery.Connection]:
    def opened(
        name: str, limit: int | None = None, *, programs: bool = True
    ) -> tuple[Device[Any], tuple[str, ...]]:
        return open_device("cpu") if name == "cpu" else (_Picky(), ("device auto: cuda:0, the first GPU",))

    monkeypatch.setattr("bamquery.session.session.open_device", opened)
    with bamquery.connect(device="auto") as found:
        found.sql("CREATE TABLE t AS SELECT 'ab' AS s, 1 AS i")
        yield found


SQL = "SELECT upper(s) AS u FROM t"


def test_it_is_refused_unless_allowed(con: bamquery.Connection) -> None:
    for text in (SQL, f"EXPLAIN {SQL}", f"CREATE TABLE u AS {SQL}"):
        with pytest.raises(bamquery.UnsupportedError, match=r"no upper\(\)"):
            con.sql(text).to_arrow()
    assert con.tables == ["t"]


def test_it_runs_on_the_cpu_and_says_so(con: bamquery.Connection) -> None:
    con.sql("SET allow_cpu = on")
    relation = con.sql(SQL)
    assert relation.fetchall() == [("AB",)]
    notes = [
        "device auto: cuda:0, the first GPU",
        "device cpu, as allow_cpu is on: the cuda device has no upper()",
    ]
    assert relation.profile.device == "cpu"
    assert relation.profile.notes == notes
    for text in (relation.explain(), relation.explain(analyze=True)):
        assert notes[1] in text
    con.sql(f"CREATE TABLE u AS {SQL}")
    assert con.sql("SELECT * FROM u").fetchall() == [("AB",)]


def test_other_queries_stay_where_they_are(con: bamquery.Connection) -> None:
    con.set("allow_cpu", True)
    relation = con.sql("SELECT i + 1 FROM t")
    assert relation.fetchall() == [(2,)]
    assert relation.profile.device == "cuda:0"


def test_what_only_a_gpu_can_give_names_the_reason(con: bamquery.Connection) -> None:
    con.set("allow_cpu", True)
    with pytest.raises(bamquery.BamQueryError, match=r"runs on cpu .*allow_cpu is on: .* no upper\(\)"):
        con.sql(SQL).to_cudf()


def test_what_the_cpu_refuses_too_is_refused(
    con: bamquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    con.set("allow_cpu", True)
    monkeypatch.setattr(CpuDevice, "capabilities", replace(CPU, node_gaps=_no_upper))
    with pytest.raises(bamquery.UnsupportedError, match=r"no upper\(\)"):
        con.sql(SQL).to_arrow()
