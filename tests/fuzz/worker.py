"""A process that runs cases: it is told their kind and, line by line, seeds; it says what became of each."""

from __future__ import annotations

import json
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from tests.fuzz.cases import Cases, FailureError
from tests.fuzz.damaged_databases import DamagedDatabases
from tests.fuzz.damaged_files import DamagedFiles
from tests.fuzz.hostile_statements import HostileStatements
from tests.peak_memory import peak_bytes

KINDS: Final[MappingProxyType[str, Callable[[], Cases]]] = MappingProxyType(
    {"databases": DamagedDatabases, "files": DamagedFiles, "statements": HostileStatements}
)
_ADDRESS_SPACE: Final = 8 << 30
_MOST_RESIDENT: Final = 2 << 30
"""Bytes that a worker may come to hold: its settings say 256 MB for each query."""
_THREADS: Final = 2
"""Of each pool: a stack and an arena of memory for every core would be more than the address space has."""


def main() -> None:
    """Answer each seed with a line of JSON, in order."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pa.set_cpu_count(_THREADS)
    pa.set_io_thread_count(_THREADS)
    cases = KINDS[sys.argv[1]]()
    print(json.dumps({"ready": True}), flush=True)
    held = 0
    for line in sys.stdin:
        seed = int(line)
        answer = {"seed": seed, "failure": ""}
        try:
            answer["end"] = cases.run(seed)
        except FailureError as error:
            answer["failure"] = str(error)
            answer["trace"] = "".join(traceback.format_exception(error.__cause__ or error))
        except BaseException as error:
            answer["failure"] = f"foreign: {type(error).__name__}: {error}"
            answer["trace"] = traceback.format_exc()
        peak = peak_bytes()
        if peak > _MOST_RESIDENT and held <= _MOST_RESIDENT and not answer["failure"]:
            answer["failure"] = f"memory: {peak >> 20} MiB resident"
        held = peak
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
