"""What runs under ThreadSanitizer: the queries, by several connections and several threads of each.

`python -m tests.races.process MODULE FOLDER SECONDS`, or `… MODULE --planted` for two threads that write into
one array.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

THREADS = 2
"""Of each query."""


def main() -> int:
    """0 where all answers are right; ThreadSanitizer has its own status."""
    module, folder = sys.argv[1:3]
    _use_module(Path(module))
    if folder == "--planted":
        _write_into_one_array()
        return 0
    return _ask(Path(folder), float(sys.argv[3]))


def _use_module(path: Path) -> None:
    """In the place of the package's own."""
    spec = importlib.util.spec_from_file_location("bamquery._native", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bamquery._native"] = module
    spec.loader.exec_module(module)


def _write_into_one_array() -> None:
    import numpy as np

    from bamquery import _native

    rows = 1 << 20
    source = np.ones(rows // 8, np.uint8)
    target = np.zeros(rows // 8, np.uint8)
    start = threading.Barrier(2)

    def write() -> None:
        start.wait()
        for _ in range(50):
            _native.copy_bits(source, 0, rows, target, 0)

    _run([write, write])


def _ask(folder: Path, seconds: float) -> int:
    import bamquery
    from tests.races.workloads import FRAGMENTS, QUERIES, SETTINGS, statements

    with bamquery.connect(folder / "t.bq", device="cpu", threads=1) as alone:
        for statement in statements():
            alone.sql(statement)
        expected = {name: alone.sql(text).fetchall() for name, text in QUERIES.items()}
    begun = time.monotonic()
    wrong: list[str] = []
    asked = 0
    enough = threading.Event()

    def ask(connection: Any, name: str) -> None:
        found = connection.sql(QUERIES[name]).fetchall()
        if not _is_close(found, expected[name]):
            wrong.append(f"{name}: {found[:3]}, not {expected[name][:3]}")

    def load(number: int) -> None:
        with bamquery.connect(folder / f"loaded{number}.bq", device="cpu", threads=THREADS) as connection:
            while not enough.is_set():
                for statement in statements()[: 2 * FRAGMENTS : FRAGMENTS]:
                    connection.sql(statement.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"))

    connections = [
        bamquery.connect(folder / "t.bq", device="cpu", threads=THREADS, **settings)  # type: ignore[arg-type]
        for settings in SETTINGS
    ]
    loaders = [threading.Thread(target=load, args=(number,)) for number in range(2)]
    for loader in loaders:
        loader.start()
    for number, name in enumerate(itertools.cycle(QUERIES)):
        if number >= len(QUERIES) and time.monotonic() - begun >= seconds:
            break
        # The same of all at once, and of one connection twice, so that calls of one function overlap.
        _run([partial(ask, one, name) for one in (*connections, connections[0])])
        asked += len(connections) + 1
    enough.set()
    for loader in loaders:
        loader.join()
    for connection in connections:
        connection.close()
    print("\n".join([f"{asked} answers of {len(QUERIES)} queries, {len(wrong)} wrong", *wrong[:20]]))
    return 1 if wrong else 0


def _is_close(found: list[Any], expected: list[Any]) -> bool:
    """Doubles are added up in other orders."""
    if len(found) != len(expected):
        return False
    return all(
        one == other or (isinstance(one, float) and abs(one - other) <= 1e-9 * abs(other))
        for row, wanted in zip(found, expected, strict=True)
        for one, other in zip(row, wanted, strict=True)
    )


def _run(functions: list[Any]) -> None:
    failures: list[BaseException] = []

    def run(function: Any) -> None:
        try:
            function()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


if __name__ == "__main__":
    sys.exit(main())
