"""Random calls over windows, grouping sets and aggregates of every kind, over the tables of `random_queries`.

The tables have one more column, `id`, that tells all rows apart: what depends on the order of peers is asked
for in an order without any.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.sql.randomized.queries import Draw, moment, number, table_of, text, truth

_KEYS = ("i", "j", "k", "u", "d", "f", "m", "s", "g", "t", "p", "q", "b")
_DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS FIRST")


def numbered_tables() -> st.SearchStrategy[pa.Table]:
    """Tables of few rows with a number for each."""

    def numbered(rows: int, seed: int) -> pa.Table:
        table = table_of(rows, seed)
        order = np.random.default_rng(seed).permutation(rows)
        return table.append_column("id", pa.array(order, pa.int32()))

    return st.builds(numbered, st.sampled_from([0, 1, 2, 5, 30, 100]), st.integers(0, 1000))


def _pick(draw: Draw, *choices: str) -> str:
    return draw(st.sampled_from(choices))


def _order(draw: Draw, *, total: bool) -> str:
    keys = draw(st.lists(st.sampled_from(_KEYS), min_size=0 if total else 1, max_size=2, unique=True))
    terms = [f"{key}{_pick(draw, *_DIRECTIONS)}" for key in keys]
    if total:
        terms.append(f"id{_pick(draw, '', ' DESC')}")
    return f"ORDER BY {', '.join(terms)}"


def _partition(draw: Draw) -> str:
    keys = draw(st.lists(st.sampled_from(_KEYS), max_size=2, unique=True))
    return f"PARTITION BY {', '.join(keys)} " if keys else ""


def _bounds(draw: Draw, offsets: tuple[str, ...]) -> str:
    places = [
        "UNBOUNDED PRECEDING",
        *(f"{offset} PRECEDING" for offset in offsets),
        "CURRENT ROW",
        *(f"{offset} FOLLOWING" for offset in offsets),
        "UNBOUNDED FOLLOWING",
    ]
    start = draw(st.sampled_from(places[:-1]))
    allowed = [place for place in places[1:] if places.index(place) >= places.index(start)]
    if "FOLLOWING" in start:
        allowed = [place for place in allowed if "FOLLOWING" in place]
    elif "PRECEDING" in start:
        allowed = places[1:]
    return f"BETWEEN {start} AND {draw(st.sampled_from(allowed))}"


def _exclusion(draw: Draw) -> str:
    return _pick(
        draw, "", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"
    )


def _over_peers(draw: Draw) -> str:
    """A window whose frames do not tell peers apart."""
    match draw(st.integers(0, 3)):
        case 0:
            return f"OVER ({_partition(draw)}{_pick(draw, '', _order(draw, total=False))})"
        case 1:
            frame = f"GROUPS {_bounds(draw, ('0', '1', '2'))}"
            return f"OVER ({_partition(draw)}{_order(draw, total=False)} {frame}{_exclusion(draw)})"
        case 2:
            frame = f"RANGE {_bounds(draw, ())}{_exclusion(draw)}"
            return f"OVER ({_partition(draw)}{_order(draw, total=False)} {frame})"
        case _:
            key = _pick(draw, "i", "j", "k", "u", "m", "d", "f", "t")
            offsets = ("0.5", "1", "100") if key in ("d", "f", "m") else ("0", "1", "3")
            frame = f"RANGE {_bounds(draw, offsets)}{_exclusion(draw)}"
            return f"OVER ({_partition(draw)}ORDER BY {key}{_pick(draw, *_DIRECTIONS)} {frame})"


def _over_rows(draw: Draw) -> str:
    """A window without peers."""
    frame = f" ROWS {_bounds(draw, ('0', '1', '2', '5'))}{_exclusion(draw)}"
    return f"OVER ({_partition(draw)}{_order(draw, total=True)}{_pick(draw, '', frame, frame)})"


def _unordered_aggregate(draw: Draw) -> str:
    """An aggregate whose value does not depend on the rows' order."""
    of = draw(st.sampled_from([number, text, moment]))
    value = of(draw, 0)
    exact = _pick(draw, "i", "j", "k", "u", "m")
    call = _pick(
        draw,
        *("count(*)", f"count({value})", f"min({value})", f"max({value})", f"count(DISTINCT {value})"),
        *(f"sum({number(draw, 0)})", f"avg({number(draw, 0)})", f"sum(DISTINCT {exact})", f"median({exact})"),
        *(
            f"stddev({exact})",
            f"regr_avgx({exact}, i)",
            "bool_and(b)",
            "bool_or(b)",
            "bit_xor(i)",
            "bit_and(u)",
        ),
        *(f"quantile_disc({value}, 0.3)", f"quantile_cont({exact}, 0.25)", f"regr_count({exact}, j)"),
        *("count_if(b)", f"string_agg(s, ',' ORDER BY id{_pick(draw, '', ' DESC')})"),
        *(f"first({value} ORDER BY id)", f"arg_max(id, {exact} ORDER BY id)", "mode(s ORDER BY id)"),
    )
    return call + (f" FILTER (WHERE {truth(draw, 0)})" if draw(st.integers(0, 3)) == 0 else "")


