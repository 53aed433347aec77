"""The package's shape: one copy of every class, lean imports, everything needed in the wheel."""

import importlib.util
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ["driver", "engine", "queries", "storage"]
PICTURES = (".png", ".svg", ".gif", ".jpg", ".jpeg", ".webp", ".ico", ".pdf")


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_a_folder_of_the_package(room: str) -> None:
    link = REPOSITORY / "bamquery" / room
    assert link.is_symlink()
    assert link.resolve() == REPOSITORY / room
    assert importlib.util.find_spec(f"bamquery.{room}") is not None


@pytest.mark.parametrize("room", ROOMS)
def test_a_second_copy_of_a_room_is_refused(room: str) -> None:
    code = f"import {room}"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"import bamquery.{room}, not {room}" in done.stderr


def test_import_needs_no_optional_dependency() -> None:
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        optional = {"duckdb", "polars", "pandas", "matplotlib", "cudf", "pylibcudf", "cuda", "cupy", "numba"}
        if name.partition(".")[0] in optional:
            raise ModuleNotFoundError(f"No module named {name!r} (blocked by the test)", name=name)
sys.meta_path.insert(0, Absent())
import bamquery
with bamquery.connect() as con:
    assert con.sql("SELECT 1 + 1 AS two").fetchall() == [(2,)]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def make_sdist(folder: Path) -> Path:
    """By the backend that pyproject.toml names, as a frontend would ask it to."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    backend = folder / "backend"
    needed = project["build-system"]["requires"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(backend)]
    subprocess.run([*pip, *needed], check=True)
    code = f"""
import sys
sys.path.insert(0, {str(backend)!r})
from {project["build-system"]["build-backend"]} import build_sdist
build_sdist({str(folder)!r})
"""
    subprocess.run([sys.executable, "-I", "-c", code], cwd=REPOSITORY, check=True)
    (sdist,) = folder.glob("bamquery-*.tar.gz")
    return sdist


@pytest.mark.slow
def test_an_sdist_has_every_room_once_and_no_pictures(tmp_path: Path) -> None:
    with tarfile.open(make_sdist(tmp_path)) as archive:
        inside = [name.partition("/")[2] for name in archive.getnames()]
    assert not [name for name in inside if name.endswith(PICTURES)]
    assert not [name for name in inside if name.partition("/")[0] in {*ROOMS, "tests", ".git"}]
    for needed in ["LICENSE", "README.md", "CMakeLists.txt", "docs/sql.md", "bamquery/engine/lowering.py"]:
        assert needed in inside


@pytest.mark.slow
@pytest.mark.parametrize("source", ["checkout", "sdist"])
def test_the_wheel_holds_all_rooms_and_works_alone(tmp_path: Path, source: str) -> None:
    made_from = REPOSITORY if source == "checkout" else make_sdist(tmp_path)
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(made_from)], check=True)
    (wheel,) = tmp_path.glob("bamquery-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in [
        "bamquery/engine/lowering.py",
        "bamquery/storage/database/database.py",
        "bamquery/queries/sql/q1.sql",
        "bamquery/driver/core/platform.hpp",
        "bamquery/driver/kernels/ring_test.cu",
        "bamquery/py.typed",
        "bamquery/_native.pyi",
    ]:
        assert needed in names
    assert any(name.startswith("bamquery/queries/sample/") and name.endswith(".parquet") for name in names)
    assert not [name for name in names if name.partition("/")[0] in {*ROOMS, "tests"}]
    assert not [name for name in names if name.endswith(".cpp")]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = f"""
import sys
sys.path += {[str(tmp_path / "site"), sysconfig.get_path("platlib")]!r}
import bamquery, bamquery.queries
print(bamquery.__file__, bamquery.connect().sql("SELECT 1").fetchall())
"""
    # Without site, so without the editable install's hook, which would come before any path.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert str(tmp_path) in done.stdout
