"""Statements that are stopped: by their client, by a limit, or with the server."""

import threading
import time
from collections.abc import Callable
from typing import Any

import adbc_driver_flightsql.dbapi
import pyarrow as pa
import pytest
from adbc_driver_manager import dbapi
from pyarrow import flight

from bamquery.flight import messages
from bamquery.flight.log import Log

WIDE = "SELECT range AS a, repeat('x', 1000) AS b FROM range(10000000)"
ENDLESS = "SELECT count(*) AS n FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1"
IN_TIME = flight.FlightCallOptions(timeout=30)


def query(text: str) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(messages.pack("CommandStatementQuery", query=text))


def update(text: str) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(messages.pack("CommandStatementUpdate", query=text))


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what another thread does; a long time, so that only what never comes fails."""
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_an_answer_ends_with_its_reader(serve: Any) -> None:
    served = serve()
    client = served.client()
    reader = client.do_get(client.get_flight_info(query(WIDE), IN_TIME).endpoints[0].ticket, IN_TIME)
    assert reader.read_chunk().data.num_rows > 0
    assert served.server._running.count == 1
    reader.cancel()
    eventually(lambda: served.server._running.count == 0)
    eventually(lambda: "error" in served.log[-1])
    assert served.log[-1]["bytes"] < 1 << 30


def test_what_computes_ends_with_its_client(serve: Any) -> None:
    served = serve()
    client = flight.connect(served.address)
    reader = client.do_get(client.get_flight_info(query(ENDLESS), IN_TIME).endpoints[0].ticket, IN_TIME)
    eventually(lambda: served.server._running.count == 1)
    reader.cancel()
    client.close()
    eventually(lambda: served.server._running.count == 0)


@pytest.mark.parametrize("is_update", [True, False])
def test_a_change_ends_with_its_call_and_changes_nothing(serve: Any, is_update: bool) -> None:
    served = serve()
    client = served.client()
    short = flight.FlightCallOptions(timeout=0.7)
    text = f"CREATE TABLE t AS {ENDLESS}"
    if is_update:
        writer, _ = client.do_put(update(text), pa.schema([]), short)
        with pytest.raises(flight.FlightTimedOutError):
            writer.close()
    else:
        with pytest.raises(flight.FlightTimedOutError):
            client.get_flight_info(query(text), short)
    eventually(lambda: served.server._running.count == 0)
    assert served.database.table_names() == []


def test_a_query_is_cancelled_by_its_info(serve: Any) -> None:
    served = serve()
    client = served.client()
    info = client.get_flight_info(query(ENDLESS), IN_TIME)
    reader = client.do_get(info.endpoints[0].ticket, IN_TIME)
    eventually(lambda: served.server._running.count == 1)
    request = messages.make("CancelFlightInfoRequest", info=info.serialize()).SerializeToString()

    def cancel() -> int:
        (result,) = client.do_action(flight.Action("CancelFlightInfo", request), IN_TIME)
        return int(messages.parse_message("CancelFlightInfoResult", result.body.to_pybytes()).status)

    # The stream may not have begun when it is cancelled; there is no ticket for it then.
    assert cancel() == messages.CANCELLED
    with pytest.raises((flight.FlightCancelledError, pa.ArrowKeyError)):
        reader.read_chunk()
    assert cancel() == messages.NOT_CANCELLABLE
    older = messages.pack("ActionCancelQueryRequest", info=info.serialize())
    (result,) = client.do_action(flight.Action("CancelQuery", older), IN_TIME)
    name, answer = messages.unpack(result.body.to_pybytes())
    assert (name, answer.result) == ("ActionCancelQueryResult", messages.NOT_CANCELLABLE)


def test_adbc_cancels(serve: Any) -> None:
    served = serve()
    cursor = served.cursor()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            cursor.execute(ENDLESS)
            cursor.fetchall()
        except dbapi.Error as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    eventually(lambda: served.server._running.count == 1)
    while thread.is_alive():  # it may be between two calls
        cursor.adbc_cancel()
        thread.join(0.2)
    assert len(failed) == 1
    eventually(lambda: served.server._running.count == 0)


def test_a_statement_has_its_time(serve: Any) -> None:
    served = serve(statement_seconds=0.5)
    client = served.client()
    too_long = r"statement_timeout|longer than the server lets"
    with pytest.raises(flight.FlightTimedOutError, match=too_long):
        client.do_get(client.get_flight_info(query(ENDLESS), IN_TIME).endpoints[0].ticket, IN_TIME).read_all()
    with pytest.raises(flight.FlightTimedOutError, match=too_long):
        client.get_flight_info(query(f"CREATE TABLE t AS {ENDLESS}"), IN_TIME)
    assert client.get_flight_info(query("SELECT 1"), IN_TIME).schema.names


def test_who_takes_no_rows_holds_no_place(serve: Any) -> None:
    served = serve(idle_seconds=0.3, statements=1)
    client = served.client()
    stalled = client.do_get(client.get_flight_info(query(WIDE), IN_TIME).endpoints[0].ticket, IN_TIME)
    stalled.read_chunk()
    eventually(lambda: served.server._running.count == 0)
    other = served.client()
    info = other.get_flight_info(query("SELECT 42 AS a"), IN_TIME)
    assert other.do_get(info.endpoints[0].ticket, IN_TIME).read_all()["a"].to_pylist() == [42]
    with pytest.raises(flight.FlightTimedOutError, match=r"no batch of the answer for 0\.3 seconds"):
        stalled.read_all()


def test_too_many_statements_wait_and_are_refused(serve: Any) -> None:
    served = serve(statements=1, queue_seconds=0.2)
    client = served.client()
    info = client.get_flight_info(query(ENDLESS), IN_TIME)
    reader = client.do_get(info.endpoints[0].ticket, IN_TIME)
    eventually(lambda: served.server._running.count == 1)
    with pytest.raises(flight.FlightUnavailableError, match="runs 1 statements already"):
        client.get_flight_info(query("SELECT 1"), IN_TIME)
    reader.cancel()
    eventually(lambda: served.server._running.count == 0)
    assert client.get_flight_info(query("SELECT 1"), IN_TIME).schema.names


def test_preparing_ends_with_its_call(serve: Any) -> None:
    served = serve()
    client = served.client()
    body = messages.pack("ActionCreatePreparedStatementRequest", query=f"SUMMARIZE {ENDLESS}")
    short = flight.FlightCallOptions(timeout=0.7)
    with pytest.raises(flight.FlightTimedOutError):
        list(client.do_action(flight.Action("CreatePreparedStatement", body), short))
    eventually(lambda: served.server._running.count == 0)


def test_texts_have_a_greatest_length(serve: Any) -> None:
    with pytest.raises(pa.ArrowInvalid, match="bulk ingestion"):
        serve().client().get_flight_info(query("SELECT '" + "x" * (5 << 20) + "'"), IN_TIME)


def test_memory_is_shared_out(serve: Any) -> None:
    served = serve(statements=4, memory=4 << 30)
    assert served.server._statements.settings.memory_limit == 1 << 30


def test_an_upload_that_breaks_off_changes_nothing(serve: Any) -> None:
    served = serve()
    client = flight.connect(served.address)
    command = messages.pack(
        "CommandStatementIngest",
        table="t",
        table_definition_options=messages.make("TableDefinitionOptions", if_not_exist=1, if_exists=1),
    )
    batch = pa.record_batch({"a": list(range(1000))})
    short = flight.FlightCallOptions(timeout=1.0)
    writer, reader = client.do_put(flight.FlightDescriptor.for_command(command), batch.schema, short)
    for _ in range(5):
        writer.write_batch(batch)
    eventually(lambda: served.server._running.count == 1)
    del reader  # more is to come, and does not
    eventually(lambda: served.server._running.count == 0)
    assert served.database.table_names() == []
    with pytest.raises(flight.FlightTimedOutError):
        writer.close()
    client.close()


def test_a_server_that_ends_waits_and_then_stops_what_runs(serve: Any) -> None:
    served = serve()
    client = served.client()
    ticket = client.get_flight_info(query(ENDLESS), IN_TIME).endpoints[0].ticket
    reader = client.do_get(ticket, IN_TIME)
    eventually(lambda: served.server._running.count == 1)
    assert served.server.stop(0.1, 20)
    with pytest.raises(flight.FlightUnavailableError, match="shutting down"):
        reader.read_all()
    with pytest.raises(flight.FlightUnavailableError, match="shutting down"):
        client.get_flight_info(query("SELECT 1"), IN_TIME)


def test_what_fails_unexpectedly_is_in_the_log_only(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve()

    def fail(*_: Any) -> None:
        raise AssertionError("a bug's own words")

    monkeypatch.setattr(served.server._statements, "run", fail)
    with pytest.raises(flight.FlightInternalError, match="the server failed") as caught:
        served.client().get_flight_info(query("SELECT 1"), IN_TIME)
    assert "own words" not in str(caught.value)
    assert "own words" in served.log[-1]["detail"]


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    class Full:
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None: ...

    Log(Full()).write("call")  # type: ignore[arg-type]


def test_adbc_needs_no_more_than_an_address(serve: Any) -> None:
    served = serve()
    with adbc_driver_flightsql.dbapi.connect(served.address, autocommit=True) as connection:
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
