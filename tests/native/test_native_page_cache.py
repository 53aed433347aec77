"""The page cache and arrays over a drive in memory, on threads, under the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "driver" / "core"
FLAGS = ["-std=c++20", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_page_cache_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there to build with")
    flags = [*FLAGS, f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}")
    if subprocess.run([compiler, *flags, probe, "-o", tmp_path / "probe"], check=False).returncode:
        pytest.skip(f"{compiler} has no runtime for -fsanitize={sanitizers}")
    program = tmp_path / "page_cache_test"
    test = Path(__file__).with_name("page_cache_test.cpp")
    subprocess.run([compiler, *flags, f"-I{CORE}", test, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "all page cache tests passed" in done.stdout
