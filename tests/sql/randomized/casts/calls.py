"""Calls of every function and aggregate of the reference, with arguments at the ends of their types.

    python -m tests.sql.randomized.casts.calls --calls 100000 --seed 1 [--jobs 2] [--device cuda:0]
    python -m tests.sql.randomized.casts.calls --seed 1 --only 4200      # the calls over one table again

Each call is asked over a table of a few rows, or of constants alone, and counts once for each value of its
answer; where one side fails, row by row. What differs is shown with its statement; `known_calls` says what is
known to.
"""

from __future__ import annotations

import argparse
import copyreg
import random
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from bamquery.errors import BamQueryError, SqlError, UnsupportedError
from bamquery.function_catalog.function_reference import FunctionRecord, functions
from bamquery.function_catalog.signature import Signature
from bamquery.sql_frontend.functions.scalar.dates import DATE_PARTS
from tests.sql.randomized.casts import extremes
from tests.sql.randomized.casts.compare import Answer, Difference, Pair, differences
from tests.sql.randomized.casts.known_calls import known_difference
from tests.sql.randomized.workers import Workers, check, stoppable

ROWS: Final = 16
GROUPS: Final = 3
PER_TABLE: Final = 200
"""Calls over one table's rows."""

_LEFT_OUT: Final = frozenset(
    {
        *("now", "get_current_timestamp", "transaction_timestamp", "current_timestamp", "today"),
        *("current_date", "localtimestamp", "current_localtimestamp", "localtime", "current_localtime"),
        *("typeof", "pg_typeof", "approx_count_distinct"),
    }
)
"""Of the moment, of types that have other names, and an estimate in DuckDB."""

_INTEGRAL: Final = tuple(name for name in extremes.TYPES if name.endswith("INT") or name == "INTEGER")
_DECIMAL: Final = tuple(name for name in extremes.TYPES if name.startswith("DECIMAL"))
_NUMERIC: Final = (*_INTEGRAL, *_DECIMAL, "FLOAT", "DOUBLE")
_MOMENTS: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ")
_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "ANY": tuple(extremes.TYPES),
    "NUMERIC": _NUMERIC,
    "INTEGRAL": _INTEGRAL,
    "TEMPORAL": (*_MOMENTS, "TIME", "TIME_NS", "INTERVAL"),
    "DECIMAL": _DECIMAL,
    "DOUBLE": ("DOUBLE", "DOUBLE", "FLOAT", "INTEGER", "BIGINT", "DECIMAL(18,3)"),
    "BIGINT": ("BIGINT", "BIGINT", "INTEGER", "TINYINT", "UINTEGER"),
    "INTEGER": ("INTEGER", "INTEGER", "SMALLINT", "UTINYINT"),
    "TIMESTAMP": _MOMENTS,
}
"""Types of arguments for a parameter's type; of others only itself."""

