"""Random queries: every clause, set operations, WITH."""

from __future__ import annotations

from dataclasses import replace

from tests.sql.randomized.grammar import shapes
from tests.sql.randomized.grammar.blanks import without_blanks
from tests.sql.randomized.grammar.calls import Calls
from tests.sql.randomized.grammar.scope import Chooser, Scope, Term
from tests.sql.randomized.grammar.sources import Query
from tests.sql.randomized.grammar.subqueries import WAYS, Subqueries
from tests.sql.randomized.grammar.tables import Table

_HASTY = 4
"""One in so many queries is written without blanks: counted, not drawn, so that seeds keep their queries."""

_SET_WORDS = ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


class Queries(Subqueries):
    """The grammar. `tables` and `views` are there in both databases."""

    def __init__(self, choose: Chooser, tables: list[Table]) -> None:
        super().__init__(choose, tables)
        self.calls = Calls(choose, self.expressions)
        self.written = 0

    def nested_query(self, *, small: bool = False) -> Query:
        """A query that stands within another: its answer is determined, its columns have names."""
        self.depth += 1
        try:
            query = self.set_operation() if self.choose.chance(0.15) else self.select(small=small)
            exact = all(not column.near and column.kind != "ival" for column in query.columns)
            if exact and self.choose.chance(0.12):
                limit = self.choose.pick("LIMIT 3", "LIMIT 5 OFFSET 1", "LIMIT 7", "OFFSET 2", "LIMIT 0")
                return replace(query, sql=f"{query.sql} ORDER BY ALL{self.choose.pick('', ' DESC')} {limit}")
            return query
        finally:
            self.depth -= 1

    def select(self, *, small: bool = False) -> Query:
        """SELECT with any of its clauses."""
        choose = self.choose
        shapes_ = (
            "rows",
            "rows",
            "rows",
            "distinct",
            "totals",
            "groups",
            "groups",
            "groups",
            "windows",
            "on",
        )
        shape = choose.one_of(shapes_)
        text, scope = self.from_(most=2 if small else 3)
        where = (
            f" WHERE {self.expressions.truth(scope, choose.one_of((0, 1, 1, 1, 2)))}"
            if choose.chance(0.45)
            else ""
        )
        match shape:
            case "distinct":
                items = [self.item(scope) for _ in range(choose.number(1, 3))]
                items = [item for item in items if item.kind != "ival" and not item.near] or [
                    Term("1", "int")
                ]
                query = self._listed("SELECT DISTINCT", items, f"FROM {text}{where}")
                return replace(query, unique=tuple(column.name for column in query.columns))
            case "totals":
                items = [self.calls.aggregate(scope) for _ in range(choose.one_of((1, 1, 2, 3)))]
                having = f" HAVING {self._having(scope)}" if choose.chance(0.15) else ""
                return self._listed("SELECT", items, f"FROM {text}{where}{having}")
            case "groups":
                return self._groups(text, scope, where)
            case "windows":
                return self._windows(text, scope, where)
            case "on" if scope.unique is not None:
                keys = choose.choose_some([c for c in scope.columns if not c.near and c.kind != "ival"], 1, 2)
                items = [
                    *keys,
                    *(
                        self.expressions.leaf(replace(scope, outer=None), self.expressions.any_kind())
                        for _ in range(2)
                    ),
                ]
                listed = ", ".join(key.sql for key in keys)
                order = ", ".join(f"{key.sql}{choose.one_of(WAYS)}" for key in keys)
                rest = self.calls.terms(scope, total=True, most=1)
                query = self._listed(
                    f"SELECT DISTINCT ON ({listed})", items, f"FROM {text}{where} ORDER BY {order}, {rest}"
                )
                if self.depth:
                    return replace(query, sql=f"SELECT * FROM ({query.sql}) w")
                return query
            case _:
                return self._rows(text, scope, where)

    def _listed(
        self, select: str, items: list[Term], rest: str, unique: tuple[str, ...] | None = None
    ) -> Query:
        names = [f"c{place}" for place in range(len(items))]
        columns = tuple(
            replace(item, sql=name, name=name, plain=False, narrow=False, local=False)
            for item, name in zip(items, names, strict=True)
        )
        listed = ", ".join(f"{item.sql} AS {name}" for item, name in zip(items, names, strict=True))
        if self.choose.chance(0.03) and select == "SELECT":
            listed = ", ".join(f"{name}: {item.sql}" for item, name in zip(items, names, strict=True))
        return Query(f"{select} {listed} {rest}", columns, unique)

    def item(self, scope: Scope) -> Term:
        """Something to select."""
        if self.depth == 0 and self.choose.chance(0.1):
            return self.expressions.approximate_expression(scope)
        if self.depth == 0 and self.choose.chance(0.03):
            return self.expressions.exact_expression(scope, "ival", 2)
        return self.expressions.exact_expression(
            scope, self.expressions.any_kind(), self.choose.one_of((0, 1, 1, 1, 1, 2))
        )

    def _rows(self, text: str, scope: Scope, where: str) -> Query:
        choose = self.choose
        if self.depth == 0 and choose.chance(0.12) and "VALUES" not in text and not where:
            of = choose.pick(shapes.RISKY_INTEGERS, shapes.RISKY_FLOATS, shapes.RISKY_MOMENTS)  # type: ignore[arg-type]
            plain, seen = self.table()
            risky = Term(self.expressions.call(seen, of, 1), "int", near=True)  # type: ignore[arg-type]
            return self._listed("SELECT", [*seen.columns_of_kinds("int")[:1], risky], f"FROM {plain}")
        if self.depth == 0 and choose.chance(0.06):
            star = choose.pick("*", "*", "*, 1 AS one")
            return Query(f"{choose.pick('SELECT ' + star + ' FROM', 'FROM')} {text}{where}", ())
        items = [self.item(scope) for _ in range(choose.one_of((1, 1, 2, 2, 3)))]
        unique = None
        if scope.unique is not None and choose.chance(0.5):
            unique = tuple(f"c{len(items) + place}" for place in range(len(scope.unique)))
            items += scope.unique
        query = self._listed("SELECT", items, f"FROM {text}{where}", unique)
        hidden = "c0" in {column.name for column in scope.columns}
        if choose.chance(0.06) and items[0].kind == "int" and not items[0].near and not hidden:
            also = Term("(c0 + 1)", "int")
            sql = (
                query.sql.replace(" FROM ", f", {also.sql} AS later FROM ", 1)
                if query.sql.count(" FROM ") == 1
                else query.sql
            )
            if sql != query.sql:
                return Query(sql, (*query.columns, replace(also, sql="later", name="later")), unique)
        return query

    def _having(self, scope: Scope) -> str:
        call = self.calls.aggregate(replace(scope, outer=scope.outer))
        if call.near:
            return f"count(*) {self.choose.pick('>', '<=', '<>')} {self.choose.number(0, 3)}"
        if call.kind == "int":
            return f"{call.sql} {self.choose.pick('>', '<=', '<>')} {self.choose.number(0, 3)}"
        return f"{call.sql} IS {self.choose.pick('', 'NOT ')}NULL"

    def _groups(self, text: str, scope: Scope, where: str) -> Query:
        choose = self.choose
        keys = []
        for _ in range(choose.one_of((1, 1, 2, 2, 3))):
            kind = self.expressions.any_kind()
            inner = replace(scope, outer=None)
            columns = [column for column in inner.columns_of_kinds(kind) if not column.near]
            # What has no column in it is a constant, or a place among what is selected.
            if columns and choose.chance(0.7):
                keys.append(choose.one_of(columns))
            elif columns:
                own = replace(inner, columns=tuple(columns))
                with self.expressions.without_queries():
                    keys.append(self.expressions.exact_expression(own, kind, 1))
        keys = [key for place, key in enumerate(keys) if key.sql not in [k.sql for k in keys[:place]]]
        keys = [key for key in keys if "a" in key.sql and "." in key.sql] or [choose.one_of(scope.columns)]
        keys = [key for key in keys if not key.near and key.kind != "ival"]
        calls = [self.calls.aggregate(scope) for _ in range(choose.one_of((0, 1, 1, 2, 3)))]
        if not keys:
            return self._listed("SELECT", [Term("count(*)", "int"), *calls], f"FROM {text}{where}")
        listed = ", ".join(key.sql for key in keys)
        by = choose.pick("ALL", ", ".join(str(place + 1) for place in range(len(keys))), listed, listed)
        sets = choose.chance(0.3)
        items = [*keys, *calls]
        if sets:
            by = choose.pick(
                f"ROLLUP ({listed})",
                f"CUBE ({listed})",
                f"GROUPING SETS (({listed}), ({keys[0].sql}), ())",
                f"{keys[0].sql}, ROLLUP ({', '.join(key.sql for key in keys[1:]) or keys[0].sql})",
                f"GROUPING SETS (({keys[-1].sql}), CUBE ({listed}))",
                f"ROLLUP ({keys[0].sql}), CUBE ({', '.join(key.sql for key in keys[1:]) or keys[0].sql})",
            )
            items.append(Term(f"{choose.pick('GROUPING', 'GROUPING_ID')}({listed})", "int"))
        elif choose.chance(0.15) and by != "ALL":
            items.append(Term(f"rank() OVER (ORDER BY count(*){choose.one_of(WAYS)})", "int"))
        having = f" HAVING {self._having(scope)}" if choose.chance(0.25) else ""
        unique = None if sets else tuple(f"c{place}" for place in range(len(keys)))
        return self._listed("SELECT", items, f"FROM {text}{where} GROUP BY {by}{having}", unique)

    def _windows(self, text: str, scope: Scope, where: str) -> Query:
        choose = self.choose
        inner = replace(scope, outer=None)
        items = [self.item(inner)] if choose.chance(0.5) else []
        items += [self.calls.window(inner) for _ in range(choose.one_of((1, 1, 2, 3)))]
        qualify = ""
        if choose.chance(0.25):
            call = self.calls.window(inner)
            if call.kind == "int" and not call.near:
                qualify = f" QUALIFY {call.sql} {choose.pick('<', '>=', '<>')} {choose.number(1, 3)}"
        unique = None
        if scope.unique is not None and choose.chance(0.5):
            unique = tuple(f"c{len(items) + place}" for place in range(len(scope.unique)))
            items += scope.unique
        if self.depth:
            items = [item for item in items if not item.near] or [Term("count(*) OVER ()", "int")]
            unique = None
        return self._listed("SELECT", items, f"FROM {text}{where}{qualify}", unique)

    def set_operation(self) -> Query:
        """Rows of two or three queries together."""
        choose = self.choose
        kinds = [self.expressions.any_kind() for _ in range(choose.number(1, 3))]
        by_name = choose.chance(0.12)

        def one() -> str:
            text, scope = self.from_(most=2)
            own = [self.expressions.exact_expression(scope, kind, choose.number(0, 1)) for kind in kinds]
            order = list(range(len(kinds)))
            if by_name:
                choose.seed.shuffle(order)
            where = f" WHERE {self.expressions.truth(scope, 1)}" if choose.chance(0.4) else ""
            listed = ", ".join(f"{own[place].sql} AS c{place}" for place in order)
            return f"SELECT {listed} FROM {text}{where}"

        self.depth += 1
        first = one()
        if by_name:
            listed = ", ".join(f"c{place}" for place in range(len(kinds)))
            first = f"SELECT {listed} FROM ({first}) w"
            text = f"{first} {choose.pick('UNION', 'UNION ALL')} BY NAME {one()}"
        else:
            text = f"{first} {choose.one_of(_SET_WORDS)} {one()}"
            if choose.chance(0.25):
                text = f"{text} {choose.one_of(_SET_WORDS)} {one()}"
        self.depth -= 1
        columns = tuple(Term(f"c{place}", kind, name=f"c{place}") for place, kind in enumerate(kinds))
        return Query(text, columns)

    def whole_query(self) -> Query:
        """A query as a user would send it."""
        choose = self.choose
        self.depth = 0
        self.seen_large = False
        choose.aliases = 0
        with_ = ""
        kept = list(self.views)
        if choose.chance(0.12):
            parts = []
            for place in range(choose.number(1, 2)):
                query = self.nested_query()
                name = f"w{place}"
                parts.append(f"{name} AS {choose.pick('', 'MATERIALIZED ')}({query.sql})")
                self.views = [(name, query)] * 4 + self.views
            with_ = f"WITH {', '.join(parts)} "
        query = self.set_operation() if choose.chance(0.1) else self.select()
        self.views = kept
        if " ORDER BY " not in query.sql.rsplit(")", 1)[-1] and "DISTINCT ON" not in query.sql[:20]:
            query = self._ordered(query)
        self.written += 1
        sql = with_ + query.sql
        return replace(query, sql=without_blanks(sql) if self.written % _HASTY == 0 else sql)

    def _ordered(self, query: Query) -> Query:
        choose = self.choose
        columns = [
            place for place, column in enumerate(query.columns) if not column.near and column.kind != "ival"
        ]
        if not columns or choose.chance(0.5):
            return query
        if len(columns) == len(query.columns) and choose.chance(0.4):
            if choose.chance(0.3):
                order = f"ALL{choose.one_of(WAYS)}"
                chosen = columns
            else:
                chosen = choose.choose_some(columns, len(columns), len(columns))
                order = ", ".join(f"{place + 1}{choose.one_of(WAYS)}" for place in chosen)
            limit = choose.pick("", " LIMIT 5", " LIMIT 3 OFFSET 2", " OFFSET 4", " LIMIT 0", " LIMIT 1")
            return replace(query, sql=f"{query.sql} ORDER BY {order}{limit}", ordered=tuple(chosen))
        chosen = choose.choose_some(columns, 1, 2)
        named = choose.chance(0.5)
        order = ", ".join(
            f"{f'c{p}' if named and query.columns[p].name == f'c{p}' else p + 1}{choose.one_of(WAYS)}"
            for p in chosen
        )
        return replace(query, sql=f"{query.sql} ORDER BY {order}", ordered=tuple(chosen))
