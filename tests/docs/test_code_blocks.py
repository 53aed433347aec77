"""Every block of code in README and docs runs as it stands, or says why it does not.

A page's blocks run one after the other, in a folder of their own with the sample of real trips as `taxi.bq`
(tables `trips` and `zones`): Python in one namespace, SQL over that database, shell lines by bash.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bamquery
from bamquery.command_line.main import main
from tests.docs.blocks import REPOSITORY, RUN, SHOWN, CodeBlock, blocks, pages

_SHELL = "__shell__"
PAGES = [page for page in pages() if blocks(page)]


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "taxi.bq"
    assert main(["taxi", "load", str(path), "--sample"]) == 0
    return path


@pytest.fixture
def folder(tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader of docs is: a folder with the sample, and `bamquery` on the path."""
    shutil.copytree(sample, tmp_path / "taxi.bq")
    bin_folder = tmp_path / ".bin"
    bin_folder.mkdir()
    command = bin_folder / "bamquery"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bamquery "$@"\n')
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        place = f"{block.page}:{block.line}"
        assert block.language in RUN | SHOWN, f"{place}: a fence without a language, or with another one"
        if block.mark == "not run":
            assert block.language in RUN, f"{place}: text needs no mark"
            assert len(block.why) > 10, f"{place}: why is it not run?"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_blocks_run(page: Path, folder: Path, device_name: str) -> None:
    runnable = [block for block in blocks(page) if block.language in RUN and _wanted(block, device_name)]
    if not runnable:
        pytest.skip("nothing on this page runs here")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    try:
        for block in runnable:
            if block.mark == "fails":
                with pytest.raises(Exception, match=block.why or None):
                    run(block, namespace)
            else:
                run(block, namespace)
    finally:
        if _SHELL in namespace:
            namespace.pop(_SHELL).history_manager.end_session()
        for value in list(namespace.values()):
            if isinstance(value, bamquery.Connection):
                value.close()


def _wanted(block: CodeBlock, device: str) -> bool:
    if block.mark == "needs a GPU":
        return device != "cpu"
    return block.mark in ("", "fails")


def run(block: CodeBlock, namespace: dict[str, Any]) -> None:
    """Run a block as a reader would; raises what it raises."""
    if block.language == "python":
        # Errors show the page and its line.
        code = compile("\n" * block.line + block.text, str(REPOSITORY / block.page), "exec")
        exec(code, namespace)
    elif block.language == "ipython":
        from IPython.core.interactiveshell import InteractiveShell

        if _SHELL not in namespace:
            namespace[_SHELL] = InteractiveShell(user_ns=namespace)
        shell = namespace[_SHELL]
        shell.run_cell(block.text).raise_error()
    elif block.language == "sql":
        with bamquery.connect("taxi.bq") as connection:
            for relation in connection.statements(block.text):
                relation.fetchall()
    else:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{block.page}:{block.line}\n{done.stdout}\n{done.stderr}"
