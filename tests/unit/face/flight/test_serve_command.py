"""`bamquery serve`: what it takes, and its life as a process."""

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import pytest
from adbc_driver_flightsql import DatabaseOptions
from pyarrow import flight

import bamquery
from bamquery.errors import BamQueryError, SettingError
from bamquery.flight import messages
from bamquery.flight.serve_command import TOKEN_VARIABLE, _parser, main, server_options

TOKEN = "a-token-that-nobody-knows"
ENDLESS = "SELECT count(*) AS n FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1"
OTHERS = ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "example.org:1", "localhost.example:1"]


def options(*arguments: str, **environment: str) -> Any:
    return server_options(_parser().parse_args(["db", *arguments]), environment)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", ":1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", ""]
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(SettingError, match="HOST:PORT"):
        options("--flight", address)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("127.0.0.1:0", "127.0.0.1", 0), ("localhost:31337", "localhost", 31337), ("[::1]:5", "::1", 5)],
)
def test_addresses_of_this_machine_need_nothing(address: str, host: str, port: int) -> None:
    made = options("--flight", address)
    assert (made.host, made.port, made.token, made.tls) == (host, port, None, None)


@pytest.fixture
def pems(tmp_path: Path) -> list[str]:
    (tmp_path / "cert.pem").write_text("c")
    (tmp_path / "key.pem").write_text("k")
    return ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]


@pytest.mark.parametrize("address", OTHERS)
def test_other_machines_need_a_token_and_tls(address: str, pems: list[str]) -> None:
    where = ("--flight", address)
    with pytest.raises(SettingError, match=r"a token .* and TLS .* --insecure"):
        options(*where)
    with pytest.raises(SettingError, match=r"and a token"):
        options(*where, *pems)
    with pytest.raises(SettingError, match=r"and TLS"):
        options(*where, **{TOKEN_VARIABLE: TOKEN})
    assert options(*where, *pems, **{TOKEN_VARIABLE: TOKEN}).token == TOKEN
    assert options(*where, *pems, "--tls-client-ca", pems[1]).tls.client_authority == b"c"
    assert options(*where, "--insecure").token is None


def test_a_token_comes_from_a_file_the_environment_or_an_argument(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    where = ("--flight", "127.0.0.1:0")
    assert options(*where, "--token-file", str(tmp_path / "token")).token == TOKEN
    assert options(*where, **{TOKEN_VARIABLE: TOKEN}).token == TOKEN
    assert options(*where, "--token", TOKEN, **{TOKEN_VARIABLE: "other"}).token == TOKEN
    for bad in ("", "short", "has a space in it, this", "ünicode-is-no-header-value"):
        with pytest.raises(SettingError, match="at least 16 characters"):
            options(*where, **{TOKEN_VARIABLE: bad})
    with pytest.raises(SettingError, match="leave one out"):
        options(*where, "--token", TOKEN, "--token-file", "x")
    with pytest.raises(SettingError, match="No such file"):
        options(*where, "--token-file", str(tmp_path / "none"))


def test_certificates_and_keys_come_together(pems: list[str]) -> None:
    where = ("--flight", "127.0.0.1:0")
    with pytest.raises(SettingError, match="come together"):
        options(*where, *pems[:2])
    with pytest.raises(SettingError, match="--tls-client-ca needs"):
        options(*where, "--tls-client-ca", pems[1])


def test_limits_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    made = options(
        *(
            "--flight",
            "127.0.0.1:0",
            "--max-statements",
            "3",
            "--memory-limit",
            "6GiB",
            "--set",
            "threads = 2",
        ),
        *(
            "--statement-timeout",
            "1.5",
            "--idle-timeout",
            "7",
            "--allow",
            "/a",
            "--allow",
            "b",
            "--read-only",
        ),
    )
    assert (made.limits.statements, made.limits.memory, made.limits.statement_seconds) == (3, 6 << 30, 1.5)
    assert (made.limits.idle_seconds, made.read_only) == (7, True)
    assert made.settings == {"threads": "2"}
    assert made.allowed_directories == (Path("/a"), Path("b"))
    with pytest.raises(SettingError, match="--memory-limit"):
        options("--flight", "127.0.0.1:0", "--memory-limit", "much")
    for setting in ("threads", "=2", " = 2"):
        with pytest.raises(SystemExit):
            options("--flight", "127.0.0.1:0", "--set", setting)
        assert f"--set: it takes name=value, not {setting!r}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        options("--flight", "127.0.0.1:0", "--max-statements", "0")


def test_what_cannot_be_served_says_so(tmp_path: Path) -> None:
    with pytest.raises(BamQueryError, match="there is no database"):
        main([str(tmp_path / "none"), "--flight", "127.0.0.1:0"])
    assert not (tmp_path / "none").exists()
    bamquery.connect(tmp_path / "db").close()
    with pytest.raises(SettingError, match="no folder"):
        main([str(tmp_path / "db"), "--flight", "127.0.0.1:0", "--allow", str(tmp_path / "none")])
    with pytest.raises(SettingError, match="--allow"):
        main([str(tmp_path / "db"), "--flight", "127.0.0.1:0", "--set", "enable_external_access=true"])


@contextmanager
def process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own, and its address."""
    environment = {**os.environ, TOKEN_VARIABLE: TOKEN}
    with subprocess.Popen(
        [sys.executable, "-m", "bamquery", "serve", *arguments, "--set", "device=cpu"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as child:
        try:
            assert child.stdout is not None
            with selectors.DefaultSelector() as selector:
                selector.register(child.stdout, selectors.EVENT_READ)
                assert selector.select(60)
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


def test_a_server_from_start_to_end(tmp_path: Path) -> None:
    database = tmp_path / "taxi.bq"
    with bamquery.connect(database) as con:
        con.sql("CREATE TABLE t AS SELECT range AS a FROM range(1000)")
    with process(str(database), "--flight", "127.0.0.1:0") as (child, address):
        assert address.startswith("grpc://127.0.0.1:")
        with open(f"/proc/{child.pid}/cmdline", "rb") as file:
            assert TOKEN.encode() not in file.read()
        header = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {TOKEN}"}
        with (
            adbc_driver_flightsql.dbapi.connect(address, db_kwargs=header, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT sum(a) AS s FROM t")
            assert cursor.fetchall() == [(499500,)]
        child.send_signal(signal.SIGTERM)
        said, log = child.communicate(timeout=60)
        assert (child.returncode, said) == (0, "")
        lines = [json.loads(line) for line in log.splitlines()]
        assert lines[0]["event"] == "serving"
        assert lines[0]["token"] is True
        assert lines[-1] == {"time": lines[-1]["time"], "event": "stopped", "all_ended": True}
        assert TOKEN not in log
        assert "sum(a)" not in log


def test_a_signal_stops_what_runs(tmp_path: Path) -> None:
    database = tmp_path / "taxi.bq"
    bamquery.connect(database).close()
    arguments = (str(database), "--flight", "127.0.0.1:0", "--drain-timeout", "0.2")
    with process(*arguments) as (child, address):
        options = flight.FlightCallOptions(
            headers=[(b"authorization", f"Bearer {TOKEN}".encode())], timeout=60
        )
        command = messages.pack("CommandStatementQuery", query=ENDLESS)
        with flight.connect(address) as client:
            info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
            reader = client.do_get(info.endpoints[0].ticket, options)
            child.send_signal(signal.SIGINT)
            with pytest.raises(flight.FlightUnavailableError, match="shutting down"):
                reader.read_chunk()
        _, log = child.communicate(timeout=60)
        assert child.returncode == 0
        assert json.loads(log.splitlines()[-1])["event"] == "stopped"
