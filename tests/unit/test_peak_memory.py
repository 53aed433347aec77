"""What tests take for the memory of a child is not that of the process that started it."""

import subprocess
import sys

HELD = 400 << 20

PARENT = f"""
import subprocess, sys
held = bytearray(b"x") * {HELD}
del held
from tests.peak_memory import peak_bytes
child = "from tests.peak_memory import peak_bytes; print(peak_bytes())"
print(peak_bytes(), subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
"""


def test_a_child_does_not_count_what_its_parent_held() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, check=True)
    parent, child = map(int, done.stdout.split())
    assert parent > HELD
    assert child < HELD // 4
