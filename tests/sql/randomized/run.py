"""Random queries on BamQuery and DuckDB side by side, many a second.

    python -m tests.sql.randomized.run --queries 100000 --seed 1 [--jobs 2] [--log differences.log]
    python -m tests.sql.randomized.run --seed 17 --only 42     # one query again: both answers
    python -m tests.sql.randomized.run --forms                 # over packed tables

A seed makes one database: its tables, its views and `PER_DATABASE` queries over them. So what failed is found
again by its seed and its number.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest import mock

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

import bamquery
from bamquery.connection.connection import Connection
from bamquery.engine.operators.join.strategy import JoinTask
from bamquery.engine.operators.scan.stored_scan import StoredScan
from bamquery.errors import BamQueryError, ExecutionError, SqlError, UnsupportedError
from tests.forced_forms import FORMS, forced_form
from tests.oracle import connect
from tests.sql.randomized.compare import difference
from tests.sql.randomized.grammar.queries import Queries
from tests.sql.randomized.grammar.scope import Chooser
from tests.sql.randomized.grammar.sources import Query
from tests.sql.randomized.grammar.special import VIEW_OF_NULL, Special
from tests.sql.randomized.grammar.tables import Table, decode_dictionaries, random_tables
from tests.sql.randomized.workers import Workers, check, stoppable

PER_DATABASE = 200
_SPECIAL = 4
"""One in so many queries is of the grammar of names and other special ones."""


@dataclass
class Tally:
    """What became of queries.

    Attributes:
        counts: `rows` and `empty` answers that are alike, `errors` on both sides, `order` where one of them
            fails only as its optimiser arranged the work, `changed` where DuckDB's optimiser changes its
            answer and ours is the one that it gives without, `refused` what BamQuery says it does not do,
            `unasked` what DuckDB does not do, `broken` where it fails by a fault of its own, `invalid` what
            both find wrong before they run it, `differ`.
        failures: seed, number, what is different, and the query.
        notes: the same of what one of them does not do, or both.
        reasons: how often each of these was given.
        seconds: spent on each side.
        longest: seconds of the query that took longest, its seed and number.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, int, str, str]] = field(default_factory=list)
    notes: list[tuple[int, int, str, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    longest: tuple[float, int, int] = (0.0, 0, 0)

    def add(self, other: Tally) -> None:
        """Count another's too."""
        self.counts += other.counts
        self.failures += other.failures
        self.reasons += other.reasons
        self.notes += other.notes
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)

    def report(self) -> str:
        """The counts and their shares, and what was refused."""
        total = sum(self.counts.values())
        lines = [f"{total} queries"]
        lines += [
            f"  {name:8} {count:7} {100 * count / total:6.2f} %" for name, count in self.counts.most_common()
        ]
        lines += [f"  refused {count}: {reason}" for reason, count in self.reasons.most_common(15)]
        return "\n".join(lines)


class Database:
    """One seed's tables and views in both, and its queries."""

    def __init__(self, seed: int, device: str = "cpu", threads: int = 1, *, packed: bool = False) -> None:
        """`packed`: tables are, each seed's vectors in the next form that they can have."""
        self.seed = seed
        choose = random.Random(seed)
        self.tables = random_tables(choose)
        self.queries = Queries(Chooser(choose), self.tables)
        self.special = Special(Chooser(random.Random(f"special {seed}")), self.tables)
        self.theirs: duckdb.DuckDBPyConnection = connect()
        with forced_form(FORMS[seed % len(FORMS)]) if packed else nullcontext():
            self.ours: Connection = bamquery.connect(threads=threads, device=device)
            for table in self.tables:
                self._create(table)
        for place in range(2):
            self._view(f"seen{place}")
        for side in (self.ours.sql, self.theirs.execute):
            side(VIEW_OF_NULL)

    def _create(self, table: Table) -> None:
        self.ours.load(table.name, table.data)
        self.theirs.register("given", decode_dictionaries(table.data))
        self.theirs.execute(f"CREATE TABLE {table.name} AS SELECT * FROM given")
        self.theirs.unregister("given")

    def _view(self, name: str) -> None:
        query = self.queries.nested_query()
        try:
            self.theirs.execute(f"CREATE VIEW {name} AS {query.sql}")
            self.ours.sql(f"CREATE VIEW {name} AS {query.sql}")
        except (duckdb.Error, BamQueryError):
            return
        self.queries.views.append((name, query))

    def draw(self, number: int) -> Query:
        """The query of that number; they are drawn one after the other."""
        return self.special.whole_query() if number % _SPECIAL == _SPECIAL - 1 else self.queries.whole_query()

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()

    def ask(self, query: Query, tally: Tally, number: int) -> None:
        """One query of both."""
        started = time.perf_counter()
        theirs = self.their_answer(query.sql)
        asked = time.perf_counter()
        ours = self.our_answer(query.sql)
        tally.seconds["duckdb"] += asked - started
        tally.seconds["bamquery"] += time.perf_counter() - asked
        if time.perf_counter() - started > tally.longest[0]:
            tally.longest = (time.perf_counter() - started, self.seed, number)
        outcome, why = self._outcome(query, ours, theirs)
        check()
        tally.counts[outcome] += 1
        if outcome == "refused":
            tally.reasons[str(ours).splitlines()[0]] += 1
            tally.notes.append((self.seed, number, str(ours).splitlines()[0], query.sql))
        if outcome in ("unasked", "broken", "invalid"):
            tally.reasons[f"{outcome}: {why}"] += 1
            tally.notes.append((self.seed, number, f"{outcome}: {why}", query.sql))
        if outcome == "differ":
            tally.failures.append((self.seed, number, why, query.sql))

    def _outcome(
        self, query: Query, ours: pa.Table | Exception, theirs: pa.Table | Exception
    ) -> tuple[str, str]:
        if isinstance(theirs, _OF_DUCKDB):
            return "broken", _describe_answer(theirs)
        if isinstance(ours, UnsupportedError):
            return "refused", ""
        if isinstance(ours, pa.Table) and isinstance(theirs, pa.Table):
            why = difference(ours, theirs, query.ordered)
            if not why:
                return ("rows" if ours.num_rows else "empty", "")
            # Such as groups that HAVING loses beside an aggregate whose FILTER is found to be never true.
            written = self._their_answer_as_written(query.sql)
            if isinstance(written, pa.Table) and not difference(ours, written, query.ordered):
                return "changed", why
            return "differ", why
        if isinstance(theirs, _OF_THE_TEXT):
            if isinstance(ours, SqlError):
                return "invalid", _describe_answer(theirs)
            return "unasked", _describe_answer(theirs)
        if isinstance(ours, SqlError) and str(ours).startswith("BY NAME needs columns of different names"):
            return (
                "unasked",
                "names twice, which DuckDB refuses only where nothing is sorted by an expression",
            )
        if isinstance(ours, ExecutionError) and isinstance(theirs, duckdb.Error):
            return "errors", ""
        if isinstance(ours, SqlError) and isinstance(
            theirs, _OF_VALUES[:2]
        ):  # a constant that does not convert
            return "errors", ""
        if isinstance(theirs, pa.Table) and isinstance(ours, ExecutionError):
            if isinstance(self._their_answer_as_written(query.sql), _OF_VALUES):
                return "order", ""
        elif isinstance(theirs, _OF_VALUES) and isinstance(ours, pa.Table):
            if not isinstance(self.our_answer(query.sql, optimized=False), pa.Table):
                return "order", ""
            # DuckDB computes what a FILTER leaves out, too.
            unfiltered = self.our_answer(_without_filters(query.sql), optimized=False)
            if isinstance(unfiltered, ExecutionError):
                return "order", ""
            written = self._their_answer_as_written(query.sql)
            if isinstance(written, pa.Table) and not difference(ours, written, query.ordered):
                return "order", ""
            # A subquery with several rows, on a side of INTERSECT that nobody needs: the other one is empty.
            if not ours.num_rows and self._is_empty_with_lenient_subqueries(query.sql):
                return "order", ""
        return "differ", f"{_describe_answer(ours)}; DuckDB: {_describe_answer(theirs)}"

    def _their_answer_as_written(self, sql: str) -> pa.Table | duckdb.Error:
        """DuckDB's answer once it computes everything as it is written."""
        self.theirs.execute("PRAGMA disable_optimizer")
        try:
            return self.their_answer(sql)
        finally:
            self.theirs.execute("PRAGMA enable_optimizer")

    def _is_empty_with_lenient_subqueries(self, sql: str) -> bool:
        self.theirs.execute("SET scalar_subquery_error_on_multiple_rows = false")
        try:
            answer = self.their_answer(sql)
        finally:
            self.theirs.execute("RESET scalar_subquery_error_on_multiple_rows")
        return isinstance(answer, pa.Table) and not answer.num_rows

    def their_answer(self, sql: str) -> pa.Table | duckdb.Error:
        try:
            return self.theirs.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            return error

    def our_answer(self, sql: str, *, optimized: bool = True) -> pa.Table | Exception:
        try:
            if optimized:
                return self.ours.sql(sql).to_arrow()
            # As it is written, with sides of joins that cannot matter since the other one is empty, and with
            # rows of which a join's keys tell that none will be asked for.
            as_written = mock.patch("bamquery.session.optimized_plans.optimize", lambda plan: plan)
            whole_sides = mock.patch.object(JoinTask, "gives_nothing", return_value=False)
            no_filters = mock.patch.object(StoredScan, "push_dynamic_filter", return_value=False)
            with as_written, whole_sides, no_filters:
                self.ours.set("plan_cache", False)
                try:
                    return self.ours.sql(sql).to_arrow()
                finally:
                    self.ours.set("plan_cache", True)
        except Exception as error:
            return error


_OF_THE_TEXT = (
    duckdb.BinderException,
    duckdb.InvalidTypeException,  # rows that BETWEEN does not take
    duckdb.NotImplementedException,
    duckdb.ParserException,
)
_OF_DUCKDB = (duckdb.InternalException, duckdb.FatalException)
_OF_VALUES = (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException)


def _without_filters(sql: str) -> str:
    def plain(node: exp.Expr) -> exp.Expr:
        return node.this if isinstance(node, exp.Filter) else node

    return sqlglot.parse_one(sql, dialect="duckdb").transform(plain).sql("duckdb")


def _describe_answer(answer: pa.Table | Exception) -> str:
    if isinstance(answer, pa.Table):
        return f"{answer.num_rows} rows"
    return f"{type(answer).__name__}: {' '.join(str(answer).split())[:200]}"


def run(seed: int, queries: int = PER_DATABASE, device: str = "cpu", *, packed: bool = False) -> Tally:
    """The queries of one seed; those that were answered, where Ctrl-C ends it."""
    tally = Tally()
    gc.set_threshold(
        100_000, 50, 50
    )  # syntax trees are many small objects that live on, which it would look at for long
    with stoppable(), closing(Database(seed, device, packed=packed)) as database:
        for number in range(queries):
            check()
            database.ask(database.draw(number), tally, number)
    return tally


def show(seed: int, number: int, *, packed: bool) -> None:
    """One query, and both answers."""
    database = Database(seed, packed=packed)
    query = [database.draw(place) for place in range(number + 1)][number]
    ours, theirs = database.our_answer(query.sql), database.their_answer(query.sql)
    print(query.sql, "", "BamQuery:", ours, "", "DuckDB:", theirs, "", sep="\n")
    for name, view in database.queries.views:
        if name in query.sql:
            print(f"{name}: {view.sql}")
    print(database._outcome(query, ours, theirs))
    database.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="the first one; each is a database")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--forms", action="store_true", help="tables are packed, each seed's in another form")
    parser.add_argument("--only", type=int, help="show this query of the seed")
    parser.add_argument("--log", type=Path, help="where differences are written as they are found")
    parser.add_argument("--notes", action="store_true", help="write what one of them refuses, too")
    arguments = parser.parse_args()
    if arguments.only is not None:
        show(arguments.seed, arguments.only, packed=arguments.forms)
        return 0
    seeds = range(arguments.seed, arguments.seed + -(-arguments.queries // PER_DATABASE))
    tally = Tally()
    started = time.perf_counter()
    log = arguments.log.open("a") if arguments.log else sys.stdout
    workers: Workers[int, Tally] = Workers(arguments.jobs)
    of_seed = partial(run, device=arguments.device, packed=arguments.forms)
    for place, done in enumerate(workers.results(of_seed, seeds), 1):
        tally.add(done)
        for found in [*done.failures, *(done.notes if arguments.notes else ())]:
            print("seed {} --only {}: {}\n  {}".format(*found), file=log, flush=True)
        if place % 25 == 0:
            print(f"{place} of {len(seeds)} databases: {dict(tally.counts)}", flush=True)
    elapsed = time.perf_counter() - started
    if workers.stopped:
        print("stopped: what had been answered by then counts")
    print(f"seeds {seeds[0]} to {seeds[-1]}: {tally.report()}")
    spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in tally.seconds.items())
    print(f"  {elapsed:.0f} s, {sum(tally.counts.values()) / elapsed:.0f} a second; {spent}")
    print("  the longest took {:.1f} s: seed {} --only {}".format(*tally.longest))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
