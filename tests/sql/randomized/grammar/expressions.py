"""Random expressions over the columns in sight."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.sql.randomized.grammar import shapes
from tests.sql.randomized.grammar.scope import EXACT_KINDS, NUMBERS, Chooser, Scope, Term

LITERALS = {
    "int": ("0", "1", "2", "-3", "100", "7", "NULL::INTEGER"),
    "dec": ("1.5", "0.25", "-2.50", "99.99", "1.25", "2.000"),
    "flt": ("0.5::DOUBLE", "2e0", "-1.5e0", "'nan'::DOUBLE", "NULL::DOUBLE"),
    "txt": ("'a'", "''", "'b%'", "'red'", "'Zürich_1'", "'2024-01-01'", "NULL::VARCHAR"),
    "date": ("DATE '2024-01-01'", "DATE '2024-02-29'", "DATE '2023-12-31'"),
    "ts": (
        "TIMESTAMP '2024-01-01 12:00:00.5'",
        "TIMESTAMP '2024-01-31 00:00:00'",
        "TIMESTAMP '2023-12-31 23:59:59'",
    ),
    "time": ("TIME '12:00:00'", "TIME '01:02:03.45'"),
    "bool": ("TRUE", "FALSE", "NULL::BOOLEAN"),
    "ival": ("INTERVAL 1 DAY", "INTERVAL 36 HOUR", "INTERVAL '1 month'"),
}
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_SHAPES = {
    "int": shapes.INTEGERS,
    "dec": shapes.DECIMALS,
    "flt": shapes.FLOATS,
    "txt": shapes.TEXTS,
    "date": shapes.DATES,
    "ts": shapes.TIMESTAMPS,
    "time": shapes.TIMES,
    "ival": shapes.INTERVALS,
    "bool": shapes.TRUTHS,
}
_HOLE = re.compile(r"\{(\w+)\}")
_PART_OF = re.compile(r"(extract|date_?part)\(")
_MOMENTS = {
    "m": LITERALS["date"][0],
    "D": LITERALS["date"][0],
    "T": LITERALS["ts"][0],
    "c": LITERALS["time"][0],
    "v": LITERALS["ival"][0],
}


def _names_column(scope: Scope | None, text: str) -> bool:
    """Whether an expression has a column of the scope, or of one around it."""
    if scope is None:
        return False
    return any(column.sql in text for column in scope.columns) or _names_column(scope.outer, text)


class Expressions:
    """Expressions of any kind; the grammar of queries sets where the queries within them come from."""

    def __init__(self, choose: Chooser) -> None:
        self.choose = choose
        self.subquery: Callable[[Scope, str], str] | None = None
        self.condition_query: Callable[[Scope], str] | None = None

    @contextmanager
    def without_queries(self) -> Iterator[None]:
        """No queries within what is drawn meanwhile."""
        kept = self.subquery, self.condition_query
        self.subquery = self.condition_query = None
        try:
            yield
        finally:
            self.subquery, self.condition_query = kept

    def any_kind(self) -> str:
        """A kind that a column of a table may have."""
        return self.choose.one_of(
            ("int", "int", "int", "dec", "flt", "txt", "txt", "date", "ts", "time", "bool")
        )

    def column(self, scope: Scope, *kinds: str) -> Term | None:
        """A column in sight, one of the outer query's now and then."""
        if scope.outer is not None and self.choose.chance(0.3):
            found = self.column(scope.outer, *kinds)
            if found is not None:
                return found
        found_here = scope.columns_of_kinds(*kinds)
        return self.choose.one_of(found_here) if found_here else None

    def leaf(self, scope: Scope, kind: str) -> Term:
        """A column or a literal."""
        column = self.column(scope, kind) if self.choose.chance(0.85) else None
        if column is not None and not column.near:
            return column
        return Term(self.choose.one_of(LITERALS[kind]), kind, plain=True)

    def exact_expression(self, scope: Scope, kind: str, depth: int) -> Term:
        """An expression that both databases compute to the last bit."""
        if depth <= 0 or self.choose.chance(0.2):
            return self.leaf(scope, kind)
        if kind == "bool":
            return Term(f"({self.truth(scope, depth)})", kind)
        draw = self.choose.seed.random()
        if draw < 0.08:
            arms = " ELSE ".join(self.exact_expression(scope, kind, depth - 1).sql for _ in range(2))
            return Term(f"CASE WHEN {self.truth(scope, depth - 1)} THEN {arms} END", kind)
        if draw < 0.12:
            key = self.exact_expression(scope, self.choose.pick("int", "txt"), 0)
            first, second = self.leaf(scope, kind).sql, self.leaf(scope, kind).sql
            arms = f"WHEN {LITERALS[key.kind][0]} THEN {first} ELSE {second}"
            return Term(f"CASE {key.sql} {arms} END", kind)
        if draw < 0.17 and kind != "ival":
            both = ", ".join(self.exact_expression(scope, kind, depth - 1).sql for _ in range(2))
            return Term(f"{self.choose.pick('coalesce', 'nullif', 'greatest', 'least')}({both})", kind)
        if draw < 0.21 and kind != "ival" and self.subquery is not None:
            return Term(self.subquery(scope, kind), kind)
        if draw < 0.40 and kind in ("int", "flt"):
            one, other = self.wide(scope, kind), self.wide(scope, self.choose.pick(kind, "int"))
            return Term(f"({one} {self.choose.pick('+', '-', '+', '-', '*')} {other})", kind)
        return Term(self.call(scope, _SHAPES[kind], depth), kind)

    def approximate_expression(self, scope: Scope) -> Term:
        """A float of which the last bits may differ."""
        return Term(self.call(scope, shapes.NEAR_FLOATS, 1), "flt", near=True)

    def wide(self, scope: Scope, kind: str) -> str:
        """A column or literal that arithmetic does not bring to overflow."""
        leaf = self.leaf(scope, kind)
        if leaf.kind == "int" and (leaf.narrow or not leaf.plain):
            return f"({leaf.sql})::{'INTEGER' if leaf.plain else 'HUGEINT'}"
        return leaf.sql

    def _plain(self, scope: Scope, kind: str, outermost: str) -> str:
        """A stored column or a literal of the kind."""
        columns = [column for column in scope.columns_of_kinds(kind) if column.plain]
        if columns and self.choose.chance(0.85):
            return self.choose.one_of(columns).sql
        return outermost

    def call(self, scope: Scope, of: tuple[str, ...], depth: int) -> str:
        """One of the shapes, its holes filled."""
        shape = self.choose.one_of(of)
        part = _PART_OF.match(shape) is not None

        def fill(hole: re.Match[str]) -> str:
            text = filled(hole)
            # A part of a constant that is NULL is DOUBLE in DuckDB, where that of any other NULL is BIGINT.
            return text if not part or _names_column(scope, text) else _MOMENTS[hole[1]]

        def filled(hole: re.Match[str]) -> str:
            match hole[1]:
                case "k":
                    column = self._plain(scope, "int", "3")
                    return f"({column})::INTEGER" if column != "3" else column
                case "x":
                    return self._plain(scope, "int", "100")
                case "m2":
                    return f"({self._plain(scope, 'dec', '1.25')})"
                case "p2":
                    return f"({self._plain(scope, 'flt', '2.5::DOUBLE')})"
                case "n":
                    return self.exact_expression(scope, self.choose.pick("int", "dec"), depth - 1).sql
                case "m":
                    return self.exact_expression(scope, self.choose.pick("date", "ts"), depth - 1).sql
                case "e":
                    return self.leaf(scope, self.any_kind()).sql
                case letter:
                    kinds = {"i": "int", "d": "flt", "t": "txt", "D": "date", "T": "ts", "c": "time"}
                    kind = kinds.get(letter, {"v": "ival", "b": "bool"}.get(letter, ""))
                    text = self.exact_expression(scope, kind, depth - 1).sql
                    return f"({text})" if kind == "txt" else text

        return f"({_HOLE.sub(fill, shape)})"

    # Conditions.

    def truth(self, scope: Scope, depth: int) -> str:
        """A condition."""
        draw = self.choose.seed.random()
        if depth <= 0:
            return self._simple(scope)
        if draw < 0.2:
            joined = [self.truth(scope, depth - 1) for _ in range(self.choose.number(2, 3))]
            return f"({self.choose.pick(' AND ', ' OR ').join(joined)})"
        if draw < 0.27:
            return f"(NOT ({self.truth(scope, depth - 1)}))"
        if draw < 0.35 and self.condition_query is not None:
            return self.condition_query(scope)
        if draw < 0.5:
            return self.call(scope, shapes.TRUTHS, depth)
        if draw < 0.7:
            return self.comparison(scope, depth)
        return self._simple(scope)

    def comparison(self, scope: Scope, depth: int) -> str:
        """Two expressions that compare."""
        one = self.choose.one_of(EXACT_KINDS)
        other = one
        if one in NUMBERS:
            other = self.choose.one_of(NUMBERS)
        elif one in ("date", "ts"):
            other = self.choose.pick("date", "ts")
        left, right = (
            self.exact_expression(scope, one, depth - 1).sql,
            self.exact_expression(scope, other, depth - 1).sql,
        )
        return f"({left} {self.choose.one_of(COMPARISONS)} {right})"

    def _simple(self, scope: Scope) -> str:
        kind = self.any_kind()
        column = self.column(scope, kind)
        if column is None or column.near:
            return self.comparison(scope, 0)
        negation = self.choose.pick("", "NOT ")
        match self.choose.number(0, 6):
            case 0:
                return f"({column.sql} IS {negation}NULL)"
            case 1:
                values = [self.choose.one_of(LITERALS[kind]) for _ in range(self.choose.number(1, 4))]
                return f"({column.sql} {negation}IN ({', '.join(values)}))"
            case 2:
                low, high = self.leaf(scope, kind).sql, self.choose.one_of(LITERALS[kind])
                return f"({column.sql} {negation}BETWEEN {low} AND {high})"
            case 3 if kind == "bool":
                return column.sql
            case 3 if kind in NUMBERS:
                bound = self.choose.pick("1", "2.5", "-0.5", "1e0", "0.1e0", "300", "-1000", "'2'", "1e300")
                return f"({column.sql} {self.choose.one_of(COMPARISONS[:7])} {bound})"
            case 3 if kind in ("date", "ts"):
                bound = self.choose.pick("'2024-01-01'", "DATE '2024-01-01'", "'2024-01-01 12:00:00'")
                return f"({column.sql} {self.choose.one_of(COMPARISONS[:7])} {bound})"
            case 4:
                other = self.leaf(scope, kind).sql
                return f"({column.sql} {self.choose.one_of(COMPARISONS)} {other})"
            case _:
                return (
                    f"({column.sql} {self.choose.one_of(COMPARISONS)} {self.choose.one_of(LITERALS[kind])})"
                )
