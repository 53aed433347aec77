"""A server in this process, on a port of its own, and clients of it."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import pytest
from adbc_driver_flightsql import DatabaseOptions
from pyarrow import flight

from bamquery.flight.log import Log
from bamquery.flight.options import ServerLimits, ServerOptions
from bamquery.flight.server import FlightSqlServer
from bamquery.storage.database.database import Database

TOKEN = "a-token-that-nobody-knows"


@dataclass
class Served:
    """A running server."""

    server: FlightSqlServer
    database: Database
    written: io.StringIO
    options: ServerOptions
    stack: ExitStack

    @property
    def address(self) -> str:
        return f"grpc://127.0.0.1:{self.server.port}"

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written.getvalue().splitlines()]

    def cursor(self) -> Any:
        """Of a new ADBC connection."""
        options = {}
        if self.options.token is not None:
            options[DatabaseOptions.AUTHORIZATION_HEADER.value] = f"Bearer {self.options.token}"
        connection = adbc_driver_flightsql.dbapi.connect(self.address, db_kwargs=options, autocommit=True)
        self.stack.enter_context(connection)
        return self.stack.enter_context(connection.cursor())

    def client(self) -> flight.FlightClient:
        """Of pyarrow, which speaks Flight without SQL."""
        return self.stack.enter_context(flight.connect(self.address))


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers that end with the test; limits are given by name, other options in `options`."""
    with ExitStack() as servers:

        def start(*, options: dict[str, Any] | None = None, **limits: Any) -> Served:
            stack = servers.enter_context(ExitStack())
            database = stack.enter_context(Database.open(tmp_path / "db.bq"))
            written = io.StringIO()
            settings = {"settings": {"device": "cpu", "threads": 2}, **(options or {})}
            chosen = ServerOptions(limits=ServerLimits(**limits), **settings)
            server = FlightSqlServer(database, chosen, Log(written))
            stack.callback(_end, server)
            return Served(server, database, written, chosen, stack)

        yield start


def _end(server: FlightSqlServer) -> None:
    server.stop(0, 10)
    ending = threading.Thread(target=server.shutdown, daemon=True)
    ending.start()
    ending.join(20)
    assert not ending.is_alive()
