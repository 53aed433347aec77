"""`bamquery bench planning --tpch DB`: from the text of each query of TPC-H to the operators that run it.

Once as a new text, in steps; then the same text again; then the same text with other constants, each time
others. Times are processor time of the whole process, of the fastest run each: nothing is read but tables'
descriptions and statistics, which the runs before have left in memory.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from bamquery.catalog.views import inline_views
from bamquery.connection.connection import Connection, connect
from bamquery.engine.constant_folding import fold_constants
from bamquery.engine.device_factory import open_device
from bamquery.plan import optimizer
from bamquery.plan.bound_statements import Query
from bamquery.plan.interning import Interning
from bamquery.plan.nodes import Plan
from bamquery.queries.measuring.machine import describe_machine
from bamquery.queries.speed.suites import suite_queries
from bamquery.session.optimized_plans import keep_optimized
from bamquery.session.result import Result
from bamquery.sql_frontend.parser.parser import parse
from bamquery.sql_frontend.statement_binder import bind
from bamquery.sql_frontend.syntax.dismantling import dismantle
from bamquery.statement_context.garbage_collection import planning

_DATE: Final = re.compile(r"'(\d{4}-\d\d-)(\d\d)'")
_CONSTANT: Final = re.compile(r"--[^\n]*|LIMIT \d+|'(?:[^']|'')*'|(?<![\w.'])\d+(?:\.\d+)?(?![\w.'])")
"""What may be another constant, and what is left as it is: comments, and how many rows are wanted."""
_STEPS: Final = ("parse", "bind", "fold", "rules", "lower")


@dataclass
class Planned:
    """Seconds of one query.

    Attributes:
        name: of its file.
        new: of a text that nobody has asked before.
        again: of the same text.
        other: of the same text with other constants.
        steps: of the new text, by what is done.
        rules: of the new text, by rule, over all passes.
    """

    name: str
    new: float = 0.0
    again: float = 0.0
    other: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)
    rules: dict[str, float] = field(default_factory=dict)


def measure_queries(database: Path, repeat: int, json_path: Path | None = None) -> str:
    """The table of all queries over a database that `bamquery bench sql` has made.

    Args:
        database: its folder.
        repeat: runs of each, of which the fastest counts.
        json_path: where results go besides.
    """
    with connect(database, device="cpu", threads=1) as con:
        queries = suite_queries("tpch")
        for query in queries:  # imports, and tables' descriptions
            con.sql(query.sql).run().close()
        found = []
        for query in queries:
            found.append(measure_query(con, query.name, query.sql, repeat))
            sys.stderr.write(f"{found[-1].new * 1e3:9.1f} ms  {query.name}\n")
    if json_path is not None:
        report = {
            "machine": describe_machine(database),
            "repeat": repeat,
            "results": [asdict(one) for one in found],
        }
        json_path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return table(found)


def measure_query(con: Connection, name: str, sql: str, repeat: int) -> Planned:
    """The fastest of so many runs each."""
    found = Planned(name)
    found.new = _fastest(con, [sql + " " * (run + 1) for run in range(repeat)])
    con.sql(sql).run().close()
    found.again = _fastest(con, [sql] * repeat)
    found.other = _fastest(con, [with_other_constants(sql, run + 1) for run in range(repeat)])
    runs = [_steps(con, sql) for _ in range(repeat)]
    for kind in ("steps", "rules"):
        for step in runs[0][kind]:
            getattr(found, kind)[step] = min(run[kind][step] for run in runs)
    return found


def with_other_constants(sql: str, step: int) -> str:
    """The text with each constant exchanged, equal ones for equal ones; `step` says for which, from 1 to 9.

    Only how many rows are wanted stays, and the numbers 0 and 1.
    """

    def other(found: re.Match[str]) -> str:
        written = found[0]
        date = _DATE.fullmatch(written)
        if date is not None:
            return f"'{date[1]}{(int(date[2]) + step) % 28 + 1:02}'"
        if written.startswith("'"):
            letters = [place for place, letter in enumerate(written) if letter.isalnum()]
            middle = letters[len(letters) // 2] if letters else 0
            return f"{written[:middle]}{step}{written[middle + 1 :]}" if letters else written
        if written.startswith(("-", "L")) or written in ("0", "1"):
            return written
        last = str((int(written[-1]) + step) % 9 + 1)
        return written[:-1] + last

    return _CONSTANT.sub(other, sql)


def table(found: Sequence[Planned]) -> str:
    """Milliseconds of each query, and the means of all."""
    head = ["new", *_STEPS, "again", "other constants"]
    lines = [f"| query | {' | '.join(head)} |", f"|{'---|' * (len(head) + 1)}"]
    for one in found:
        seconds = [one.new, *(one.steps[step] for step in _STEPS), one.again, one.other]
        lines.append(f"| {one.name} | {' | '.join(f'{value * 1e3:.2f}' for value in seconds)} |")
    columns = [[one.new for one in found], *([one.steps[step] for one in found] for step in _STEPS)]
    columns += [[one.again for one in found], [one.other for one in found]]
    means = " | ".join(f"{sum(column) / len(found) * 1e3:.2f}" for column in columns)
    most = " | ".join(f"{max(column) * 1e3:.2f}" for column in columns)
    lines += [f"| mean | {means} |", f"| most | {most} |"]
    return "\n".join(lines) + "\n"


def _fastest(con: Connection, texts: Sequence[str]) -> float:
    seconds = []
    for text in texts:
        began = time.process_time()
        result = con.sql(text).run()
        seconds.append(time.process_time() - began)
        result.close()
    return min(seconds)


def _steps(con: Connection, sql: str) -> dict[str, dict[str, float]]:
    """What `sql(text).run()` does with a new text, step by step."""
    session = con._session
    steps = dict.fromkeys(_STEPS, 0.0)
    rules: dict[str, float] = {}

    @contextmanager
    def timed(into: dict[str, float], name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        into[name] = into.get(name, 0.0) + time.process_time() - began

    def timed_rule(rule: Callable[[Plan], Plan], plan: Plan) -> Plan:
        with timed(rules, rule.__name__):
            return rule(plan)

    with planning():
        with timed(steps, "parse"):
            trees = parse(sql)
        dismantle(trees)
        with timed(steps, "bind"):
            (statement,) = bind(sql, session.catalog())
            assert isinstance(statement, Query)
            bound = inline_views(statement.plan)
        steps["bind"] -= steps["parse"]
        with timed(steps, "fold"):
            plan = fold_constants(bound)
        with timed(steps, "rules"):
            plan = _optimize(plan, timed_rule)
        keep_optimized(bound, plan)
        device, _ = open_device("cpu")
        with timed(steps, "lower"):
            result: Any = Result(bound, device, session.settings)
    result.close()
    return {"steps": steps, "rules": rules}


def _optimize(plan: Plan, apply: Callable[[Callable[[Plan], Plan], Plan], Plan]) -> Plan:
    """As `optimizer.optimize`, with `apply` in each rule's place."""
    interned = Interning()
    plan = interned(plan)
    while True:
        before = plan
        for rule in optimizer.RULES:
            plan = apply(rule, plan)
        plan = interned(plan)
        if plan is before:
            return plan
