"""Fragments with any bytes: values or an error, and never a crash; also where the checksum fits."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "fragment_mutations.py"


def run(folder, kind, seed, count):
    command = [sys.executable, "-X", "faulthandler", str(SCRIPT), str(folder), kind, str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.split()[-1:]
    assert done.returncode == 0, f"mutation {last} of {kind}: {done.returncode}\n{done.stderr[-3000:]}"
    assert last == [str(seed + count - 1)]


@pytest.mark.parametrize("kind", ["vectors", "data"])
def test_mutated_fragments(tmp_path, kind):
    run(tmp_path, kind, 0, 300)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["vectors", "data"])
@pytest.mark.parametrize("seed", range(10_000, 110_000, 10_000))
def test_many_mutated_fragments(tmp_path, kind, seed):
    run(tmp_path, kind, seed, 10_000)
