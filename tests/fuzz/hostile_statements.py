"""Cases: statements with words changed, deep, long, or of odd characters, by a connection of few rights."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

import bamquery
from tests.fuzz.cases import MEMORY_LIMIT, FailureError, judged, temporary_folder
from tests.golden.cases import FOLDER, GoldenFile
from tests.plans import EVERY_TYPE, TRIPS

_ODD = (
    "\0",
    "\x1b[2J",
    "\u202e",
    "\ufeff",
    "\U0001f600",
    "é",
    "\ud7ff",
    "\u2028",
    "'",
    '"',
    ";",
    "--",
    "/*",
    "$$",
    "\\",
)
_NUMBERS = (
    "9" * 400,
    "1e999",
    "-1",
    "0x" + "f" * 90,
    "1" * 4400,
    ".",
    "1e-400",
    "170141183460469231731687303715884105728",
)
_CALLS = (
    "repeat('x', 1000000000)",
    "range(1000000000000)",
    "lpad('', 2147483647, 'x')",
    "[1, 2]",
    "regexp_matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(a+)+$')",
)
_TIMEOUT = 4


class HostileStatements:
    """Statements against two tables with a row or none."""

    def __init__(self) -> None:
        """Make the tables; files are allowed in one folder."""
        self._scratch = TemporaryDirectory(dir=temporary_folder())
        self._base = Path(self._scratch.name)
        (self._base / "in").mkdir()
        names = ("queries", "statements", "column_names", "unsupported", "binder_errors", "rules/optimize")
        cases = (case for name in names for case in GoldenFile(FOLDER / f"{name}.txt").cases)
        self._statements = [sql for sql, _ in cases]
        self._words = sorted({word for sql in self._statements for word in sql.split()})
        self._con = self._connected()

    def _connected(self) -> bamquery.Connection:
        con = bamquery.connect(
            memory_limit=MEMORY_LIMIT,
            threads=2,
            statement_timeout=_TIMEOUT,
            enable_external_access=False,
            allowed_directories=[str(self._base / "in")],
            lock_configuration=True,
        )
        for source in (TRIPS, EVERY_TYPE):
            empty = source.schema.empty_table()
            con.load(source.name, pa.Table.from_pylist([{}, {}], schema=empty.schema))
        return con

    def run(self, seed: int) -> str:
        """See `Cases`."""
        sql = self.statement(random.Random(seed))
        ends: list[str] = []
        before = sorted(path.name for path in self._base.iterdir())
        with judged(ascii(sql[:300]), ends):
            for relation in self._con.statements(sql):
                rows = relation.fetchmany(50)
                del rows
        if sorted(path.name for path in self._base.iterdir()) != before:
            raise FailureError(f"access: {sql[:300]!a} changed files that it may not name")
        if len(self._con.tables) != 2:  # some statements drop or make one
            self._con.close()
            self._con = self._connected()
        return ends[0]

    def close(self) -> None:
        """Remove the folder."""
        self._con.close()
        self._scratch.cleanup()

    def statement(self, luck: random.Random) -> str:
        """One statement, or several."""
        words = luck.choice(self._statements).split()
        for _ in range(luck.randint(1, 4)):
            place = luck.randrange(len(words) + 1)
            match luck.randrange(8):
                case 0:
                    del words[place : place + luck.randint(1, 3)]
                case 1:
                    words[place:place] = words[place : place + 2]
                case 2:
                    words[place : place + 2] = reversed(words[place : place + 2])
                case 3 | 4:
                    words.insert(place, luck.choice(self._words))
                case 5:
                    words.insert(place, luck.choice(_NUMBERS + _CALLS))
                case 6 if words:
                    at = luck.randrange(len(words))
                    cut = luck.randrange(len(words[at]) + 1)
                    words[at] = words[at][:cut] + luck.choice(_ODD) + words[at][cut:]
                case 7 if luck.random() < 0.2:
                    depth = luck.choice([40, 400, 4000])
                    opening, closing = luck.choice(
                        [("(", ")"), ("abs(", ")"), ("NOT ", ""), ("-", ""), ("[", "]")]
                    )
                    words.insert(place, opening * depth + "1" + closing * depth)
        return " ".join(words)