_TEXTS: Final = (
    "", "a", "abc", "ABC", " x ", "\t", "é", "e\u0301", "日本語", "ß", "İ", "a,b,c", "aXbX", "%20", "%zz",
    "YWJj", "YW", "2024-02-29", "2024-02-29 10:11:12.5", "path/to/file.csv", "/", "\\", "a/b\\c.tar.gz",
    "0", "-1", "ff", "0101", "_", "%", "a%b_c", "[a-c]", "(a)(b)?", "a|b", "NULL", "👍🏽", "ab" * 20,
    "x" * 300,
)  # fmt: skip
_POOLS: Final[Mapping[str, Sequence[str]]] = {
    "options": ("", "i", "c", "g", "s", "l", "ig", " i", "k", "x"),
    "escape": ("$", "\\", "", "ab"),
    "separator": (",", "", "ab", "é"),
    "characters": ("a", "ab", "", "é", "* "),
    "pattern": ("a", "a%", "_b_", "%", "[abc]+", "(a)(b)?", "^.*$", "a$%b", ".", "(", "", "\\d+"),
}
_TIME_PATTERNS: Final = (
    "%Y-%m-%d",
    "%d.%m.%y %H:%M",
    "%Y %j",
    "%G %V %u",
    "%A %B",
    "%c",
    "%f %g",
    "%I %p",
    "%%",
)
_NAMES_OF_PARTS: Final = tuple(DATE_PARTS)
_BUILDERS: Final = frozenset({"repeat", "lpad", "rpad"})
"""Functions that make as much text as their numbers say."""
_MACROS: Final = frozenset({"geomean", "geometric_mean", "count_if", "countif"})
"""Aggregates that are macros in DuckDB, which take nothing else within or behind their parentheses."""
_ROUNDED: Final = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot", "exp"),
        *("gamma", "lgamma", "ln", "log", "log10", "log2", "pow", "power", "sin", "sinh", "tan", "tanh"),
        *("sqrt", "fmod", "fdiv", "radians", "degrees", "julian", "epoch", "date_part", "datepart"),
        *("jaro_similarity", "jaro_winkler_similarity"),
    }
)
"""Functions that libraries round in their own ways."""
_ADDED: Final = frozenset(
    {
        *("sum", "avg", "mean", "fsum", "favg", "kahan_sum", "sumkahan", "product", "geomean"),
        *("geometric_mean", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "sem"),
        *("mad", "skewness", "kurtosis", "kurtosis_pop", "corr", "covar_pop", "covar_samp", "regr_avgx"),
        *("regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
        *("entropy", "median", "quantile_cont"),
    }
)
"""Aggregates that round from row to row: of tame numbers only, whose order does not matter."""
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class Call:
    """One call.

    Attributes:
        name: of the function.
        kind: where it stands: scalar, aggregate or window.
        sql: the call itself.
        table: what it reads; "" where all arguments are constants.
        tolerance: by which its floats may differ.
    """

    name: str
    kind: str
    sql: str
    table: str
    tolerance: float = 0.0

    def statement(self, row: int | None = None) -> str:
        """Asks for all rows or groups in order, or for one."""
        if not self.table:
            return f"SELECT {self.sql}"
        if self.kind == "aggregate":
            chosen = "" if row is None else f" WHERE place % {GROUPS} = {row}"
            group = f"place % {GROUPS}"
            return f"SELECT {self.sql} FROM {self.table}{chosen} GROUP BY {group} ORDER BY {group}"
        chosen = "" if row is None or self.kind == "window" else f" WHERE place = {row}"
        return f"SELECT {self.sql} FROM {self.table}{chosen} ORDER BY place"

    @property
    def rows(self) -> int:
        """Values of its answer that can be asked for one by one; 0 where there is but all of it."""
        if not self.table or self.kind == "window":
            return 0
        return GROUPS if self.kind == "aggregate" else ROWS


class Calls:
    """Draws tables, and calls of the functions of those names, of all if there are none."""

    def __init__(self, choose: random.Random, names: Collection[str] = ()) -> None:
        self._choose = choose
        self._records = [
            record
            for record in functions()
            if record.kind != "table"
            and record.section.title != "The connection"
            and record.name not in _LEFT_OUT
            and (not names or record.name in names)
        ]

    def columns(self) -> dict[str, tuple[str, pa.Array[Any]]]:
        """`place`, from 0, a column of each type at its ends, and tame numbers and texts."""
        found: dict[str, tuple[str, pa.Array[Any]]] = {"place": ("BIGINT", pa.array(range(ROWS), pa.int64()))}
        for name in extremes.TYPES:
            values = [self._value(name) for _ in range(ROWS)]
            found[_column(name)] = (name, extremes.column(name, values))
        for place in range(2):
            tame = [self._tame() for _ in range(ROWS)]
            found[f"tame{place}"] = ("DOUBLE", pa.array(tame, pa.float64()))
            words = [
                None if self._choose.random() < 0.1 else self._choose.choice(_TEXTS) for _ in range(ROWS)
            ]
            found[f"word{place}"] = ("VARCHAR", pa.array(words, pa.large_string()))
        return found

    def call(self) -> Call:
        """Of any function, each as likely as the others."""
        record = self._choose.choice(self._records)
        signature = self._choose.choice(record.signatures)
        arguments = list(self._arguments(record, signature))
        named = {column for _, columns in arguments for column in columns}
        table = "" if not named and record.kind == "scalar" else "calls"
        if _column("INTERVAL") in named:
            table = "spans"
        inner = ", ".join(sql for sql, _ in arguments)
        tolerance = _TOLERANCE if record.name in _ROUNDED or record.name in _ADDED else 0.0
        if record.kind == "scalar":
            return Call(record.name, "scalar", f"{record.name}({inner})", table, tolerance)
        return self._over_rows(record, inner, table, tolerance)

    def _over_rows(self, record: FunctionRecord, inner: str, table: str, tolerance: float) -> Call:
        choose = self._choose
        if record.name in _MACROS:
            return Call(record.name, "aggregate", f"{record.name}({inner})", table, tolerance)
        if record.kind == "aggregate" and choose.random() < 0.7:
            order = " ORDER BY place DESC" if inner and choose.random() < 0.2 else ""
            kept = f" FILTER (WHERE place % {choose.choice((2, 5))} > 0)" if choose.random() < 0.2 else ""
            distinct = "DISTINCT " if inner and not order and choose.random() < 0.1 else ""
            sql = f"{record.name}({distinct}{inner}{order}){kept}"
            return Call(record.name, "aggregate", sql, table, tolerance)
        frame = choose.choice(
            ("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 1 PRECEDING AND 3 FOLLOWING",
             " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
        )  # fmt: skip
        over = f"OVER (PARTITION BY place % {GROUPS} ORDER BY place{frame})"
        return Call(record.name, "window", f"{record.name}({inner}) {over}", table, tolerance)

    def _arguments(self, record: FunctionRecord, signature: Signature) -> Iterator[tuple[str, Sequence[str]]]:
        """SQL of each argument, and the columns in it."""
        required = sum(not parameter.optional for parameter in signature.parameters)
        count = self._choose.randint(required, len(signature.parameters))
        given = list(signature.parameters[:count])
        if signature.repeated:
            given += [signature.parameters[-1]] * self._choose.randrange(3)
        shared = self._choose.choice(_KINDS["ANY"])
        for parameter in given:
            # Arguments of any type mostly have one type; numbers too.
            kind = (
                shared
                if parameter.type == "ANY" and self._choose.random() < 0.8
                else self._kind(parameter.type)
            )
            yield self._argument(record, parameter.name, kind)

    def _kind(self, wanted: str) -> str:
        if self._choose.random() < 0.03:
            return self._choose.choice(_KINDS["ANY"])
        return self._choose.choice(_KINDS.get(wanted, (wanted,)))

    def _argument(self, record: FunctionRecord, name: str, kind: str) -> tuple[str, Sequence[str]]:
        choose = self._choose
        if name == "part" and record.name not in ("contains", "position", "strpos", "instr"):
            return extremes.quote_string(choose.choice(_NAMES_OF_PARTS)), ()
        if name == "pattern" and record.name in ("strftime", "strptime", "try_strptime"):
            return extremes.quote_string(choose.choice(_TIME_PATTERNS)), ()
        if name == "options" or (name in _POOLS and choose.random() < 0.7):
            return extremes.quote_string(choose.choice(_POOLS[name])), ()
        if name == "q":
            return choose.choice(("0", "0.5", "1", "-0.5", "0.25", "0.9::DOUBLE", "-0.0", "1.5", "NULL")), ()
        if name in ("digits", "group") or (record.name in _BUILDERS and name == "n"):
            return str(choose.choice((0, 1, 2, 3, 9, 40, -1, -3, -40))), ()
        if (
            record.kind != "scalar"
            and record.name in _ADDED
            and kind in ("FLOAT", "DOUBLE", *_DECIMAL, *_INTEGRAL)
        ):
            column = choose.choice(("tame0", "tame1"))
            small = choose.choice(("", "", "::DECIMAL(9,2)", "::FLOAT", "::INTEGER"))
            return f"{column}{small}" if small != "::INTEGER" else f"floor({column})::INTEGER", (column,)
        if choose.random() < 0.3 and record.kind == "scalar":
            if kind == "VARCHAR" and choose.random() < 0.7:
                return extremes.quote_string(choose.choice(_TEXTS)), ()
            value = self._value(kind)
            if "\0" not in value.sql:
                return value.sql, ()
        if kind == "VARCHAR" and choose.random() < 0.8:
            column = choose.choice(("word0", "word1"))
            return column, (column,)
        return _column(kind), (_column(kind),)

    def _value(self, name: str) -> extremes.Value:
        if self._choose.random() < 0.7:
            return self._choose.choice(extremes.extremes(name))
        return extremes.draw_value(self._choose, name)

    def _tame(self) -> float | None:
        if self._choose.random() < 0.1:
            return None
        return self._choose.randint(-4000, 4000) / 4


def _column(name: str) -> str:
    return "of_" + "".join(sign if sign.isalnum() else "_" for sign in name).lower().strip("_")


def _interval(months: int, days: int, nanoseconds: int) -> pa.MonthDayNano:
    return pa.MonthDayNano([months, days, nanoseconds])


# Arrow's class says that it is a builtin: differences of intervals could not come out of their process.
copyreg.pickle(pa.MonthDayNano, lambda value: (_interval, tuple(value)))


@dataclass
class Tally:
    """What became of calls.

    Attributes:
        counts: `calls`, and values `alike`, `errors` on both sides, `refused` by BamQuery before it ran,
            `unasked` by DuckDB, `known` to differ, `differ`.
        known: how often for each of those reasons.
        failures: statements with what differs.
        places: of these statements, the first call over their table.
        refusals: how often each function was.
    """

    counts: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Difference]] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)

    def include(self, other: Tally) -> None:
        """Count another's too."""
        self.counts += other.counts
        self.known += other.known
        self.failures += other.failures
        self.places |= other.places
        self.refusals += other.refusals

    def add(self, outcome: str, count: int = 1) -> None:
        self.counts[outcome] += count

    def note_difference(self, call: Call, statement: str, found: Difference) -> None:
        why = known_difference(call.name, call.sql, found)
        self.add("differ" if why is None else "known")
        if why is None:
            self.failures.append((statement, found))
        else:
            self.known[why] += 1


