"""Random queries of several tables: joins, subqueries and set operations of the table of `random_queries`."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.randomized.queries import Draw

FAMILIES = (("i", "j", "k", "u", "d", "f", "m"), ("s", "g"), ("t", "p", "q"), ("b",))
_ALL = tuple(column for family in FAMILIES for column in family)
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")

SOURCES = (  # in small letters: an ORDER BY within says nothing of the order of the answer
    "r",
    "r",
    "r",
    "(SELECT * FROM r WHERE i > 0)",
    "(SELECT * FROM r WHERE FALSE)",
    "(SELECT * FROM r order by all LIMIT 3)",
    "(SELECT DISTINCT * FROM r WHERE b IS NOT NULL)",
    "(SELECT i, max(j) AS j, min(k) AS k, sum(u) AS u, avg(m) AS d, max(f) AS f, min(m) AS m, max(s) AS s, "
    "max(g) AS g, min(t) AS t, max(p) AS p, min(q) AS q, bool_or(b) AS b FROM r GROUP BY i)",
)


def _column(draw: Draw, table: str, family: int | None = None) -> str:
    columns = _ALL if family is None else FAMILIES[family]
    return f"{table}.{draw(st.sampled_from(columns))}"


def _family(draw: Draw) -> int:
    return draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))


def _equality(draw: Draw, left: str, right: str) -> str:
    family = _family(draw)
    one, other = _column(draw, left, family), _column(draw, right, family)
    if family == 0 and draw(st.integers(0, 4)) == 0:
        other = f"{other} + 1"
    sides = [one, other] if draw(st.booleans()) else [other, one]
    return f" {draw(st.sampled_from(['=', '=', '=', 'IS NOT DISTINCT FROM']))} ".join(sides)


def _condition(draw: Draw, *tables: str) -> str:
    """A condition on a row, or on several."""
    family = _family(draw)
    one, other = draw(st.sampled_from(tables)), draw(st.sampled_from(tables))
    match draw(st.integers(0, 3)):
        case 0:
            bound = ("1", "'b'", "DATE '2024-01-01'", "TRUE")[family]
            return f"{_column(draw, one, family)} {draw(st.sampled_from(_COMPARISONS))} {bound}"
        case 1:
            return f"{_column(draw, one)} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case _:
            operator = draw(st.sampled_from(_COMPARISONS))
            return f"{_column(draw, one, family)} {operator} {_column(draw, other, family)}"


def _on(draw: Draw, left: str, right: str) -> str:
    """Equalities with or without more, or no equality at all."""
    parts = [_equality(draw, left, right) for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2])))]
    wanted = draw(st.integers(0, 2)) if parts else 1
    parts += [_condition(draw, left, right) for _ in range(wanted)]
    if draw(st.integers(0, 7)) == 0:
        parts.append(_truth(draw, draw(st.sampled_from([left, right])), "v", 0))
    if len(parts) > 1 and draw(st.integers(0, 5)) == 0:
        return f"({' OR '.join(parts)})"
    return " AND ".join(parts)


def _where(draw: Draw, *tables: str) -> str:
    parts = [_condition(draw, *tables) for _ in range(draw(st.sampled_from([0, 0, 1, 2])))]
    return f" WHERE {draw(st.sampled_from([' AND ', ' OR '])).join(parts)}" if parts else ""


@st.composite
def joins(draw: Draw) -> str:
    """Two or three tables joined."""
    sources = [draw(st.sampled_from(SOURCES)) for _ in range(3)]
    kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", ",", "USING"]
    kind = draw(st.sampled_from(kinds))
    seen = ["x", "y"]
    match kind:
        case ",":
            text = f"{sources[0]} x, {sources[1]} y"
        case "USING":
            side = draw(st.sampled_from(["", "LEFT ", "RIGHT ", "FULL "]))
            names = ", ".join(draw(st.lists(st.sampled_from(_ALL), min_size=1, max_size=2, unique=True)))
            text = f"{sources[0]} x {side}JOIN {sources[1]} y USING ({names})"
        case _:
            text = f"{sources[0]} x {kind} {sources[1]} y ON {_on(draw, 'x', 'y')}"
            seen = ["x"] if kind in ("SEMI JOIN", "ANTI JOIN") else seen
    if draw(st.integers(0, 2)) == 0:
        kind = draw(st.sampled_from(kinds[:-1]))
        # What is joined so after a comma sees only what stands after the comma.
        left = "y" if kind in ("RIGHT JOIN", "FULL JOIN") and ", " in text else draw(st.sampled_from(seen))
        on = "" if kind == "," else f" ON {_on(draw, left, 'z')}"
        text = f"{text}{kind} {sources[2]} z{on}" if kind == "," else f"{text} {kind} {sources[2]} z{on}"
        seen += [] if kind in ("SEMI JOIN", "ANTI JOIN") else ["z"]
    where = _where(draw, *seen)
    if where == "" and "," in kinds and text.count(" y") and " ON " not in text:
        where = f" WHERE {_equality(draw, seen[0], seen[-1])}"
    match draw(st.integers(0, 2)):
        case 0:
            totals = [f"count({_column(draw, draw(st.sampled_from(seen)))})" for _ in range(3)]
            return f"SELECT count(*), {', '.join(totals)} FROM {text}{where}"
        case 1:
            key = _column(draw, draw(st.sampled_from(seen)))
            return f"SELECT {key}, count(*), max({_column(draw, seen[-1])}) FROM {text}{where} GROUP BY 1"
        case _:
            items = [_column(draw, draw(st.sampled_from(seen))) for _ in range(draw(st.integers(1, 4)))]
            listed = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
            return f"SELECT {listed} FROM {text}{where}"


def _inner_where(draw: Draw, outer: str, inner: str) -> str:
    """What ties a subquery to its surroundings, if anything does."""
    match draw(st.integers(0, 4)):
        case 0:
            return ""
        case 1:
            return f" WHERE {_condition(draw, inner)}"
        case 2:
            return f" WHERE {_equality(draw, outer, inner)}"
        case 3:
            return f" WHERE {_equality(draw, outer, inner)} AND {_condition(draw, outer, inner)}"
        case _:
            return f" WHERE {_condition(draw, outer, inner)}"


def _truth(draw: Draw, outer: str, inner: str, depth: int) -> str:
    """A condition with a query in it."""
    source = draw(st.sampled_from(SOURCES))
    where = _inner_where(draw, outer, inner)
    if depth and draw(st.integers(0, 3)) == 0:
        more = _truth(draw, inner, f"{inner}{inner}", depth - 1)
        where = f"{where} AND {more}" if where else f" WHERE {more}"
    family = _family(draw)
    value, column = _column(draw, outer, family), _column(draw, inner, family)
    match draw(st.integers(0, 5)):
        case 0:
            return f"EXISTS (SELECT 1 FROM {source} {inner}{where})"
        case 1:
            return f"NOT EXISTS (SELECT * FROM {source} {inner}{where})"
        case 2:
            return f"{value} IN (SELECT {column} FROM {source} {inner}{where})"
        case 3:
            return f"{value} NOT IN (SELECT {column} FROM {source} {inner}{where})"
        case 4:
            quantifier = draw(st.sampled_from(["ANY", "ALL"]))
            operator = draw(st.sampled_from(_COMPARISONS[:6]))
            return f"{value} {operator} {quantifier} (SELECT {column} FROM {source} {inner}{where})"
        case _:
            operator = draw(st.sampled_from(_COMPARISONS))
            return (
                f"{draw(st.sampled_from(['0', '1', '2']))} {operator} {_scalar(draw, outer, inner, 'count')}"
            )


def _scalar(draw: Draw, outer: str, inner: str, call: str | None = None) -> str:
    source = draw(st.sampled_from(SOURCES))
    where = _inner_where(draw, outer, inner)
    column = _column(draw, inner)
    match 0 if call else draw(st.integers(0, 3)):
        case 0:
            call = call or draw(st.sampled_from(["count", "min", "max", "count(DISTINCT"]))
            item = f"{call} {column})" if "(" in call else f"{call}({column})"
            having = " HAVING count(*) > 1" if draw(st.integers(0, 5)) == 0 else ""
            return f"(SELECT {item} FROM {source} {inner}{where}{having})"
        case 1:
            return f"(SELECT count(*) + coalesce(sum({inner}.i), 0) FROM {source} {inner}{where})"
        case 2:
            return f"(SELECT {column} FROM {source} {inner}{where} order by 1 LIMIT 1)"
        case _:
            set_operation = draw(st.sampled_from(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]))
            other = f"SELECT {inner}.{column.split('.')[1]} FROM r {inner}{_inner_where(draw, outer, inner)}"
            return (
                f"(SELECT count(*) FROM (SELECT {column} FROM {source} {inner}{where} "
                f"{set_operation} {other}) e)"
            )


@st.composite
def subqueries(draw: Draw) -> str:
    """Queries in WHERE, in what is selected, in HAVING."""
    source = draw(st.sampled_from(SOURCES))
    match draw(st.integers(0, 4)):
        case 0:
            truths = [_truth(draw, "x", "y", 1) for _ in range(draw(st.integers(1, 2)))]
            plain = [_condition(draw, "x")] if draw(st.booleans()) else []
            where = draw(st.sampled_from([" AND ", " OR "])).join([*plain, *truths])
            return f"SELECT x.i, x.d, x.s, x.g, x.p FROM {source} x WHERE {where}"
        case 1:
            return f"SELECT x.i, x.s, {_truth(draw, 'x', 'y', 1)} AS c FROM {source} x"
        case 2:
            return f"SELECT x.i, x.s, {_scalar(draw, 'x', 'y')} AS c FROM {source} x{_where(draw, 'x')}"
        case 3:
            totals = f"count(*) FILTER (WHERE {_truth(draw, 'x', 'y', 0)})"
            return f"SELECT x.b, {totals} AS c FROM {source} x GROUP BY 1"
        case _:
            key = draw(st.sampled_from(["i", "s", "d", "t"]))
            inner = f"(SELECT count(*) FROM r y WHERE y.{key} = x.{key})"
            return f"SELECT x.{key}, count(*) FROM {source} x GROUP BY x.{key} HAVING count(*) <= {inner}"


@st.composite
def set_operations(draw: Draw) -> str:
    """Rows of two or three queries together."""
    families = [_family(draw) for _ in range(draw(st.integers(1, 3)))]

    def select() -> str:
        columns = ", ".join(draw(st.sampled_from(FAMILIES[family])) for family in families)
        return f"SELECT {columns} FROM {draw(st.sampled_from(SOURCES))} x{_where(draw, 'x')}"

    words = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
    text = f"{select()} {draw(st.sampled_from(words))} {select()}"
    if draw(st.integers(0, 2)) == 0:
        text = f"{text} {draw(st.sampled_from(words))} {select()}"
    if draw(st.integers(0, 2)) == 0:
        return f"SELECT count(*) FROM ({text}) e"
    return text
