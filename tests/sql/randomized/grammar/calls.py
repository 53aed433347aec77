"""Random calls of aggregates and of window functions."""

from __future__ import annotations

from dataclasses import replace

from tests.sql.randomized.grammar.expressions import LITERALS, Expressions
from tests.sql.randomized.grammar.scope import NUMBERS, Chooser, Scope, Term

_DIRECTIONS = ("", "", " DESC", " NULLS FIRST", " DESC NULLS FIRST", " NULLS LAST", " DESC NULLS LAST")


_IN_PLACE = {"int": "1", "flt": "0.5::DOUBLE", "dec": "1.25", "txt": "lower('A')"}


class Calls:
    """Calls over groups and over windows."""

    def __init__(self, choose: Chooser, expressions: Expressions) -> None:
        self.choose = choose
        self.expressions = expressions

    def terms(self, scope: Scope, *, total: bool, most: int = 2) -> str:
        """Terms of ORDER BY; `total`: no two rows are alike."""
        keys = [column for column in scope.columns if not column.near and column.kind != "ival"]
        wanted = self.choose.choose_some(keys, 0 if total else 1, most)
        if total and scope.unique is not None:
            wanted += [column for column in scope.unique if column not in wanted]
        if not wanted:
            return "1"
        return ", ".join(f"{key.sql}{self.choose.one_of(_DIRECTIONS)}" for key in wanted)

    # Aggregates.

    def aggregate(self, scope: Scope, *, window: bool = False) -> Term:
        """A call whose value does not depend on the rows' order."""
        if window:
            with self.expressions.without_queries():
                return self._filtered(self._aggregate(scope, window), replace(scope, outer=None))
        return self._filtered(self._aggregate(scope, window), scope)

    def _filtered(self, call: Term, scope: Scope) -> Term:
        if self.choose.chance(0.8):
            return call
        return replace(call, sql=f"{call.sql} FILTER (WHERE {self.expressions.truth(scope, 1)})")

    def _argument(self, scope: Scope, kind: str) -> str:
        """An expression with a column of the query itself: of an outer query's alone it is the outer's."""
        inner = replace(scope, outer=None)
        if not inner.columns_of_kinds(kind):
            return "1" if kind in NUMBERS else LITERALS[kind][0]
        if self.choose.chance(0.6):
            columns = [column for column in inner.columns_of_kinds(kind) if not column.near]
            if columns:
                return self.choose.one_of(columns).sql
        return self.expressions.exact_expression(inner, kind, 1).sql

    def _stored(self, scope: Scope, kind: str) -> str:
        columns = [column for column in scope.columns_of_kinds(kind) if column.plain]
        return self.choose.one_of(columns).sql if columns else _IN_PLACE[kind]

    def _aggregate(self, scope: Scope, window: bool) -> Term:
        choose = self.choose
        kind = self.expressions.any_kind()
        value = self._argument(scope, kind)
        whole, exact = self._stored(scope, "int"), self._stored(scope, choose.pick("int", "dec"))
        distinct = choose.pick("", "", "", "DISTINCT ")
        match choose.number(0, 17):
            case 0:
                return Term("count(*)", "int")
            case 1 | 2:
                return Term(f"count({distinct}{value})", "int")
            case 3 | 4:
                return Term(f"{choose.pick('min', 'max')}({distinct}{value})", kind)
            case 5:
                return Term(f"sum({distinct}{self._argument(scope, 'int')})", "int")
            case 6:
                return Term(f"avg({distinct}{exact})", "flt", near=True)
            case 7:
                return Term(f"sum({distinct}{self._stored(scope, 'dec')})", "dec")
            case 8:
                if choose.chance(0.2):  # they lose infinities in DuckDB
                    name = choose.pick("fsum", "favg", "kahan_sum")
                    return Term(f"{name}({exact})", "flt", near=True)
                name = choose.pick("sum", "avg", "mean")
                return Term(f"{name}({self._stored(scope, 'flt')})", "flt", near=True)
            case 9:
                names = ("stddev", "stddev_pop", "variance", "var_pop", "var_samp", "stddev_samp", "sem")
                return Term(f"{choose.one_of(names)}({distinct}{exact})", "flt", near=True)
            case 10:
                return Term(f"{choose.pick('bool_and', 'bool_or')}({self._argument(scope, 'bool')})", "bool")
            case 11:
                return Term(f"{choose.pick('bit_and', 'bit_or', 'bit_xor')}({whole})", "int")
            case 12:
                name = choose.pick("count_if", "countif")
                return Term(f"{name}({self._argument(scope, 'bool')})", "int")
            case 13:
                if kind == "bool" or choose.chance(0.4):
                    return Term(f"median({exact})", "flt", near=True)
                return Term(f"quantile_disc({value}, {choose.pick('0', '0.3', '0.5', '1')})", kind)
            case 14:
                return Term(f"quantile_cont({exact}, {choose.pick('0.25', '0.5', '0.9')})", "flt", near=True)
            case 15:
                names = ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_slope", "regr_r2")
                more = ("regr_intercept", "regr_sxx", "regr_sxy", "regr_syy", "regr_count")
                name = choose.one_of(names + more)
                return Term(f"{name}({exact}, {whole})", "flt" if name != "regr_count" else "int", near=True)
            case 16:
                text = self._stored(scope, "txt")
                order = choose.pick("", " DESC")
                name = choose.pick("string_agg", "group_concat", "listagg")
                return Term(f"{name}({distinct}{text}, ',' ORDER BY {text}{order})", "txt")
            case _:
                return self._of_rows(scope, value, kind, window)

    def _of_rows(self, scope: Scope, value: str, kind: str, window: bool) -> Term:
        """A call that takes one row's value: the order must tell all rows apart."""
        choose = self.choose
        if scope.unique is None or window:
            names = ("skewness", "kurtosis", "entropy", "product")
            name, argument = choose.one_of(names), self._stored(scope, "int")
            if name == "product":  # of zeros, and of numbers beyond DOUBLE, it depends on the rows' order
                argument = f"({argument} % 2 + 3)"
            return Term(f"{name}({argument})", "flt", near=True)
        order = self.terms(scope, total=True, most=1)
        match choose.number(0, 3):
            case 0:
                name = choose.pick("first", "last", "any_value", "arbitrary")
                return Term(f"{name}({value} ORDER BY {order})", kind)
            case 1:
                name = choose.pick("arg_min", "arg_max", "min_by", "max_by", "arg_max_null", "arg_min_null")
                return Term(f"{name}({value}, {self._argument(scope, 'int')} ORDER BY {order})", kind)
            case 2:
                column = choose.one_of(scope.columns)
                if column.near or column.kind == "ival":
                    return Term("count(*)", "int")
                return Term(f"mode({column.sql} ORDER BY {order})", column.kind)
            case _:
                return Term(f"string_agg({self._argument(scope, 'txt')}, '|' ORDER BY {order})", "txt")

    # Windows.

    def window(self, scope: Scope) -> Term:
        """A call over a window: each row's value is determined."""
        choose = self.choose
        draw = choose.seed.random()
        if draw < 0.25:
            name = choose.pick("rank()", "dense_rank()", "percent_rank()", "cume_dist()", "rank_dense()")
            kind = "flt" if name in ("percent_rank()", "cume_dist()") else "int"
            return Term(
                f"{name} OVER ({self._partition(scope)}ORDER BY {self.terms(scope, total=False)})", kind
            )
        if draw < 0.6 or scope.unique is None:
            return self._over(self.aggregate(scope, window=True), self._over_peers(scope))
        if draw < 0.75:
            return self._over(self.aggregate(scope, window=True), self._over_rows(scope))
        return self._row_function(scope)

    def _over(self, call: Term, over: str) -> Term:
        # DuckDB takes infinities and NaN out of sums with EXCLUDE.
        if "EXCLUDE" in over and call.kind == "flt":
            call = Term("count(*)", "int")
        return replace(call, sql=f"{call.sql} OVER ({over})")

    def _row_function(self, scope: Scope) -> Term:
        choose = self.choose
        kind = self.expressions.any_kind()
        with self.expressions.without_queries():
            value = self._argument(scope, kind)
        nulls = choose.pick("", " IGNORE NULLS", " RESPECT NULLS")
        over = self._over_rows(scope)
        offset = choose.pick("1", "2", "0", "-1", "NULL::INTEGER")
        match choose.number(0, 5):
            case 0:
                return Term(f"row_number() OVER ({over})", "int")
            case 1:
                return Term(f"ntile({choose.pick('1', '2', '3', '50')}) OVER ({over})", "int")
            case 2:
                default = choose.one_of(LITERALS[kind])
                if default == "-3":  # of no unsigned type: DuckDB finds that out where there are rows
                    default = "3"
                name = choose.pick("lag", "lead")
                return Term(f"{name}({value}, {offset}, {default}{nulls}) OVER ({over})", kind)
            case 3:
                name = choose.pick("lag", "lead")
                return Term(f"{name}({value}{nulls}) OVER ({over})", kind)
            case 4:
                return Term(f"nth_value({value}, {choose.pick('1', '2', '3')}{nulls}) OVER ({over})", kind)
            case _:
                name = choose.pick("first_value", "last_value", "first", "last")
                return Term(f"{name}({value}{nulls}) OVER ({over})", kind)

    def _partition(self, scope: Scope) -> str:
        keys = [column for column in scope.columns if not column.near and column.kind != "ival"]
        chosen = self.choose.choose_some(keys, 0, 2)
        return f"PARTITION BY {', '.join(key.sql for key in chosen)} " if chosen else ""

    def _bounds(self, offsets: tuple[str, ...]) -> str:
        places = [
            "UNBOUNDED PRECEDING",
            *(f"{offset} PRECEDING" for offset in offsets),
            "CURRENT ROW",
            *(f"{offset} FOLLOWING" for offset in offsets),
            "UNBOUNDED FOLLOWING",
        ]
        start = self.choose.number(0, len(places) - 2)
        if (
            self.choose.chance(0.1)
            and places[start] != "UNBOUNDED FOLLOWING"
            and "FOLLOWING" not in places[start]
        ):
            return places[start]
        least = max(start, 1)
        if "PRECEDING" in places[start]:
            least = 1
        end = places[self.choose.number(least, len(places) - 1)]
        if start == 0 and end == "0 PRECEDING":  # which DuckDB gets wrong in RANGE (docs/sql.md)
            end = "0 FOLLOWING"
        return f"BETWEEN {places[start]} AND {end}"

    def _exclusion(self) -> str:
        if self.choose.chance(0.7):
            return ""
        return self.choose.pick(
            " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"
        )

    def _over_peers(self, scope: Scope) -> str:
        """A window whose frames do not tell peers apart."""
        choose = self.choose
        partition, order = self._partition(scope), f"ORDER BY {self.terms(scope, total=False)}"
        match choose.number(0, 4):
            case 0:
                return f"{partition}{choose.pick('', order)}"
            case 1:
                # EXCLUDE CURRENT ROW and TIES tell peers apart only by themselves: each leaves out as many.
                return f"{partition}{order} GROUPS {self._bounds(('0', '1', '2'))}{self._exclusion()}"
            case 2:
                return f"{partition}{order} RANGE {self._bounds(())}{self._exclusion()}"
            case _:
                keys = [column for column in scope.columns_of_kinds(*NUMBERS, "date", "ts") if column.plain]
                if not keys:
                    return f"{partition}{order}"
                key = choose.one_of(keys)
                offsets = {
                    "int": ("0", "1", "3"),
                    "dec": ("0.5", "1", "100"),
                    "flt": ("0.5", "1", "100"),
                    "date": ("INTERVAL 1 DAY", "INTERVAL 40 DAY", "INTERVAL 1 MONTH"),
                    "ts": ("INTERVAL 1 SECOND", "INTERVAL 13 HOUR", "INTERVAL 2 MONTH"),
                }[key.kind]
                frame = f"RANGE {self._bounds(offsets)}{self._exclusion()}"
                return f"{partition}ORDER BY {key.sql}{choose.one_of(_DIRECTIONS)} {frame}"

    def _over_rows(self, scope: Scope) -> str:
        """A window without peers."""
        order = f"ORDER BY {self.terms(scope, total=True)}"
        frame = f" ROWS {self._bounds(('0', '1', '2', '5'))}{self._exclusion()}"
        return f"{self._partition(scope)}{order}{self.choose.pick('', frame, frame)}"