def ask(pair: Pair, call: Call, tally: Tally, row: int | None = None) -> None:
    """One call of both, row by row where one of them fails and the other does not."""
    statement = call.statement(row)
    theirs = pair.their_answer(statement)
    ours = pair.our_answer(statement)
    if isinstance(ours, UnsupportedError) or (isinstance(ours, SqlError) and isinstance(theirs, pa.Table)):
        tally.add("refused")
        tally.refusals[call.name] += 1
    elif _is_unasked(theirs) and isinstance(ours, pa.Table | SqlError):
        tally.add("unasked")
    elif isinstance(ours, pa.Table) and isinstance(theirs, pa.Table):
        found = differences(ours, theirs, call.tolerance)
        tally.add("alike", max(ours.num_rows, 1) - len(found))
        for difference in found:
            tally.note_difference(call, statement, difference)
    elif not isinstance(theirs, pa.Table | duckdb.Error | BamQueryError) and isinstance(ours, BamQueryError):
        tally.add("errors")  # an error of DuckDB's that its client cannot tell
    elif row is None and call.rows and isinstance(ours, pa.Table) != isinstance(theirs, pa.Table):
        for place in range(call.rows):
            ask(pair, call, tally, place)
    else:
        found = differences(ours, theirs)
        if found:
            detail = Difference(-1, 0, _describe_answer(ours), _describe_answer(theirs))
            tally.note_difference(call, statement, detail)
        else:
            tally.add("errors")