def _window_aggregate(draw: Draw) -> str:
    """One of those that DuckDB computes over windows, too."""
    call = _unordered_aggregate(draw)
    return "count(i)" if call.startswith(("first(", "arg_max(")) else call


def _ranking(draw: Draw) -> str:
    return _pick(draw, "rank()", "dense_rank()", "percent_rank()", "cume_dist()")


def _row_function(draw: Draw) -> str:
    value = draw(st.sampled_from([number, text, moment]))(draw, 0)
    nulls = _pick(draw, "", " IGNORE NULLS", " RESPECT NULLS")
    column = _pick(draw, "i", "s", "g", "t", "d", "m")
    default = {"s": "'z'", "g": "'z'", "t": "DATE '2020-01-01'"}.get(column, "7")
    offset = _pick(draw, "1", "2", "0", "-1", "k", "NULL::INTEGER")
    return _pick(
        draw,
        *("row_number()", f"ntile({_pick(draw, '1', '2', '3', '50')})"),
        *(f"{name}({column}, {offset}, {default}{nulls})" for name in ("lag", "lead")),
        *(f"{name}({value}{nulls})" for name in ("first_value", "last_value", "lag", "lead")),
        f"nth_value({value}, {_pick(draw, '1', '2', '3', 'k')}{nulls})",
    )


@st.composite
def window_queries(draw: Draw) -> str:
    """Calls over windows, each row with its number."""
    items = ["id"]
    for _ in range(draw(st.integers(1, 4))):
        match draw(st.integers(0, 3)):
            case 0:
                items.append(f"{_ranking(draw)} OVER ({_partition(draw)}{_order(draw, total=False)})")
            case 1:
                items.append(_aggregate_over(_window_aggregate(draw), _over_peers(draw)))
            case 2:
                items.append(_aggregate_over(_window_aggregate(draw), _over_rows(draw)))
            case _:
                items.append(f"{_row_function(draw)} {_over_rows(draw)}")
    where = f" WHERE {truth(draw, 1)}" if draw(st.booleans()) else ""
    qualify = f" QUALIFY {_ranking(draw)} {_over_ranking(draw)} < 3" if draw(st.integers(0, 4)) == 0 else ""
    listed = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
    return f"SELECT {listed} FROM r{where}{qualify} ORDER BY id"


def _aggregate_over(call: str, over: str) -> str:
    """The call over the window, but for sums of floats and EXCLUDE: DuckDB loses infinities and NaN."""
    if "EXCLUDE" in over and call.startswith(("sum(", "avg(")):
        call = "sum(m)"
    return f"{call} {over}"


def _over_ranking(draw: Draw) -> str:
    return f"OVER ({_partition(draw)}{_order(draw, total=False)})"


@st.composite
def group_queries(draw: Draw) -> str:
    """Aggregates of every kind over groups and grouping sets; first rows by DISTINCT ON."""
    keys = draw(
        st.lists(st.sampled_from(("i", "b", "s", "g", "k", "t")), min_size=1, max_size=3, unique=True)
    )
    listed = ", ".join(keys)
    if draw(st.integers(0, 5)) == 0:
        return f"SELECT DISTINCT ON ({listed}) {listed}, id, d FROM r ORDER BY {listed}, id DESC"
    sets = _pick(
        draw,
        *(listed, f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"),
        *(f"{keys[0]}, ROLLUP ({keys[-1]})", f"GROUPING SETS (({keys[-1]}), CUBE ({listed}))"),
    )
    calls = [_unordered_aggregate(draw) for _ in range(draw(st.integers(1, 4)))]
    items = [*keys, f"GROUPING({listed})", *calls]
    shown = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
    where = f" WHERE {truth(draw, 1)}" if draw(st.booleans()) else ""
    having = f" HAVING count(*) {_pick(draw, '>', '<')} 2" if draw(st.integers(0, 3)) == 0 else ""
    order = ", ".join(str(i + 1) for i in range(len(keys) + 1))  # rows of equal sets are equal, too
    return f"SELECT {shown} FROM r{where} GROUP BY {sets}{having} ORDER BY {order}"
