"""Many queries after one another, and one that somebody stops."""

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import bamquery
from bamquery.driver.faults import Fault, Opcode
from bamquery.queries.generator.generate import generate
from bamquery.queries.generator.recipe import Recipe
from bamquery.queries.measuring.footprint import footprint
from bamquery.queries.questions import question
from bamquery.storage.database.database import Database

pytestmark = pytest.mark.filterwarnings("default")

QUERIES = 1000
ROWS = 2_000_003
SQL = question("q5").sql("generated")


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bamquery.Connection]:
    try:
        importlib.import_module("pylibcudf")
    except ImportError as error:
        pytest.skip(f"needs cuDF: {error}")
    path = tmp_path_factory.mktemp("taxi") / "taxi.bq"
    with Database.open(path) as database:
        generate(
            database, "generated", Recipe(ROWS, order="random", match_share=0.002, nulls=False), threads=2
        )
    with bamquery.connect(path, device="cuda:0") as found:
        yield found


def answer(connection: bamquery.Connection) -> object:
    return connection.sql(SQL).fetchone()


def test_a_thousand_queries_leak_nothing(connection: bamquery.Connection) -> None:
    expected = answer(connection)
    for _ in range(50):
        answer(connection)
    before = footprint("cuda:0")
    for _ in range(QUERIES):
        assert answer(connection) == expected
    after = footprint("cuda:0")
    for kind in ("anonymous_bytes", "shared_bytes", "gpu_bytes"):
        assert after[kind] - before[kind] < 16 << 20, (kind, before, after)


def test_ctrl_c_stops_a_query_and_the_next_one_answers(
    connection: bamquery.Connection, record_property: Callable[[str, object], None]
) -> None:
    """Every command takes two seconds; those that are in flight end before the next query is answered."""
    from bamquery.engine.cuda.scan.resources.scan_resources import resources_of
    from bamquery.engine.cuda.session import open_session

    expected = answer(connection)
    connection.set("strategy", "blocks")
    connection.set("reader", "queues")  # a mapped file's rows come without a command
    assert answer(connection) == expected
    rings = list(resources_of(open_session(0))._rings.values())
    sent: list[float] = []

    def press() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    for one in rings:
        one.controller.set_faults([Fault("delay", opcode=Opcode.READ, delay=2.0)])
    timer = threading.Timer(0.3, press)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            answer(connection)
        waited = time.monotonic() - sent[0]
    finally:
        timer.join()
        for one in rings:
            one.controller.set_faults([])
    record_property("seconds_after_ctrl_c", waited)
    print(f"{waited:.3f} s after Ctrl-C")
    assert answer(connection) == expected
    connection.set("strategy", "auto")
    connection.set("reader", "auto")
