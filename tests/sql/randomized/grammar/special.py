"""Random queries about row values, columns of NULL, ordered aggregates and many relations."""

from __future__ import annotations

from tests.sql.randomized.grammar.expressions import LITERALS
from tests.sql.randomized.grammar.names import Names
from tests.sql.randomized.grammar.pieces import total_order
from tests.sql.randomized.grammar.scope import Chooser, Term
from tests.sql.randomized.grammar.set_orders import SetOrders
from tests.sql.randomized.grammar.sources import Query
from tests.sql.randomized.grammar.tables import Table

VIEW_OF_NULL = "CREATE VIEW nothing AS SELECT NULL AS c, id FROM alpha WHERE id < 3"
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")
_SEPARATORS = ("','", "''", "' | '")
_SHARES = ("0", "0.25", "0.3", "0.5", "0.8", "0.95", "1")


class Special(Names, SetOrders):
    """The grammar of these, each as often as it is worth."""

    def __init__(self, choose: Chooser, tables: list[Table]) -> None:
        super().__init__(choose, tables)
        self._kinds = [
            *[self.set_operation] * 6,
            *[self.set_order] * 6,
            *[self.shadows] * 6,
            *[self.groups] * 4,
            *[self.rows] * 6,
            *[self.nulls] * 4,
            *[self.ordered_aggregates] * 6,
        ]
        self._drawn = 0

    def whole_query(self) -> Query:
        """A query of one of the kinds; one in 64 is of many relations."""
        self._drawn += 1
        return self.many() if self._drawn % 64 == 0 else self.choose.one_of(self._kinds)()

    # Row values.

    def rows(self) -> Query:
        """Row values that are compared with others, in lists and with the rows of queries."""
        choose = self.choose
        table = choose.one_of(self.tables)
        kinds = [choose.pick("int", "int", "txt", "dec") for _ in range(choose.number(2, 3))]
        columns = [self.column(table, kind) for kind in kinds]
        tests = [self._row_test(columns, kinds) for _ in range(choose.number(1, 2))]
        joined = choose.pick(" AND ", " OR ").join(tests)
        where = ""
        if choose.chance(0.5):
            where = f" WHERE {choose.pick('', 'NOT ')}({joined})"
            joined = tests[0]
        return self._in_order(f"SELECT id, {joined} AS r FROM {self.small(table, '')}{where}", 2)

    def _row_test(self, columns: list[str], kinds: list[str]) -> str:
        choose = self.choose
        row = f"{choose.pick('', 'ROW')}({', '.join(columns)})"
        negation = choose.pick("", "NOT ")
        match choose.number(0, 6):
            case 0:
                comparison = choose.one_of((*_COMPARED, "IS DISTINCT FROM"))
                return f"({row} {comparison} {self._row_of_literals(kinds)})"
            case 1:
                listed = ", ".join(self._row_of_literals(kinds) for _ in range(choose.number(1, 3)))
                return f"({row} {negation}IN ({listed}))"
            case 2:
                low, high = self._row_of_literals(kinds), self._row_of_literals(kinds)
                return f"({row} {negation}BETWEEN {low} AND {high})"
            case 3:
                return f"({row} {negation}IN ({self._rows_of(kinds)}))"
            case _:
                return (
                    f"({row} {choose.one_of(_COMPARED)} {choose.pick('ANY', 'ALL')} ({self._rows_of(kinds)}))"
                )

    def _row_of_literals(self, kinds: list[str]) -> str:
        return f"({', '.join(self.choose.one_of(LITERALS[kind]) for kind in kinds)})"

    def _rows_of(self, kinds: list[str]) -> str:
        """A query for rows of those kinds; of no row now and then."""
        choose = self.choose
        if choose.chance(0.3):
            rows = " UNION ALL ".join(
                f"SELECT {', '.join(choose.one_of(LITERALS[kind]) for kind in kinds)}"
                for _ in range(choose.number(1, 3))
            )
            return f"SELECT * FROM ({rows})"
        table = choose.one_of(self.tables)
        columns = ", ".join(self.column(table, kind) for kind in kinds)
        where = choose.pick("", "", f" WHERE id < {choose.number(0, 4)}", " WHERE FALSE")
        return f"SELECT {columns} FROM {self.small(table, '')}{where}"

    # Columns of NULL.

    def nulls(self) -> Query:
        """A column that is NULL and nothing else, in a query, in WITH or in a set operation."""
        choose = self.choose
        table = choose.one_of(self.tables)
        kind = choose.pick("int", "txt", "dec", "date", "bool", "ts", "flt")
        column, literal = self.column(table, kind), choose.one_of(LITERALS[kind])
        nothing = choose.pick(
            "SELECT id, NULL AS c", "SELECT NULL AS c, id", "SELECT id, NULL AS c, NULL AS e"
        )
        inner = f"{nothing} FROM {self.small(table, '')}"
        if choose.chance(0.3):
            inner = "SELECT id, c FROM nothing"
        match choose.number(0, 4):
            case 0:
                both = f"SELECT NULL AS c UNION ALL SELECT {column} FROM {self.small(table, '')}"
                other = f"SELECT {column} AS c FROM {self.small(table, '')} UNION SELECT NULL"
                of_view = f"SELECT c FROM nothing UNION ALL SELECT {literal}"
                return self._in_order(f"SELECT c FROM ({choose.pick(both, other, of_view)})", 1)
            case 1:
                used = f"SELECT c FROM n UNION ALL SELECT {literal}"
                return self._in_order(f"WITH n AS (SELECT NULL AS c) SELECT * FROM ({used})", 1)
            case 2:
                calls = (
                    "coalesce(n.c, {0})",
                    "n.c = {0}",
                    "n.c IS NULL",
                    "n.c IN ({0})",
                    "CASE WHEN n.id > 2 THEN n.c ELSE {0} END",
                )
                call = choose.one_of(calls).format(literal)
                return self._in_order(f"SELECT n.id, {call} AS r FROM ({inner}) n", 2)
            case 3:
                call = choose.pick(
                    "count(n.c)", "min(n.c)", f"min(coalesce(n.c, {literal}))", "count(DISTINCT n.c)"
                )
                return self._in_order(f"SELECT {call} AS r, count(*) AS n FROM ({inner}) n", 2)
            case _:
                kept = f"(SELECT id, {column} AS d FROM {self.small(table, '')}) m"
                condition = choose.pick(
                    "n.c = m.d", "n.c IS NOT DISTINCT FROM m.d", "n.id = m.id AND n.c IS NULL"
                )
                kind_ = choose.pick("JOIN", "LEFT JOIN", "ANTI JOIN", "SEMI JOIN")
                return self._in_order(f"SELECT n.id FROM ({inner}) n {kind_} {kept} ON {condition}", 1)

    # Aggregates with an order.

    def ordered_aggregates(self) -> Query:
        """Aggregates whose answer is the order's, and quantiles from either end."""
        choose = self.choose
        table = choose.one_of(self.tables)
        key = self.column(table, "int", "txt", "bool")
        calls = [self._ordered_call(table) for _ in range(choose.number(1, 3))]
        grouped = choose.chance(0.6) and key in table.kinds
        items = ([key] if grouped else []) + [f"{call} AS r{place}" for place, call in enumerate(calls)]
        by = f" GROUP BY {choose.pick(key, f'ROLLUP ({key})')}" if grouped else ""
        text = f"SELECT {', '.join(items)} FROM {self.small(table, '')}{by}"
        if any(name in text for name in ("sum(", "avg(", "quantile_cont", "percentile_cont")):
            return Query(text, ())  # the last bits of floats are no order
        return self._in_order(text, len(items))

    def _ordered_call(self, table: Table) -> str:
        choose = self.choose
        key = self.column(table, "int", "txt", "date", "dec")
        by = f"{key}{choose.one_of(self.ways)}, id{choose.pick('', ' DESC')}"
        way = choose.pick("", " DESC")
        text, number = self.column(table, "txt"), self.column(table, "int", "dec")
        where = (
            f" FILTER (WHERE id {choose.pick('>', '<=')} {choose.number(0, 9)})" if choose.chance(0.2) else ""
        )
        match choose.number(0, 6):
            case 0 | 1:
                name = choose.pick("string_agg", "group_concat", "listagg")
                return f"{name}({text}, {choose.one_of(_SEPARATORS)} ORDER BY {by}){where}"
            case 2:
                value = self.column(table, "int", "txt", "date", "flt", "dec")
                return f"{choose.pick('first', 'last', 'any_value')}({value} ORDER BY {by}){where}"
            case 3:
                return f"{choose.pick('sum', 'avg', 'max', 'count')}({number} ORDER BY {by}){where}"
            case 4:
                name, share = choose.pick("quantile_disc", "quantile_cont"), choose.one_of(_SHARES)
                return f"{name}({number}, {share} ORDER BY {number}{way}){where}"
            case 5:
                name = choose.pick("percentile_disc", "percentile_cont")
                return f"{name}({choose.one_of(_SHARES)}) WITHIN GROUP (ORDER BY {number}{way}){where}"
            case _:
                name = choose.pick("arg_min", "arg_max")
                return f"{name}({text}, {number} ORDER BY {by}){where}"

    # Many relations.

    def many(self) -> Query:
        """Dozens of joins, hundreds of queries in a UNION or in WITH."""
        choose = self.choose
        table = choose.one_of(self.tables)
        match choose.number(0, 4):
            case 0:
                texts = (choose.one_of(LITERALS["txt"]) for _ in range(choose.number(50, 300)))
                parts = [f"SELECT {place % 7} AS c, {text} AS d" for place, text in enumerate(texts)]
                rows = choose.pick(" UNION ALL ", " UNION ").join(parts)
                return self._in_order(f"SELECT c, count(d) AS n FROM ({rows}) GROUP BY c", 2)
            case 1:
                names = [f"q{place}" for place in range(choose.number(10, 60))]
                rows = ", ".join(f"(SELECT {place} AS a) {name}" for place, name in enumerate(names))
                total = " + ".join(f"{name}.a" for name in names)
                return self._in_order(f"SELECT {total} AS n FROM {rows}", 1)
            case 2:
                last = choose.number(5, 14)
                joined = self.small(table, "j0")
                for place in range(1, last + 1):
                    kind, before = choose.pick("JOIN", "LEFT JOIN"), choose.number(0, place - 1)
                    joined += f" {kind} {self.small(table, f'j{place}')} ON j{place}.id = j{before}.id"
                return self._in_order(f"SELECT count(*) AS n, sum(j{last}.id) AS s FROM {joined}", 2)
            case 3:
                count = choose.number(50, 150)
                parts = [
                    f"w0 AS (SELECT id AS a FROM {self.small(table, '')})",
                    *(f"w{place} AS (SELECT a + 1 AS a FROM w{place - 1})" for place in range(1, count)),
                ]
                return self._in_order(f"WITH {', '.join(parts)} SELECT a FROM w{count - 1}", 1)
            case _:
                text = f"SELECT id AS a FROM {self.small(table, '')}"
                for _ in range(choose.number(10, 30)):
                    text = f"SELECT a + 1 AS a FROM ({text})"
                return self._in_order(text, 1)

    def _in_order(self, text: str, width: int) -> Query:
        columns = tuple(Term(f"c{place}", "int") for place in range(width))
        return Query(f"{text} ORDER BY {', '.join(total_order(width))}", columns, ordered=tuple(range(width)))
