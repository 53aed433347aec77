"""The file of what was typed."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from bamquery.shell import history as module
from bamquery.shell.history import ShellHistory, history_path


def entries(path: Path) -> list[str]:
    return list(reversed(list(ShellHistory(path, pytest.fail).load_history_strings())))


def test_entries_stay_whole_and_are_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "state" / "bamquery" / "history"
    history = ShellHistory(path, pytest.fail)
    texts = ["SELECT 1;", "SELECT\n  'ä\\n'\n  -- x\n;", '"\x1b[31m"', ""]
    for text in texts:
        history.append_string(text)
    assert entries(path) == texts
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_others_could_read_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text('"SELECT 1;"\n')
    path.chmod(0o644)
    ShellHistory(path, pytest.fail).append_string("SELECT 2;")
    assert path.stat().st_mode & 0o777 == 0o600
    assert entries(path) == ["SELECT 1;", "SELECT 2;"]


def test_shells_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "history"

    def type_much(number: int) -> None:
        history = ShellHistory(path, pytest.fail)
        for count in range(50):
            history.append_string(f"SELECT {number}, {count}\n" + "x" * 500)

    threads = [threading.Thread(target=type_much, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = entries(path)
    assert len(found) == 200
    assert all(entry.startswith("SELECT ") and entry.endswith("x" * 500) for entry in found)


def test_private_is_not_written_down(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = ShellHistory(path, pytest.fail, private=True)
    history.append_string("SELECT 'secret';")
    assert not path.exists()
    assert history.get_strings() == ["SELECT 'secret';"]


def test_lines_of_others_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'"SELECT 1;"\n\xff\xfe\n{"a": 1}\nSELECT 2;\n"SELECT 3;"\n"half')
    assert entries(path) == ["SELECT 1;", "SELECT 3;"]


@pytest.mark.parametrize("kind", ["folder", "under a file"])
def test_what_cannot_be_written_is_said_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history"
    if kind == "folder":
        path.mkdir()
    else:
        (tmp_path / "a file").write_text("")
        path = tmp_path / "a file" / "bamquery" / "history"
    notes: list[str] = []
    history = ShellHistory(path, notes.append)
    assert list(history.load_history_strings()) == []
    history.append_string("SELECT 1;")
    history.append_string("SELECT 2;")
    assert len(notes) == 1
    assert notes[0].startswith(f"history is not kept: {path}")
    assert history.get_strings() == ["SELECT 1;", "SELECT 2;"]


def test_a_long_file_keeps_its_newest_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"{json.dumps(f'SELECT {n};')}\n" for n in range(1000)))
    monkeypatch.setattr(module, "_MOST_BYTES", 10_000)
    monkeypatch.setattr(module, "_KEPT", 20)
    ShellHistory(path, pytest.fail).shorten()
    assert entries(path) == [f"SELECT {n};" for n in range(980, 1000)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_paste_of_data_is_not_kept(tmp_path: Path) -> None:
    history = ShellHistory(tmp_path / "history", pytest.fail)
    history.append_string("x" * (2 << 20))
    history.append_string("SELECT 1;")
    assert entries(tmp_path / "history") == ["SELECT 1;"]


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert history_path({"XDG_STATE_HOME": "/state"}) == Path("/state/bamquery/history")
    monkeypatch.setenv("HOME", "/home/somebody")
    wanted = Path("/home/somebody/.local/state/bamquery/history")
    assert history_path({}) == history_path({"XDG_STATE_HOME": "relative"}) == wanted
    assert os.environ["HOME"] == "/home/somebody"
