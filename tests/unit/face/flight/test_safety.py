"""Who may call the server, and what a caller may do."""

import datetime
import ipaddress
from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import dbapi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pyarrow import flight

from bamquery.errors import SettingError
from bamquery.flight import messages
from bamquery.flight.options import TlsFiles

TOKEN = "a-token-that-nobody-knows"


def descriptor(name: str, **fields: Any) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(messages.pack(name, **fields))


def bearer(text: str) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", text.encode())], timeout=20)


QUERY = descriptor("CommandStatementQuery", query="SELECT 42 AS a")
IN_TIME = flight.FlightCallOptions(timeout=20)


# The token.


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        TOKEN,
        f"Digest {TOKEN}",
        "Basic !!",
    ],
)
def test_calls_without_the_token_are_refused(serve: Any, header: str | None) -> None:
    served = serve(options={"token": TOKEN})
    client = served.client()
    options = IN_TIME if header is None else bearer(header)
    for call in (
        lambda: client.get_flight_info(QUERY, options),
        lambda: client.get_schema(QUERY, options),
        lambda: client.do_get(flight.Ticket(QUERY.command), options).read_all(),
        lambda: list(client.do_action("CancelFlightInfo", options=options)),
        lambda: list(client.list_flights(options=options)),
        lambda: client.list_actions(options=options),
    ):
        with pytest.raises((flight.FlightUnauthenticatedError, OSError), match="no token that counts"):
            call()
    assert TOKEN not in served.written.getvalue()
    assert {line["event"] for line in served.log} == {"refused"}


