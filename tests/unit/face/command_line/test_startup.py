"""What a program's first query imports, in a process of its own: as little as it needs."""

import json
import subprocess
import sys
from collections.abc import Collection

import pytest

LIBRARIES = "import pyarrow, sqlglot"
FIRST_QUERY = "import bamquery; assert bamquery.connect().sql('SELECT 1').fetchall() == [(1,)]"
COMMAND = "from bamquery.command_line.main import main; assert main(['-c', 'SELECT 1']) == 0"

# Of other packages: what the first query may import beyond pyarrow and sqlglot.
ALLOWED = {"numpy._typing", "numpy.typing", "sqlglot.parsers"}
ALLOWED_WITH_OUTPUT = {
    *ALLOWED,
    *("pyarrow._compute", "pyarrow._compute_docstrings", "pyarrow.compute", "pyarrow.vendored"),
    *("pyarrow._ipc", "pyarrow.ipc"),
    *("rich", "rich._extension", "rich._unicode_data", "rich.cells"),
}

# Of the rooms that have a part for each kind of query.
ENGINE = {
    *(
        "capabilities",
        "common_subplans",
        "constant_folding",
        "host_evaluation",
        "device",
        "device_factory",
        "human_units",
        "lowering",
        "settings",
    ),
    *("cpu", "cpu.device", "cpu.expressions", "cpu.stored_frame"),
    *("cpu.pipeline", "cpu.pipeline.compiled_expressions", "cpu.pipeline.native_program"),
    *("pipeline", "pipeline.constants", "pipeline.instructions", "pipeline.lowering"),
    *("pipeline.outputs", "pipeline.register_reuse", "pipeline.registers"),
    *("cpu.expressions.evaluation", "cpu.frame_memo", "cpu.frames", "cpu.kernels"),
    "cpu.shared_copies",
    *("execution", "execution.context", "execution.memory_budget", "execution.ordered_map"),
    "execution.large_memory",
    *(
        "execution.spill_files",
        "execution.kept_threads",
        "execution.string_limits",
        "execution.workers",
        "formulas",
        "formulas.time_units",
        "formulas.type_families",
    ),
    *("operators", "operators.base", "operators.base.dynamic_filter", "operators.base.operator"),
    *("operators.base.out_of_memory_split", "operators.project", "operators.shared_rows"),
    *("operators.single_row", "profiling", "profiling.kernel_use", "profiling.planned_seconds"),
    *("profiling.operator_profile", "profiling.query_profile", "profiling.scan_profile", "sources"),
    "sources.scan_sources",
}
STORAGE = {
    *("database", "database.database", "database.file_access", "database.folder", "database.temporary"),
    *("files", "files.filesystem", "files.locks", "files.mapped_files", "files.regular_file"),
    *("format", "format.layout", "format.lazy_sequence", "format.storable_types"),
    *("readers", "readers.block_reader"),
    *("ingest", "ingest.ingest", "ingest.opening", "ingest.progress", "ingest.sources"),
    *("ingest.sources.failures", "ingest.sources.formats", "ingest.sources.options"),
    *("ingest.sources.paths", "ingest.sources.reject_log", "ingest.sources.source"),
}
SLOW_FOR_A_START = {"asyncio", "hashlib", "http", "multiprocessing", "secrets", "sqlite3", "ssl", "unittest"}


