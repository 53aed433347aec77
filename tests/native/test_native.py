"""The native code under the sanitizers, in a program of its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = [REPOSITORY / "driver" / "native", REPOSITORY / "storage" / "native"]


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_native_code_under_sanitizers(sanitizers: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not there to build with")
    sources = [path for folder in FOLDERS for path in folder.glob("*.cpp") if "binding" not in path.stem]
    program = tmp_path / "native_test"
    flags = ["-std=c++20", "-O1", "-g", "-pthread", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}")
    if subprocess.run([compiler, *flags, probe, "-o", tmp_path / "probe"], check=False).returncode:
        pytest.skip(f"{compiler} has no runtime for -fsanitize={sanitizers}")
    includes = [f"-I{folder}" for folder in [REPOSITORY / "driver" / "core", *FOLDERS]]
    test = Path(__file__).with_name("native_test.cpp")
    subprocess.run([compiler, *flags, *includes, test, *sources, "-o", program], check=True)
    done = subprocess.run([program, tmp_path], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "all native tests passed" in done.stdout
