"""What the tests of the shell share: a database, and a shell over it without a terminal."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bamquery
from bamquery.shell.console import Console
from bamquery.shell.database_opening import Opening
from bamquery.shell.history import ShellHistory
from bamquery.shell.options import ShellOptions
from bamquery.shell.shell import Shell
from bamquery.shell.themes import theme


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """Screens show where databases are: a name of the same few letters wherever tests run."""
    with tempfile.TemporaryDirectory(prefix="bq", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(short_folder: Path) -> Path:
    """As pytest's own, under a short name."""
    return Path(tempfile.mkdtemp(dir=short_folder))


@pytest.fixture(scope="module")
def database(short_folder: Path) -> Path:
    """A database with tables and a view; not to be changed."""
    path = Path(tempfile.mkdtemp(dir=short_folder)) / "db"
    with bamquery.connect(path) as connection:
        connection.sql(
            "CREATE TABLE trips AS SELECT i AS trip_id, i * 0.5 AS trip_distance, "
            "'row ' || i AS note FROM range(5000) r(i)"
        )
        connection.sql("CREATE TABLE zones AS SELECT 1 AS zone_id, 'a' AS \"zone name\"")
        connection.sql('CREATE TABLE "odd name" AS SELECT 1 AS "select"')
        connection.sql(
            "CREATE VIEW long_trips AS SELECT trip_id AS far_id FROM trips WHERE trip_distance > 9"
        )
    return path


@pytest.fixture
def shell(database: Path, tmp_path: Path) -> Iterator[Shell]:
    """A shell that nobody sees, over the module's database."""
    opening = Opening(str(database), {})
    history = ShellHistory(tmp_path / "state" / "history", lambda text: None)
    found = Shell(opening, ShellOptions(), Console(theme("plain")), history, interactive=False, settings={})
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def run(shell: Shell, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[[str], tuple[str, str]]:
    """Runs an input; what it wrote to standard output and to standard error."""

    def run(text: str) -> tuple[str, str]:
        shell.run(text.splitlines(keepends=True))
        out, error = capfdbinary.readouterr()
        return out.decode(), error.decode()

    return run
