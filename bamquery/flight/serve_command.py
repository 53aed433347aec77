"""`bamquery serve DB`: serves a database until a signal ends it."""

from __future__ import annotations

import argparse
import ipaddress
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bamquery.errors import SettingError
from bamquery.flight.log import Log
from bamquery.flight.options import ServerLimits, ServerOptions, TlsFiles
from bamquery.relations.frames.optional_libraries import require
from bamquery.text.setting_option import add_setting_option

TOKEN_VARIABLE: Final = "BAMQUERY_TOKEN"  # noqa: S105 (its name)
SHORTEST_TOKEN: Final = 16
"""Characters; a shorter one could be guessed."""
_STOP_SECONDS: Final = 5.0
"""For statements to notice that they were stopped, and then for calls to end."""
_DESCRIPTION: Final = """\
Serve a database to clients of Arrow Flight SQL (ADBC, JDBC, ODBC).

  bamquery serve taxi.bq --flight 127.0.0.1:31337
  bamquery serve taxi.bq --flight 0.0.0.0:31337 --read-only --token-file token \\
      --tls-cert cert.pem --tls-key key.pem

Statements reach no file outside of the database but those below folders that --allow names, and change no
setting. The address is printed once it is served; the log goes to standard error, a JSON object a line.
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns the exit status.

    Raises:
        SettingError: the options do not go together, or the address cannot be served.
        StorageError: the database, or a file that is named, cannot be read.
    """
    given = _parser().parse_args(arguments)
    options = server_options(given, os.environ)
    require("google.protobuf", "bamquery serve", "pip install 'bamquery[flight]'")
    from pyarrow import ArrowException  # noqa: PLC0415 (after mistakes in arguments)

    from bamquery.flight.server import FlightSqlServer  # noqa: PLC0415
    from bamquery.storage.database.database import Database  # noqa: PLC0415

    log = Log()
    with Database.open(given.database, create=False) as database:
        ended = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, lambda *_: ended.set())
        try:
            server = FlightSqlServer(database, options, log)
        except (ArrowException, OSError) as error:
            raise SettingError(f"{given.flight} cannot be served: {error}") from error
        scheme = "grpc+tls" if options.tls else "grpc"
        shown = f"[{options.host}]" if ":" in options.host else options.host
        log.write(
            "serving",
            database=str(database.path),
            address=f"{shown}:{server.port}",
            tls=options.tls is not None,
            token=options.token is not None,
            read_only=options.read_only,
        )
        print(f"{scheme}://{shown}:{server.port}", flush=True)  # noqa: T201 (what the command answers)
        while not ended.wait(1):  # not forever: a wait that nothing ends would keep signals waiting, too
            pass
        done = server.stop(given.drain_timeout, _STOP_SECONDS)
        # It waits for its calls, and a client may hold one for as long as it likes.
        shutdown = threading.Thread(target=server.shutdown, name="bamquery-flight-shutdown", daemon=True)
        shutdown.start()
        shutdown.join(_STOP_SECONDS)
        done = done and not shutdown.is_alive()
        log.write("stopped", all_ended=done)
    if not done:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # the calls that are left have threads for which Python would wait
    return 0


