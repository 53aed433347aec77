"""Run the queries under ThreadSanitizer: `python -m tests.races.run build/tsan [--seconds 60]`.

The folder has `_native` as `make test-tsan` builds it. Python is started with the sanitizer's runtime, that
of the module's compiler, and with allocators whose every call the runtime sees.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

_RACE = 66
"""Exit status where ThreadSanitizer has reported something."""


def main() -> int:
    """0 where a planted race is found and nothing else."""
    parser = argparse.ArgumentParser(prog="python -m tests.races.run", description=__doc__)
    parser.add_argument("build", type=Path, help="the folder in which _native was built")
    parser.add_argument("--seconds", type=float, default=60.0, help="of queries (60)")
    options = parser.parse_args()
    (module,) = options.build.glob("_native*.so")
    planted = _start([str(module), "--planted"])
    if planted.returncode != _RACE or "data race" not in planted.stderr or "copy_bits" not in planted.stderr:
        print(f"two threads wrote into one array, and this was found:\n{planted.stderr or planted.stdout}")
        return 1
    print("the planted race is found")
    with tempfile.TemporaryDirectory(prefix="bamquery-races-") as folder:
        done = _start([str(module), folder, str(options.seconds)])
    print(done.stdout, done.stderr, sep="\n")
    return done.returncode


def _start(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    # Its shadow memory has a fixed place, which addresses that are drawn at random may take.
    command = ["setarch", platform.machine(), "-R", sys.executable, "-m", "tests.races.process", *arguments]
    options = f"exitcode={_RACE} history_size=4"
    environment = os.environ | {
        "LD_PRELOAD": _runtime(),
        "TSAN_OPTIONS": options,
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONMALLOC": "malloc",
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def _runtime() -> str:
    compiler = os.environ.get("CXX") or "g++"
    found = subprocess.run(
        [compiler, "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True
    )
    return str(Path(found.stdout.strip()).resolve())


if __name__ == "__main__":
    sys.exit(main())
