"""Temporary databases: what a killed process left is removed, what another one holds is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bamquery.storage.database.database import Database
from bamquery.storage.database.temporary import PREFIX

CHILD = """
import sys
from bamquery.storage.database.database import Database
database = Database.open(":memory:")
print(database.path, flush=True)
sys.stdin.read()
"""


def test_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"{PREFIX}young").mkdir()  # has no marker yet
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    others = {f"{PREFIX}young", f"{PREFIX}link", "elsewhere"}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        text=True,
    ) as child:
        assert child.stdout is not None
        folder = Path(child.stdout.readline().strip())
        with Database.open(":memory:"):
            assert folder.is_dir()  # in use
        child.kill()
        child.wait()
        assert folder.is_dir()
        with Database.open(":memory:") as database:
            assert set(os.listdir(tmp_path)) == {*others, database.path.name}
    assert set(os.listdir(tmp_path)) == others