def server_options(given: argparse.Namespace, environment: Mapping[str, str]) -> ServerOptions:
    """What the arguments say, checked against each other.

    Raises:
        SettingError: they make no sense, or no safe server.
    """
    host, port = _address(given.flight)
    token = _token(given, environment)
    tls = _tls(given)
    checks_clients = token is not None or (tls is not None and tls.client_authority is not None)
    if not _is_loopback(host) and not given.insecure and not (checks_clients and tls):
        missing = [
            *([] if checks_clients else [f"a token ({TOKEN_VARIABLE} or --token-file)"]),
            *([] if tls else ["TLS (--tls-cert and --tls-key)"]),
        ]
        raise SettingError(
            f"{host} can be reached from other machines, and {' and '.join(missing)} would be missing: give "
            "them, serve 127.0.0.1, or say --insecure"
        )
    return ServerOptions(
        host=host,
        port=port,
        token=token,
        tls=tls,
        read_only=given.read_only,
        allowed_directories=tuple(Path(folder) for folder in given.allow),
        settings=dict(given.settings),
        limits=ServerLimits(
            statements=given.max_statements,
            statement_seconds=given.statement_timeout or None,
            memory=_bytes(given.memory_limit),
            idle_seconds=given.idle_timeout,
        ),
    )


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingError(f"--flight takes HOST:PORT, such as 127.0.0.1:0 for any port, not {text!r}")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(given: argparse.Namespace, environment: Mapping[str, str]) -> str | None:
    if given.token is not None and given.token_file is not None:
        raise SettingError("--token and --token-file both name a token: leave one out")
    if given.token_file is not None:
        token: str | None = _read_file(given.token_file, "--token-file").decode("utf-8", "replace").strip()
    else:
        token = given.token if given.token is not None else environment.get(TOKEN_VARIABLE)
    if token is None:
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise SettingError(
            f"the token must have at least {SHORTEST_TOKEN} characters, of ASCII and without spaces: "
            'python -c "import secrets; print(secrets.token_urlsafe())" makes one'
        )
    return token


def _tls(given: argparse.Namespace) -> TlsFiles | None:
    if (given.tls_cert is None) != (given.tls_key is None):
        raise SettingError("--tls-cert and --tls-key come together: one of them is missing")
    if given.tls_cert is None:
        if given.tls_client_ca is not None:
            raise SettingError("--tls-client-ca needs --tls-cert and --tls-key")
        return None
    authority = given.tls_client_ca
    return TlsFiles(
        _read_file(given.tls_cert, "--tls-cert"),
        _read_file(given.tls_key, "--tls-key"),
        None if authority is None else _read_file(authority, "--tls-client-ca"),
    )


def _read_file(path: str, option: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"{option} {path} cannot be read: {error.strerror}") from error


def _bytes(text: str | None) -> int | None:
    from bamquery.engine.settings import parse_bytes  # noqa: PLC0415 (after mistakes in arguments)

    try:
        return None if text is None else parse_bytes(text)
    except ValueError as error:
        raise SettingError(f"--memory-limit cannot be {text!r}: {error}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < 10**9:
        raise argparse.ArgumentTypeError("it takes seconds")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError("it takes a whole number from 1 to 1024")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bamquery serve",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("database", metavar="DB", help="the database's folder")
    add = parser.add_argument
    add("--flight", metavar="HOST:PORT", required=True, help="address to serve; port 0 is one that is free")
    add(
        "--token-file",
        metavar="FILE",
        help=f"file of the token of clients (default: {TOKEN_VARIABLE})",
    )
    add("--token", metavar="TOKEN", help="the token itself, which this machine's other users can see so")
    add("--tls-cert", metavar="FILE", help="the server's certificate, PEM")
    add("--tls-key", metavar="FILE", help="its key, PEM")
    add("--tls-client-ca", metavar="FILE", help="authority whose certificates clients must have, PEM")
    add("--insecure", action="store_true", help="serve other machines without token or TLS even so")
    add("--read-only", action="store_true", help="run no statement that changes anything")
    add(
        "--allow",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder whose files statements may read and write; may be given again",
    )
    add("--max-statements", metavar="N", type=_count, default=8, help="that run at a time (default: 8)")
    add(
        "--statement-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=0.0,
        help="after which a statement is cancelled (default: never)",
    )
    add(
        "--idle-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=300.0,
        help="that a client may take between two batches of an answer (default: 300)",
    )
    add(
        "--drain-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=10.0,
        help="for statements to end by themselves at SIGTERM (default: 10)",
    )
    add(
        "--memory-limit",
        metavar="SIZE",
        help="of all statements together, in equal parts, such as 8GiB (default: half of the machine's)",
    )
    add_setting_option(add, "a setting of statements' sessions, such as threads=4; may be given again")
    return parser