def modules_after(*steps: str) -> list[set[str]]:
    """Names of the modules that there are after each step."""
    code = "import sys, json\nfound = []\n" + "".join(
        f"{step}\nfound.append(sorted(sys.modules))\n" for step in steps
    )
    done = subprocess.run(
        [sys.executable, "-c", code + "print(json.dumps(found))"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [set(names) for names in json.loads(done.stdout.splitlines()[-1])]


def others(names: Collection[str], allowed: Collection[str]) -> list[str]:
    """Modules of other packages, Python's own left out, that are neither allowed nor within what is."""
    own = {*sys.stdlib_module_names, "bamquery"}
    foreign = [
        name for name in names if name.split(".")[0] not in own and not name.startswith("_sysconfigdata")
    ]
    return sorted(
        name for name in foreign if not any(name == one or name.startswith(f"{one}.") for one in allowed)
    )


def of_room(names: Collection[str], room: str) -> set[str]:
    return {name.removeprefix(f"bamquery.{room}.") for name in names if name.startswith(f"bamquery.{room}.")}


def test_the_first_query_imports_what_it_needs() -> None:
    libraries, queried = modules_after(LIBRARIES, FIRST_QUERY)
    new = queried - libraries
    assert others(new, ALLOWED) == []
    assert not SLOW_FOR_A_START & new
    assert of_room(new, "engine") - ENGINE == set()
    assert of_room(new, "storage") - STORAGE == set()
    assert len([name for name in new if name.startswith("bamquery.")]) < 314


def test_no_generator_of_sql_is_imported_but_the_one_that_sqlglot_begins_with() -> None:
    libraries, queried = modules_after(LIBRARIES, FIRST_QUERY)
    new = {name for name in queried - libraries if name.startswith("sqlglot.")}
    assert not [name for name in new if "generator" in name or "dialects" in name]


def test_the_command_imports_what_it_needs() -> None:
    libraries, queried = modules_after(LIBRARIES, COMMAND)
    new = queried - libraries
    assert others(new, ALLOWED_WITH_OUTPUT) == []
    assert of_room(new, "storage") - STORAGE == set()
    assert len([name for name in new if name.startswith("bamquery.")]) < 335


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_what_runs_nothing_waits_for_no_library(arguments: list[str]) -> None:
    code = f"""
import contextlib, io, sys
from bamquery.command_line.main import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main({arguments})
"""
    (after,) = modules_after(code)
    assert not {"pyarrow", "numpy", "sqlglot", "rich", "prompt_toolkit"} & after


def test_names_of_the_package_are_listed_before_they_are_imported() -> None:
    code = "import bamquery; assert 'connect' in dir(bamquery); assert 'Connection' in dir(bamquery)"
    (after,) = modules_after(code)
    assert "pyarrow" not in after


def test_threads_may_be_the_first_to_need_a_module() -> None:
    code = """
import threading
import bamquery
con = bamquery.connect()
queries = [
    "SELECT sum(range) FROM range(1000)",
    "SELECT upper('x') || 'y'",
    "SELECT range % 3 AS k, count(*) FROM range(10) GROUP BY ALL ORDER BY k",
    "SELECT count(*) FROM range(10) a(i) JOIN range(5) b(i) USING (i)",
    "SELECT row_number() OVER (ORDER BY range DESC) FROM range(3) LIMIT 1",
    "SELECT CAST('2024-02-29' AS DATE) + INTERVAL 1 YEAR",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT max(n) FROM t",
    "SELECT DISTINCT range // 4 FROM range(8) ORDER BY 1 LIMIT 1 OFFSET 1",
]
answers = [None] * len(queries)
begin = threading.Barrier(len(queries))
def ask(place):
    begin.wait()
    answers[place] = con.sql(queries[place]).fetchall()
threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(queries))]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
assert not any(thread.is_alive() for thread in threads)
assert [answer[0][0] for answer in answers] == [499500, "Xy", 0, 5, 1, answers[5][0][0], 5, 1], answers
assert str(answers[5][0][0]).startswith("2025-02-28")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_command_collects_garbage_once_it_has_begun() -> None:
    code = """
import gc, sys
import bamquery.__main__, bamquery.command_line.main
seen = []
def query(arguments):
    seen.append(gc.isenabled())
    bamquery.command_line.main.collect_garbage()
    seen.append(gc.isenabled())
    return 0
bamquery.command_line.main.query = query
sys.argv = ["bamquery", "-c", "SELECT 1"]
try:
    bamquery.__main__.main()
except SystemExit as end:
    assert end.code == 0
assert seen == [False, True], seen
assert gc.get_freeze_count() > 0
bamquery.command_line.main.collect_garbage()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
