"""What the tests of the face share."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import bamquery
from bamquery.command_line.main import main
from tests.stored import numbers, store

ROWS = 30_000
CUTS = (1, 5000, 5001, 20_000)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with table `numbers` in five fragments; not to be changed."""
    path = tmp_path_factory.mktemp("face") / "db"
    with bamquery.connect(path) as connection:
        store(connection._session.database, "numbers", numbers(ROWS), CUTS)
    return path


@pytest.fixture
def con() -> Iterator[bamquery.Connection]:
    """A connection to a database of its own."""
    with bamquery.connect() as connection:
        yield connection


@dataclass
class Done:
    """How a run ended and what it wrote."""

    returncode: int
    stdout: str
    stderr: str
    data: bytes


Run = Callable[..., Done]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process; standard input is empty unless given."""

    def run(*arguments: str | Path, text: str = "", cwd: Path | None = None) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
            if cwd is not None:
                patch.chdir(cwd)
            try:
                status = main([str(argument) for argument in arguments])
            except SystemExit as stop:
                status = int(stop.code or 0)
        out, error = capfdbinary.readouterr()
        return Done(status, out.decode(errors="replace"), error.decode(), out)

    return run
