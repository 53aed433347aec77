"""Direct reads, writes and flushes by io_uring and by threads, under the sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NATIVE = REPOSITORY / "driver" / "native"
SOURCES = [
    "direct_executor",
    "direct_io",
    "file_transfer",
    "io_uring",
    "open_file",
    "thread_executor",
    "thread_pool",
]


@pytest.mark.parametrize("sanitizers", ["address,undefined", pytest.param("thread", marks=pytest.mark.slow)])
def test_disk_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there to build with")
    flags = ["-std=c++20", "-O1", "-g", "-pthread", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}")
    if subprocess.run([compiler, *flags, probe, "-o", tmp_path / "probe"], check=False).returncode:
        pytest.skip(f"{compiler} has no runtime for -fsanitize={sanitizers}")
    try:
        os.close(os.open(probe, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        pytest.skip(f"no direct reads here: {error}")
    program = tmp_path / "uring_test"
    includes = [f"-I{NATIVE}", f"-I{REPOSITORY / 'driver' / 'core'}"]
    sources = [Path(__file__).with_name("uring_test.cpp"), *(NATIVE / f"{name}.cpp" for name in SOURCES)]
    subprocess.run([compiler, *flags, *includes, *sources, "-o", program], check=True)
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "all disk tests passed" in done.stdout or "without io_uring" in done.stdout