def test_the_token_is_a_bearers_or_a_password(serve: Any) -> None:
    served = serve(options={"token": TOKEN})
    client = served.client()
    info = client.get_flight_info(QUERY, bearer(f"Bearer {TOKEN}"))
    assert client.do_get(info.endpoints[0].ticket, bearer(f"bearer {TOKEN}")).read_all()["a"].to_pylist() == [
        42
    ]
    name, value = client.authenticate_basic_token("anybody", TOKEN, IN_TIME)
    assert (name, value) == (b"authorization", f"Bearer {TOKEN}".encode())
    with pytest.raises(flight.FlightUnauthenticatedError):
        client.authenticate_basic_token(TOKEN, "wrong", IN_TIME)
    with (
        adbc_driver_flightsql.dbapi.connect(
            served.address, db_kwargs={"username": "anybody", "password": TOKEN}, autocommit=True
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


# TLS.


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.pem, _ = self.sign(name, self.key, is_authority=True)

    def sign(self, name: str, key: Any = None, *, is_authority: bool = False) -> tuple[bytes, bytes]:
        key = key or ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        local = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName(local), critical=False)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        form = serialization.PrivateFormat.PKCS8
        pem = serialization.Encoding.PEM
        return certificate.public_bytes(pem), key.private_bytes(pem, form, serialization.NoEncryption())


def test_calls_are_encrypted(serve: Any, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    served = serve(options={"token": TOKEN, "tls": TlsFiles(*authority.sign("server"))})
    address = f"grpc+tls://localhost:{served.server.port}"
    with flight.connect(address, tls_root_certs=authority.pem) as client:
        assert client.get_flight_info(QUERY, bearer(f"Bearer {TOKEN}")).schema.names == ["a"]
    other = flight.connect(address, tls_root_certs=Authority(tmp_path, "other").pem)
    with other as client, pytest.raises(flight.FlightUnavailableError):
        client.get_flight_info(QUERY, bearer(f"Bearer {TOKEN}"))
    with flight.connect(served.address) as client, pytest.raises(flight.FlightUnavailableError):
        client.get_flight_info(QUERY, bearer(f"Bearer {TOKEN}"))
    options = {
        DatabaseOptions.TLS_ROOT_CERTS.value: authority.pem.decode(),
        DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {TOKEN}",
    }
    with (
        adbc_driver_flightsql.dbapi.connect(address, db_kwargs=options, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_a_certificate_that_is_none(serve: Any) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        serve(options={"tls": TlsFiles(b"no certificate", b"no key")})


def test_a_port_is_not_shared(serve: Any) -> None:
    served = serve()
    with pytest.raises(OSError, match="in use"):
        serve(options={"port": served.server.port})


def test_statements_that_are_nested_too_deeply(serve: Any) -> None:
    cursor = serve().cursor()
    with pytest.raises(dbapi.Error, match="max_expression_depth"):
        cursor.execute("SELECT " + "(" * 20000 + "1" + ")" * 20000)
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]


def test_clients_have_certificates(serve: Any, tmp_path: Path) -> None:
    authority, clients = Authority(tmp_path, "authority"), Authority(tmp_path, "clients")
    served = serve(options={"tls": TlsFiles(*authority.sign("server"), clients.pem)})
    address = f"grpc+tls://localhost:{served.server.port}"
    chain, key = clients.sign("client")
    with flight.connect(address, tls_root_certs=authority.pem, cert_chain=chain, private_key=key) as client:
        assert client.get_flight_info(QUERY, IN_TIME).schema.names == ["a"]
    without = flight.connect(address, tls_root_certs=authority.pem)
    with without as client, pytest.raises(flight.FlightUnavailableError):
        client.get_flight_info(QUERY, IN_TIME)
    chain, key = authority.sign("client")  # of another authority
    wrong = flight.connect(address, tls_root_certs=authority.pem, cert_chain=chain, private_key=key)
    with wrong as client, pytest.raises(flight.FlightUnavailableError):
        client.get_flight_info(QUERY, IN_TIME)


# What statements may do.

CHANGES = [
    "CREATE TABLE u (a INTEGER)",
    "CREATE TABLE u AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE t AS SELECT 1 AS a",
    "CREATE VIEW u AS SELECT 1 AS a",
    "DROP VIEW v",
    "DROP TABLE t",
    "DROP TABLE IF EXISTS none",
    "INSERT INTO t VALUES (2, 3)",
    "ALTER TABLE t ADD COLUMN c INTEGER",
    "ALTER TABLE t DROP COLUMN b",
    "ALTER TABLE t RENAME COLUMN a TO c",
    "ALTER TABLE t RENAME TO u",
    "COPY t TO '{}/out.csv'",
    "COPY t FROM '{}/in.csv'",
    "EXPLAIN ANALYZE INSERT INTO t VALUES (2, 3)",
    "EXPLAIN ANALYZE CREATE TABLE u AS SELECT 1 AS a",
    "OPTIMIZE t",
    "VACUUM",
    "SET threads = 1",
    "RESET threads",
    "SELECT 1; INSERT INTO t VALUES (2, 3)",
]


def test_a_read_only_server_changes_nothing(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n7,8\n")
    writing = serve().cursor()
    writing.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b")
    writing.execute("CREATE VIEW v AS FROM t")
    served = serve(options={"read_only": True, "allowed_directories": (tmp_path,)})
    client = served.client()
    before = sorted(path for path in tmp_path.rglob("*"))
    for text in CHANGES:
        query = text.format(tmp_path)
        with pytest.raises(flight.FlightUnauthorizedError, match="read-only"):
            client.get_flight_info(descriptor("CommandStatementQuery", query=query), IN_TIME)
        with pytest.raises(flight.FlightUnauthorizedError, match="read-only"):
            put(client, descriptor("CommandStatementUpdate", query=query))
    cursor = served.cursor()
    with pytest.raises(dbapi.Error, match="read-only"):
        cursor.adbc_ingest("t", pa.table({"a": [1], "b": [1]}), mode="append")
    with pytest.raises(dbapi.Error, match="read-only"):
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, 2)])
    for text in ("FROM t", "FROM v", "DESCRIBE t", "SHOW TABLES", "SUMMARIZE t", "EXPLAIN ANALYZE FROM t"):
        cursor.execute(text)
        assert cursor.fetchall()
    cursor.execute("USE main")
    cursor.execute("EXPLAIN INSERT INTO t VALUES (2, 3)")
    assert cursor.fetchall()
    assert before == sorted(path for path in tmp_path.rglob("*"))


def put(client: flight.FlightClient, what: flight.FlightDescriptor) -> bytes:
    writer, reader = client.do_put(what, pa.schema([]), IN_TIME)
    with closing(writer):
        writer.done_writing()
        return bytes(reader.read())


def test_files_are_those_below_allowed_folders(serve: Any, tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    (other / "s.csv").write_text("a\n1\n")
    (allowed / "link.csv").symlink_to(other / "s.csv")
    served = serve(options={"allowed_directories": (allowed,)})
    cursor = served.cursor()
    cursor.execute(f"COPY (SELECT 7 AS a) TO '{allowed}/x.csv'")
    cursor.execute(f"FROM '{allowed}/x.csv'")
    assert cursor.fetchall() == [(7,)]
    for name in (
        f"{other}/s.csv",
        f"{allowed}/link.csv",
        f"{allowed}/../other/s.csv",
        f"{served.database.path}/*",
    ):
        with pytest.raises(dbapi.Error, match="enable_external_access"):
            cursor.execute(f"FROM '{name}'")
        with pytest.raises(dbapi.Error, match="enable_external_access"):
            cursor.execute(f"COPY (SELECT 1 AS a) TO '{name}'")
    with pytest.raises(dbapi.Error, match="enable_external_access"):
        cursor.execute("FROM read_csv(?)", [f"{other}/s.csv"])
    with pytest.raises(dbapi.Error, match="enable_external_access"):
        cursor.execute(f"COPY (SELECT 1 AS a, 2 AS k) TO '{other}' (FORMAT csv, PARTITION_BY (k), OVERWRITE)")
    for text in (
        "SET GLOBAL enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA threads = 1",
        "SET memory_limit = '1TB'",
    ):
        with pytest.raises(dbapi.Error, match="cannot be changed"):
            cursor.execute(text)
    assert [path.name for path in other.iterdir()] == ["s.csv"]


@pytest.mark.parametrize("name", ["enable_external_access", "LOCK_CONFIGURATION", "memory_limit", "nosuch"])
def test_settings_that_are_the_servers_own(serve: Any, name: str) -> None:
    with pytest.raises(SettingError, match=name):
        serve(options={"settings": {name: "true"}})


# Tickets and handles.


def test_tickets_cannot_be_guessed_and_expire(serve: Any) -> None:
    served = serve(ticket_seconds=0.5)
    client = served.client()
    info = client.get_flight_info(QUERY, IN_TIME)
    _, ticket = messages.unpack(info.endpoints[0].ticket.ticket)
    assert len(ticket.statement_handle) == 24
    other = client.get_flight_info(QUERY, IN_TIME)
    assert client.do_get(other.endpoints[0].ticket, IN_TIME).read_all().num_rows == 1
    with pytest.raises(pa.ArrowKeyError, match="no such ticket"):  # all of its answer has gone out
        client.do_get(other.endpoints[0].ticket, IN_TIME).read_all()
    for handle in (b"", bytes(24), ticket.statement_handle[:-1], ticket.statement_handle + b"x"):
        forged = flight.Ticket(messages.pack("TicketStatementQuery", statement_handle=handle))
        with pytest.raises(pa.ArrowKeyError, match="no such ticket"):
            client.do_get(forged, IN_TIME).read_all()
    answers = served.server._answers
    with answers._lock:  # its time is up
        for entry in answers._entries.values():
            entry.ends = 0
    with pytest.raises(pa.ArrowKeyError, match=r"0\.5 seconds"):
        client.do_get(info.endpoints[0].ticket, IN_TIME).read_all()


def test_what_is_kept_is_bounded(serve: Any) -> None:
    served = serve(kept=3)
    client = served.client()
    body = messages.pack("ActionCreatePreparedStatementRequest", query="SELECT 1")
    handles = []
    for _ in range(3):
        (result,) = client.do_action(flight.Action("CreatePreparedStatement", body), IN_TIME)
        handles.append(messages.unpack(result.body.to_pybytes())[1].prepared_statement_handle)
    with pytest.raises(flight.FlightUnavailableError, match="keeps 3"):
        list(client.do_action(flight.Action("CreatePreparedStatement", body), IN_TIME))
    tickets = [client.get_flight_info(QUERY, IN_TIME).endpoints[0].ticket for _ in range(4)]
    with pytest.raises(pa.ArrowKeyError, match="no such ticket"):
        client.do_get(tickets[0], IN_TIME).read_all()
    assert client.do_get(tickets[1], IN_TIME).read_all().num_rows == 1
    close = messages.pack("ActionClosePreparedStatementRequest", prepared_statement_handle=handles[0])
    list(client.do_action(flight.Action("ClosePreparedStatement", close), IN_TIME))
    list(client.do_action(flight.Action("CreatePreparedStatement", body), IN_TIME))
    gone = descriptor("CommandPreparedStatementQuery", prepared_statement_handle=handles[0])
    with pytest.raises(pa.ArrowKeyError, match="no such prepared statement"):
        client.get_flight_info(gone, IN_TIME)


@pytest.mark.parametrize(
    "command",
    [
        b"",
        b"\x00",
        b"\xff" * 100,
        b"SELECT 1",
        messages.pack("CommandStatementQuery", query="SELECT 1")[:-3],
        messages.pack("CommandStatementIngest", table="t"),
        messages.pack("CommandStatementQuery", query="SELECT 1", transaction_id=b"x"),
        messages.pack("TicketStatementQuery", statement_handle=b"x"),
        messages.pack("CommandStatementQuery", query="x").replace(b"StatementQuery", b"StatementQuerx"),
    ],
)
def test_what_is_no_command_is_refused(serve: Any, command: bytes) -> None:
    served = serve()
    client = served.client()
    what = flight.FlightDescriptor.for_command(command)
    refused = (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError)
    with pytest.raises(refused):
        client.get_flight_info(what, IN_TIME)
    with pytest.raises(refused):
        client.get_schema(what, IN_TIME)
    with pytest.raises(refused):
        client.do_get(flight.Ticket(command), IN_TIME).read_all()
    for action in ("CreatePreparedStatement", "CancelFlightInfo", "BeginTransaction", "CancelQuery"):
        with pytest.raises(refused):
            list(client.do_action(flight.Action(action, command), IN_TIME))
    with pytest.raises(refused):
        client.get_flight_info(flight.FlightDescriptor.for_path("t"), IN_TIME)
    assert not any("detail" in line for line in served.log)


def test_a_statement_that_is_no_text(serve: Any) -> None:
    raw = messages.pack("CommandStatementQuery", query="SELECT 'abc'").replace(b"abc", b"\xff\xfe\xfd")
    with pytest.raises(pa.ArrowInvalid):
        serve().client().get_flight_info(flight.FlightDescriptor.for_command(raw), IN_TIME)


def test_the_log_has_no_statements(serve: Any) -> None:
    served = serve()
    cursor = served.cursor()
    cursor.execute("SELECT 'my-secret' AS a")
    cursor.fetchall()
    with pytest.raises(dbapi.Error):
        cursor.execute("SELECT 'my-secret' + nosuch")
    assert "my-secret" not in served.written.getvalue()
    calls = [line for line in served.log if line["event"] == "call"]
    assert {"time", "call", "method", "peer", "seconds"} <= set(calls[0])
    assert any(line.get("error") == "SqlError" for line in calls)
