"""Notebooks of the docs run from top to bottom, in a kernel of their own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

from bamquery.command_line.main import main
from tests.docs.blocks import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs").rglob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.filterwarnings("ignore")  # those of Jupyter's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["taxi", "load", str(tmp_path / "taxi.bq"), "--sample"]) == 0
    shutil.copy(path, tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(tmp_path / path.name, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert "text/html" in kinds
    assert "image/png" in kinds
    assert not [output for output in outputs if output.output_type == "error"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None