def _is_unasked(answer: Answer) -> bool:
    kinds = (
        duckdb.BinderException,
        duckdb.NotImplementedException,
        duckdb.ParserException,
        duckdb.CatalogException,
    )
    return isinstance(answer, kinds)


def _describe_answer(answer: Answer) -> Any:
    if isinstance(answer, pa.Table):
        return (
            answer.column(0).cast(pa.large_string(), safe=False).to_pylist()[:1]
            if _is_plain(answer)
            else "rows"
        )
    return f"{type(answer).__name__}: {str(answer).splitlines()[0][:150]}"


def _is_plain(answer: pa.Table) -> bool:
    kind = answer.column(0).type
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_large_string(kind)


def run(calls: int, seed: int, names: Collection[str] = (), *, until_failure: bool = False) -> Tally:
    """So many calls, a table for each `PER_TABLE`; none behind the first that fails, if they say so."""
    tally = Tally()
    for first in range(0, calls, PER_TABLE):
        asked = min(PER_TABLE, calls - first)
        tally.include(ask_table(first, seed, asked, names=names, until_failure=until_failure))
        if until_failure and tally.failures:
            break
    return tally


def ask_table(
    first: int,
    seed: int,
    calls: int = PER_TABLE,
    device: str = "cpu",
    names: Collection[str] = (),
    *,
    until_failure: bool = False,
) -> Tally:
    """The calls of a seed from the `first` one on, over one table's rows."""
    tally = Tally()
    drawn = Calls(random.Random(f"{seed} {first}"), names)
    columns = drawn.columns()
    with stoppable(), Pair(device) as pair:
        pair.load("spans", columns)
        pair.load("calls", {name: c for name, c in columns.items() if c[0] != "INTERVAL"})
        for _ in range(calls):
            check()
            ask(pair, drawn.call(), tally)
            tally.add("calls")
            if until_failure and tally.failures:
                break
    tally.places = dict.fromkeys((statement for statement, _ in tally.failures), first)
    return tally


def main(arguments: Sequence[str]) -> int:
    """Runs, and shows what differs; 1 if anything does."""
    parser = argparse.ArgumentParser(description="Calls of every function, asked of both.")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--function", action="append", default=[], help="only these")
    parser.add_argument("--only", type=int, metavar="FIRST", help="the calls over one table again")
    given = parser.parse_args(arguments)
    started = time.perf_counter()
    firsts = range(0, given.calls, PER_TABLE) if given.only is None else (given.only,)
    work = partial(ask_table, seed=given.seed, device=given.device, names=given.function)
    tally = Tally()
    for done in Workers[int, Tally](given.jobs).results(work, firsts):
        tally.include(done)
    for statement, found in tally.failures:
        again = f"--seed {given.seed} --only {tally.places[statement]}"
        print(f"{again}: {statement}\n    ours {found.ours!r}, theirs {found.theirs!r} (row {found.row})")
    for why, count in tally.known.most_common():
        print(f"  known {count}: {why}")
    print("  refused:", dict(tally.refusals.most_common(12)))
    values = sum(tally.counts.values()) - tally.counts["calls"]
    print(f"  {values} values in {time.perf_counter() - started:.0f} s")
    print(f"seed {given.seed}: {dict(tally.counts)}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
